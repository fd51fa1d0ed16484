"""`sennit index`: store files and folders as records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.exit_codes import INTERRUPTED
from sennit.apps.cli.index_progress import show_index_progress
from sennit.apps.cli.session import TEXT, Session, common_options, pass_session
from sennit.context.sanitize import sanitize_for_terminal
from sennit.errors import EmbeddingError
from sennit.ingest.report import group_by_reason, is_too_large
from sennit.places import shown_path

if TYPE_CHECKING:
    from pathlib import Path

    from sennit.engine.database import Database
    from sennit.ingest import IndexReport, Skipped
    from sennit.ingest.watch import IndexRound
    from sennit.records import Json

MAX_EXAMPLES: Final = 2
"""Paths that are named for each reason without -v."""

CHANGES: Final = ("added", "updated", "renamed", "removed")
"""The ways in which a file can change; each is a counter of the report."""


def _parse_metadata(_ctx: click.Context, _param: click.Parameter, values: Sequence[str]) -> dict[str, Json]:
    """Read NAME=VALUE; a number, true or false is read as such, and anything else as text."""
    out: dict[str, Json] = {}
    for item in values:
        name, equals, text = item.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{item!r} is not a name and a value such as team=search.")
        try:
            value = json.loads(text)
        except ValueError:
            value = text
        out[name] = value if isinstance(value, (bool, int, float)) else text
    return out


@click.command()
@click.argument("paths", metavar="PATH...", type=click.Path(), nargs=-1)
@click.option("-r", "--recipe", type=TEXT, help="Index only the files that this recipe searches.")
@click.option(
    "--collection", type=TEXT, help="Collection of the records.  [default: by the kind of each file]"
)
@click.option("--tenant", type=TEXT, help="Tenant of the records.")
@click.option(
    "--meta",
    "metadata",
    metavar="NAME=VALUE",
    type=TEXT,
    multiple=True,
    callback=_parse_metadata,
    help="Metadata of the records; repeatable.",
)
@click.option(
    "--row-template",
    metavar="TEMPLATE",
    type=TEXT,
    help="Text of a row of CSV or Parquet, such as '{title}: {text}'.  [default: a line for each column]",
)
@click.option("--include", metavar="GLOB", type=TEXT, multiple=True, help="Only matching files; repeatable.")
@click.option(
    "--exclude", metavar="GLOB", type=TEXT, multiple=True, help="No matching files or folders; repeatable."
)
@click.option("--hidden", is_flag=True, help="Include files and folders whose names begin with a dot.")
@click.option("--no-ignore", is_flag=True, help="Do not apply .gitignore, .ignore and .sennitignore.")
@click.option(
    "--no-default-ignores",
    is_flag=True,
    help="Include virtual environments, installed packages, caches, build output and lock files.",
)
@click.option("--max-bytes", type=click.IntRange(min=1), help="Skip larger files.  [default: 32 MB]")
@click.option("--wait", is_flag=True, help="Wait for the vectors of a model on a server; also without PATH.")
@click.option("--watch", is_flag=True, help="Keep running and index every change, until Ctrl-C.")
@common_options
@pass_session
def index(
    session: Session,
    paths: tuple[str, ...],
    recipe: str | None,
    collection: str | None,
    tenant: str | None,
    metadata: dict[str, Json],
    row_template: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    hidden: bool,
    no_ignore: bool,
    no_default_ignores: bool,
    max_bytes: int | None,
    wait: bool,
    watch: bool,
) -> int | None:
    """Index the files at and below PATH; run it again to update the index.

    \b
    Example:
      sennit index . --exclude "drafts/"

    Each file is read by its kind: pages of documentation, code, conversations, examples, tables, or plain text.
    Collection, tenant, metadata and template are remembered for the folder. Only new and changed files are read, and the records of deleted files are removed. After an interruption, the
    next run continues. GLOB is a pattern as in .gitignore, such as '*.log' or 'build/'.
    """
    from sennit.ingest import IndexInterrupted

    if not paths and (watch or not wait):
        raise click.UsageError("Name the files and folders to index, for example: sennit index .")
    if watch and wait:
        raise click.UsageError("--watch embeds in the background; leave out --wait.")
    with session.open(create=bool(paths)) as db:
        scope = db.files.make_scope(
            hidden=hidden,
            ignore_files=not no_ignore,
            default_ignores=not no_default_ignores,
            include=include,
            exclude=exclude,
            max_bytes=max_bytes,
        )

        def run_index(roots: Sequence[str], only: frozenset[str] | None = None) -> IndexReport:
            with show_index_progress(session) as update:
                return db.files.index(
                    roots,
                    recipe=recipe,
                    collection=collection,
                    tenant=tenant,
                    metadata=metadata or None,
                    row_template=row_template,
                    scope=scope,
                    progress=update,
                    only=only,
                )

        try:
            if watch:
                _watch(session, run_index, paths, hidden=hidden, leave_out=db.path)
            elif paths:
                _show(session, run_index(paths), pending=0 if wait else _count_pending(db))
        except IndexInterrupted as stop:
            _show(session, stop.report)
            output.write_note(session, "Interrupted. Run the command again to continue.")
            return INTERRUPTED
        return _wait_for_vectors(session, db) if wait else None


def _count_pending(db: Database) -> int:
    """Return how many vectors are still to come: one for each record if the model has not answered yet."""
    admin = db.admin
    return admin.pending_vectors() if admin.models() or admin.embedding_is_off else len(db)


def _wait_for_vectors(session: Session, db: Database) -> int | None:
    """Compute the vectors that a model on a server has not computed yet. What is done stays done on Ctrl-C."""
    try:
        db.admin.select_model()
        with output.progress_bar(session, "Embedding") as update:
            db.admin.embed_pending(lambda _model, done, total: update(done, total))
    except KeyboardInterrupt:
        vectors = output.pluralize(_count_pending(db), "vector")
        output.write_note(
            session, f"Interrupted. {vectors} still to come; run the command again to continue."
        )
        return INTERRUPTED
    if left := db.admin.pending_vectors():
        reason = db.admin.last_error or "this process cannot use their model; 'sennit doctor' says why"
        raise EmbeddingError(f"{output.pluralize(left, 'vector')} could not be computed: {reason}")
    output.write_note(session, "Every record has its vector.")
    return None


def _watch(
    session: Session, run_index: IndexRound, paths: tuple[str, ...], *, hidden: bool, leave_out: Path | None
) -> None:
    """Index, and again whenever something changes; Ctrl-C after the first round is a normal end."""
    from threading import Event

    from sennit.ingest import IndexInterrupted
    from sennit.ingest.watch import WatchedPaths, watch

    watched = WatchedPaths.resolve(paths, hidden=hidden, skip_folders=[leave_out] if leave_out else [])
    totals: Counter[str] = Counter()
    try:
        for report in watch(
            run_index,
            watched,
            Event(),
            on_error=lambda error: output.write_warning(sanitize_for_terminal(str(error))),
        ):
            first = not totals
            totals += _count_changes(report)
            _show_round(session, report, first=first)
    except KeyboardInterrupt as stop:
        if not totals:
            raise
        if isinstance(stop, IndexInterrupted):
            totals += _count_changes(stop.report)
            _show_round(session, stop.report, first=False)
    if not session.json:
        done = ", ".join(f"{totals[name]:,} {name}" for name in CHANGES)
        output.write_line(f"Watched for {output.pluralize(totals['rounds'], 'round')}: {done}.")


def _count_changes(report: IndexReport) -> Counter[str]:
    return Counter({"rounds": 1, **{name: getattr(report, name) for name in CHANGES}})


def _show_round(session: Session, report: IndexReport, *, first: bool) -> None:
    if session.json or first:
        _show(session, report)
    else:
        done = ", ".join(f"{getattr(report, name):,} {name}" for name in CHANGES if getattr(report, name))
        output.write_line(f"{datetime.now():%H:%M:%S}  {done or 'no change'} in {report.seconds:.2f} s")
        _show_skipped(session, report)
    if first:
        output.write_note(session, "Watching for changes; Ctrl-C stops.")


def _show(session: Session, report: IndexReport, *, pending: int = 0) -> None:
    if session.json:
        output.write_json({**report.to_dict(), "pending_vectors": pending})
        return
    output.write_table(
        ("files", ""),
        [(name, f"{getattr(report, name):,}") for name in ("seen", *CHANGES, "unchanged")]
        + [("skipped", f"{len(report.skipped):,}")],
        right=(1,),
    )
    rate = f", {report.records_per_second:,.0f} records/s" if report.records else ""
    output.write_line(
        f"{output.pluralize(report.records, 'record')} written, {report.records_removed:,} removed "
        f"in {report.seconds:.2f} s{rate}"
    )
    _show_skipped(session, report)
    for hint in report.hints:
        output.write_note(session, hint)
    if not (report.seen or report.removed or report.ignored):
        output.write_note(
            session, "No file was found: the folder is empty, or .gitignore excludes its files."
        )
    _show_left_out(session, "ignored by default", report.ignored)
    if report.ignored:
        output.write_note(session, "--no-default-ignores indexes them too; 'sennit index PATH' indexes one.")
    if pending:
        vectors = output.pluralize(pending, "vector")
        output.write_note(
            session,
            f"{vectors} still to come from the model's server; until then, search by meaning misses their "
            "records. 'sennit index --wait' waits for them.",
        )


def _show_skipped(session: Session, report: IndexReport) -> None:
    _show_left_out(session, "skipped", report.skipped)
    if any(is_too_large(reason) for _, reason in report.skipped):
        output.write_note(session, "--max-bytes indexes larger files too.")


def _show_left_out(session: Session, label: str, left_out: Sequence[Skipped]) -> None:
    """Show what was left out: all of it with -v, otherwise each reason with its number and some examples."""
    if not left_out:
        return
    output.write_line()
    if session.verbose:
        output.write_table((label, "why"), [(shown_path(path), reason) for path, reason in left_out])
        return
    output.write_table(
        (label, "", "for example"),
        [
            (reason, f"{len(paths):,}", ", ".join(map(shown_path, paths[:MAX_EXAMPLES])))
            for reason, paths in group_by_reason(left_out)
        ],
        right=(1,),
    )
