"""`weft index`: files and folders become records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from weft.apps.cli import output
from weft.apps.cli.exits import INTERRUPTED
from weft.apps.cli.session import TEXT, Session, common, pass_session

if TYPE_CHECKING:
    from weft.ingest import IndexReport

SHOWN: Final = 20
"""Skipped files that are listed without -v."""


@click.command()
@click.argument("paths", metavar="PATH...", type=click.Path(), nargs=-1, required=True)
@click.option("--collection", type=TEXT, default="files", show_default=True, help="Where the records go.")
@click.option("--include", metavar="GLOB", type=TEXT, multiple=True, help="Only files like this; repeatable.")
@click.option("--exclude", metavar="GLOB", type=TEXT, multiple=True, help="No files or folders like this.")
@click.option("--hidden", is_flag=True, help="Also files and folders whose names begin with a dot.")
@click.option("--no-ignore", is_flag=True, help="Do not heed .gitignore, .ignore and .weftignore.")
@click.option("--max-bytes", type=click.IntRange(min=1), help="Skip larger files.  [default: 32 MB]")
@common
@pass_session
def index(
    session: Session,
    paths: tuple[str, ...],
    collection: str,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    hidden: bool,
    no_ignore: bool,
    max_bytes: int | None,
) -> int | None:
    """Make the database hold what the files at and below PATH hold now.

    Only what is new or has changed is read; records of files that are gone are removed. Interrupted, it goes on
    where it was the next time. GLOB is a pattern as in .gitignore, such as '*.log' or 'build/'.
    """
    from weft.ingest import DEFAULT_MAX_BYTES, IndexInterrupted, Scope
    from weft.ingest import index as run

    scope = Scope(
        hidden=hidden,
        ignore_files=not no_ignore,
        include=include,
        exclude=exclude,
        max_bytes=max_bytes or DEFAULT_MAX_BYTES,
    )
    with session.open(create=True) as db:
        try:
            with output.progress(session, "Indexing") as update:
                report = run(
                    db,
                    paths,
                    collection=collection,
                    scope=scope,
                    progress=lambda done, total, _: update(done, total),
                )
        except IndexInterrupted as stop:
            _show(session, stop.report)
            output.note(session, "Interrupted. Run it again to go on from here.")
            return INTERRUPTED
    _show(session, report)
    return None


def _show(session: Session, report: IndexReport) -> None:
    if session.json:
        output.emit(report.to_dict())
        return
    output.table(
        ("files", ""),
        [
            (name, f"{getattr(report, name):,}")
            for name in ("seen", "added", "updated", "renamed", "removed", "unchanged")
        ]
        + [("skipped", f"{len(report.skipped):,}")],
        right=(1,),
    )
    rate = f", {report.records_per_second:,.0f} records/s" if report.records else ""
    output.say(
        f"{output.counted(report.records, 'record')} written, {report.records_removed:,} removed "
        f"in {report.seconds:.2f} s{rate}"
    )
    _show_skipped(session, report)


def _show_skipped(session: Session, report: IndexReport) -> None:
    if not report.skipped:
        return
    output.say()
    shown = report.skipped if session.verbose else report.skipped[:SHOWN]
    output.table(("skipped", "why"), [(path, reason) for path, reason in shown])
    if len(shown) < len(report.skipped):
        output.note(session, f"… and {len(report.skipped) - len(shown):,} more; -v lists all.")
