"""`sennit doctor`: check the database and repair its indexes."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.exit_codes import OK, PROBLEMS_FOUND
from sennit.apps.cli.session import Session, common_options, load_settings, pass_session
from sennit.errors import SennitError, StoreCorrupt
from sennit.stores.sql.target import describe_target

if TYPE_CHECKING:
    from sennit.stores.embedded.checks import Finding
    from sennit.stores.embedded.models import Model
    from sennit.stores.embedded.store import EmbeddedStore

LOCAL_PROVIDERS: Final = ("static", "onnx")
"""Embedding providers whose vectors are recomputed for the check; a remote provider would charge for it."""

STYLES: Final = {"ok": "green", "note": "yellow", "problem": "red"}


@click.command()
@click.option("--quick", is_flag=True, help="Check a sample of 1000 records only.")
@click.option(
    "--repair", is_flag=True, help="Rebuild indexes that disagree with the records; records never change."
)
@common_options
@pass_session
def doctor(session: Session, quick: bool, repair: bool) -> int:
    """Check the database, and that every index agrees with the records.

    \b
    Example:
      sennit doctor --repair

    The exit code is 6 if there are problems (with --repair: if some remain).
    """
    folder = session.existing_database()
    findings, repaired = _examine(session, quick=quick, repair=repair)
    if repaired:
        if not session.json:
            _show([finding for finding in findings if finding.fix is not None])
            for line in repaired:
                output.write_line(f"{click.style('repaired', fg='green')}  {line}")
        # Check again with a newly opened store, which has nothing cached.
        findings, _ = _examine(session, quick=quick, repair=False)
    is_sound = not any(finding.level == "problem" for finding in findings)
    if session.json:
        output.write_json(
            {
                "database": describe_target(str(folder)),
                "ok": is_sound,
                "findings": [finding.to_dict() for finding in findings],
                "repaired": repaired,
            }
        )
    else:
        _show(findings)
        if any(finding.fix for finding in findings):
            output.write_note(session, "'sennit doctor --repair' repairs what can be repaired.")
    return OK if is_sound else PROBLEMS_FOUND


def _examine(session: Session, *, quick: bool, repair: bool) -> tuple[list[Finding], list[str]]:
    """Check the database and repair it if asked; return the findings and what was repaired."""
    from sennit.stores.embedded.checks import Finding, check
    from sennit.stores.embedded.checks import repair as repair_findings

    try:
        with contextlib.closing(session.open_store()) as store:
            with output.progress_bar(session, "Checking") as update:
                findings = check(
                    store, quick=quick, embed=_embed, progress=lambda _, done, total: update(done, total)
                )
                findings += _check_threshold(store)
            if not repair:
                return findings, []
            with output.progress_bar(session, "Repairing") as update:
                return findings, repair_findings(findings, progress=update)
    except StoreCorrupt as error:
        return [Finding("database", "problem", str(error))], []


def _check_threshold(store: EmbeddedStore) -> list[Finding]:
    """Report how selective the similarity threshold of plans is for the model of the code vectors."""
    from sennit.filters import Equal
    from sennit.hydration.similarity_stats import MAX_SAMPLED_VECTORS, measure_similarity
    from sennit.stores.embedded.checks import Finding

    threshold = load_settings().hydration.semantic_threshold
    with store.snapshot() as snapshot:
        vectors = snapshot.vectors(snapshot.sample(Equal("collection", "code"), MAX_SAMPLED_VECTORS))
        name = snapshot.model.name if snapshot.model else ""
    scale = measure_similarity(vectors, threshold)
    return [] if scale is None else [Finding("threshold", "ok", f"{scale} ({name})")]


def _embed(model: Model, texts: Sequence[str]) -> Sequence[bytes] | None:
    """Embed texts with a local model; None if the model is remote or not installed."""
    from sennit.embedding import EmbeddingSpec, create_embedder
    from sennit.stores.embedded.codec import to_float16_bytes

    spec = json.loads(model.spec)
    if spec.get("provider") not in LOCAL_PROVIDERS:
        return None
    try:
        embedder = create_embedder(EmbeddingSpec(**spec))
    except SennitError:
        return None
    if embedder is None or embedder.fingerprint != model.fingerprint:
        return None
    try:
        return to_float16_bytes(embedder.embed_documents(texts))
    finally:
        embedder.close()


def _show(findings: Sequence[Finding]) -> None:
    width = max((len(finding.check) for finding in findings), default=0)
    for finding in findings:
        level = click.style(f"{finding.level:<8}", fg=STYLES[finding.level])
        output.write_line(f"{level}  {finding.check:<{width}}  {output.one_line(finding.message)}")
