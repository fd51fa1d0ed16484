"""`sennit index`: files and folders become records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.exits import INTERRUPTED
from sennit.apps.cli.session import TEXT, Session, common, pass_session

if TYPE_CHECKING:
    from pathlib import Path

    from sennit.ingest import IndexReport
    from sennit.ingest.watch import Round

SHOWN: Final = 20
"""Skipped files that are listed without -v."""

CHANGES: Final = ("added", "updated", "renamed", "removed")
"""What can become of a file."""


@click.command()
@click.argument("paths", metavar="PATH...", type=click.Path(), nargs=-1, required=True)
@click.option("-r", "--recipe", type=TEXT, help="Read files for this way of searching: code, docs and so on.")
@click.option("--collection", type=TEXT, help="Where the records go.  [default: files, or the recipe's]")
@click.option("--include", metavar="GLOB", type=TEXT, multiple=True, help="Only files like this; repeatable.")
@click.option("--exclude", metavar="GLOB", type=TEXT, multiple=True, help="No files or folders like this.")
@click.option("--hidden", is_flag=True, help="Also files and folders whose names begin with a dot.")
@click.option("--no-ignore", is_flag=True, help="Do not heed .gitignore, .ignore and .sennitignore.")
@click.option("--max-bytes", type=click.IntRange(min=1), help="Skip larger files.  [default: 32 MB]")
@click.option("--watch", is_flag=True, help="Go on: index again what changes, until Ctrl-C.")
@common
@pass_session
def index(
    session: Session,
    paths: tuple[str, ...],
    recipe: str | None,
    collection: str | None,
    include: tuple[str, ...],
    exclude: tuple[str, ...],
    hidden: bool,
    no_ignore: bool,
    max_bytes: int | None,
    watch: bool,
) -> int | None:
    """Make the database hold what the files at and below PATH hold now.

    Only what is new or has changed is read; records of files that are gone are removed. Interrupted, it goes on
    where it was the next time. GLOB is a pattern as in .gitignore, such as '*.log' or 'build/'.
    """
    from sennit.ingest import DEFAULT_MAX_BYTES, IndexInterrupted, Scope
    from sennit.ingest import index as index_files
    from sennit.recipes import find_recipe

    scope = Scope(
        hidden=hidden,
        ignore_files=not no_ignore,
        include=include,
        exclude=exclude,
        max_bytes=max_bytes or DEFAULT_MAX_BYTES,
    )
    with session.open(create=True) as db:
        chosen = None if recipe is None else find_recipe(recipe, db.recipes)
        home = collection or (chosen.collections[0] if chosen and chosen.collections else "files")
        profile = chosen.reads_as if chosen else "text"

        def take(roots: Sequence[str], only: frozenset[str] | None = None) -> IndexReport:
            # The database remembers which folders it was given whole: they are those that may be read.
            run = (
                partial(db.index, recipe=recipe)
                if only is None
                else partial(index_files, db, only=only, profile=profile)
            )
            with output.progress(session, "Indexing", closing="Merging") as update:
                return run(
                    roots,
                    collection=home,
                    scope=scope,
                    progress=lambda done, total, _: update(done, total),
                )

        try:
            if watch:
                _follow(session, take, paths, hidden=hidden, leave_out=db.path)
            else:
                _show(session, take(paths))
        except IndexInterrupted as stop:
            _show(session, stop.report)
            output.note(session, "Interrupted. Run it again to go on from here.")
            return INTERRUPTED
    return None


def _follow(
    session: Session, take: Round, paths: tuple[str, ...], *, hidden: bool, leave_out: Path | None
) -> None:
    """Index, and again whenever something changes; Ctrl-C ends it well once the first round is done."""
    from threading import Event

    from sennit.ingest import IndexInterrupted
    from sennit.ingest.watch import Watched, watch

    watched = Watched.at(paths, hidden=hidden, leave_out=[leave_out] if leave_out else [])
    reports: Counter[str] = Counter()
    try:
        for report in watch(
            take, watched, Event(), failed=lambda error: output.warn(output.plain(str(error)))
        ):
            first = not reports
            reports += _counts(report)
            _show_round(session, report, first=first)
    except KeyboardInterrupt as stop:
        if not reports:
            raise
        if isinstance(stop, IndexInterrupted):
            reports += _counts(stop.report)
            _show_round(session, stop.report, first=False)
    if not session.json:
        done = ", ".join(f"{reports[name]:,} {name}" for name in CHANGES)
        output.say(f"Watched for {output.counted(reports['rounds'], 'round')}: {done}.")


def _counts(report: IndexReport) -> Counter[str]:
    return Counter({"rounds": 1, **{name: getattr(report, name) for name in CHANGES}})


def _show_round(session: Session, report: IndexReport, *, first: bool) -> None:
    if session.json or first:
        _show(session, report)
    else:
        done = ", ".join(f"{getattr(report, name):,} {name}" for name in CHANGES if getattr(report, name))
        output.say(f"{datetime.now():%H:%M:%S}  {done or 'nothing taken in'} in {report.seconds:.2f} s")
        _show_skipped(session, report)
    if first:
        output.note(session, "Watching; Ctrl-C ends it.")


def _show(session: Session, report: IndexReport) -> None:
    if session.json:
        output.emit(report.to_dict())
        return
    output.table(
        ("files", ""),
        [(name, f"{getattr(report, name):,}") for name in ("seen", *CHANGES, "unchanged")]
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
