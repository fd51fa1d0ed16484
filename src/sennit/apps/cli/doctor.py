"""`sennit doctor`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.exits import OK, PROBLEMS
from sennit.apps.cli.session import Session, common, load_settings, pass_session
from sennit.errors import SennitError, StoreCorrupt

if TYPE_CHECKING:
    from sennit.stores.embedded.checks import Finding
    from sennit.stores.embedded.models import Model
    from sennit.stores.embedded.store import EmbeddedStore

LOCAL: Final = ("static", "onnx")
"""Providers that make vectors in this process; a remote one would be asked for money to check its work."""

STYLES: Final = {"ok": "green", "note": "yellow", "problem": "red"}


@click.command()
@click.option("--quick", is_flag=True, help="Look closely at a sample of 1000 records only.")
@click.option("--repair", "mend", is_flag=True, help="Make anew what disagrees; records are never changed.")
@common
@pass_session
def doctor(session: Session, quick: bool, mend: bool) -> int:
    """Prove that the database is sound and that every index agrees with the records.

    Leaves with 6 when there are problems (with --repair: when some remain).
    """
    folder = session.existing()
    found, done = _examined(session, quick=quick, mend=mend)
    if done:
        if not session.json:
            _show([finding for finding in found if finding.fix is not None])
            for line in done:
                output.say(f"{click.style('repaired', fg='green')}  {line}")
        # What is on disk now is looked at again, by a store that knows nothing of before.
        found, _ = _examined(session, quick=quick, mend=False)
    sound = not any(finding.level == "problem" for finding in found)
    if session.json:
        output.emit(
            {
                "database": str(folder),
                "ok": sound,
                "findings": [finding.to_dict() for finding in found],
                "repaired": done,
            }
        )
    else:
        _show(found)
        if any(finding.fix for finding in found):
            output.note(session, "'sennit doctor --repair' mends what can be mended.")
    return OK if sound else PROBLEMS


def _examined(session: Session, *, quick: bool, mend: bool) -> tuple[list[Finding], list[str]]:
    """What a check found, and what was mended of it."""
    from sennit.stores.embedded.checks import Finding, check, repair

    try:
        with contextlib.closing(session.store()) as store:
            with output.progress(session, "Checking") as update:
                found = check(
                    store, quick=quick, embed=_embed, progress=lambda _, done, total: update(done, total)
                )
                found += _scale(store)
            if not mend:
                return found, []
            with output.progress(session, "Repairing") as update:
                return found, repair(found, progress=update)
    except StoreCorrupt as error:
        return [Finding("database", "problem", str(error))], []


def _scale(store: EmbeddedStore) -> list[Finding]:
    """What the threshold of plans means for the model that the vectors of code are by."""
    from sennit.filters import Equal
    from sennit.hydration.scale import SAMPLE, measured
    from sennit.stores.embedded.checks import Finding

    threshold = load_settings().hydration.semantic_threshold
    with store.snapshot() as snapshot:
        vectors = snapshot.vectors(snapshot.sample(Equal("collection", "code"), SAMPLE))
        name = snapshot.model.name if snapshot.model else ""
    scale = measured(vectors, threshold)
    return [] if scale is None else [Finding("threshold", "ok", f"{scale} ({name})")]


def _embed(model: Model, texts: Sequence[str]) -> Sequence[bytes] | None:
    """Vectors by a model of this machine; None when there is no such model."""
    from sennit.embedding import EmbeddingSpec, build
    from sennit.stores.embedded.codec import half

    kept = json.loads(model.spec)
    if kept.get("provider") not in LOCAL:
        return None
    try:
        embedder = build(EmbeddingSpec(**kept))
    except SennitError:
        return None
    if embedder is None or embedder.fingerprint != model.fingerprint:
        return None
    try:
        return half(embedder.embed_documents(texts))
    finally:
        embedder.close()


def _show(findings: Sequence[Finding]) -> None:
    width = max((len(finding.check) for finding in findings), default=0)
    for finding in findings:
        level = click.style(f"{finding.level:<8}", fg=STYLES[finding.level])
        output.say(f"{level}  {finding.check:<{width}}  {output.one_line(finding.message)}")
