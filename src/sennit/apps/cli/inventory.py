"""`sennit status`, `sennit list` and `sennit forget`: what a database holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.options import FILTER_HELP, choose_project, project_option
from sennit.apps.cli.session import TEXT, Session, common_options, pass_session
from sennit.apps.locations import display_citation
from sennit.errors import InvalidInput, NotFound
from sennit.places import shown_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sennit.engine.inventory import FolderStatus, NamedCount, RecordPage, Status
    from sennit.ingest.changes import FolderChanges
    from sennit.stores.contract import UnusedVectors

LIST_RECORDS: Final = 20
"""Records that `list` prints, unless --limit says otherwise: one screen."""

ABOUT_CHARACTERS: Final = 60
"""Characters of a title or text in a list."""

_UNITS: Final = (("day", 86_400), ("hour", 3_600), ("minute", 60))


@click.command()
@common_options
@pass_session
def status(session: Session) -> None:
    """Show what the database holds: collections, indexed folders, models, and work that is left.

    \b
    Example:
      sennit status
    """
    with session.open() as db:
        state = db.status(changes=True)
    if session.json:
        output.write_json(state.to_dict())
    else:
        show_status(state)


@click.command("list")
@click.option(
    "-c", "--collection", "collections", type=TEXT, multiple=True, help="Only this collection; repeatable."
)
@click.option("-f", "--filter", "filters", type=TEXT, help=FILTER_HELP)
@click.option(
    "-n",
    "--limit",
    type=int,
    default=LIST_RECORDS,
    show_default=True,
    help="Number of records. From 1 to 1,000.",
)
@click.option("--after", metavar="ID", type=TEXT, help="Continue after this record.")
@click.option("--files", is_flag=True, help="List files, with the number of their records.")
@click.option("--sessions", is_flag=True, help="List sessions, with the number of their turns.")
@project_option
@common_options
@pass_session
def list_(
    session: Session,
    collections: tuple[str, ...],
    filters: str | None,
    limit: int,
    after: str | None,
    files: bool,
    sessions: bool,
    project: str | None,
) -> None:
    """List the records, or the files or sessions that they come from.

    \b
    Example:
      sennit list --collection memory --filter "timestamp = 'last 7 days'"

    The first column is what 'sennit get', 'why', 'read' and 'remove' take.
    """
    if files and sessions:
        raise InvalidInput("Give --files or --sessions, not both.")
    with session.open() as db:
        if sessions:
            _show_counts(session, db.memory.sessions(), "session")
            return
        project = choose_project(session, db, project)
        if files:
            found = db.files.paths(filters, collections=collections, project=project)
            _show_counts(session, found, "file")
        else:
            page = db.records(filters, collections=collections, limit=limit, after=after, project=project)
            _show_records(session, page, [db.files.locate(record) for record in page])


@click.command()
@click.argument("name", metavar="SESSION", type=TEXT)
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@common_options
@pass_session
def forget(session: Session, name: str, yes: bool) -> None:
    """Remove a conversation: the turns and memories of SESSION, and the facts known only from it.

    \b
    Example:
      sennit forget call-2026-03-01

    'sennit list --sessions' shows the sessions.
    """
    with session.open() as db:
        known = {one.name: one.records for one in db.memory.sessions()}
        if name not in known:
            raise NotFound(f"There is no session {name!r}.{_nearest(name, known)}")
        output.confirm(session, f"Forget {name!r} with {output.pluralize(known[name], 'record')}?", yes=yes)
        removed = db.memory.forget(name)
    if session.json:
        output.write_json({"session": name, "removed": removed})
    else:
        output.write_note(session, f"Removed {output.pluralize(removed, 'record')} of {name!r}.")


def _nearest(name: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    similar = get_close_matches(name, list(known), n=1)
    return f" Did you mean {similar[0]!r}?" if similar else " 'sennit list --sessions' shows what is there."


def show_status(state: Status) -> None:
    """Print the state of a database."""
    roles = ", ".join(f"{role}: {home}" for role, home in state.roles.items())
    _row("database", output.one_line(shown_path(state.database)))
    _row("roles", roles)
    if state.behind:
        lags = {
            role: f"{output.pluralize(changes, 'change')} behind" if changes else "up to date"
            for role, changes in state.behind.items()
        }
        _row("indexes", ", ".join(f"{role}: {lag}" for role, lag in lags.items()))
    _row("records", f"{state.records:,}")
    if state.collections:
        output.write_line()
        output.write_table(
            ("collection", "records"),
            [(one.name, f"{one.records:,}") for one in state.collections],
            right=(1,),
        )
    if state.folders:
        output.write_line()
        output.write_table(
            ("project", "folder", "revision", "files", "records", "indexed", "since then"),
            [
                (
                    folder.project,
                    shown_path(folder.path),
                    "" if folder.revision is None else str(folder.revision),
                    f"{folder.files:,}",
                    f"{folder.records:,}",
                    describe_age(folder.indexed_at),
                    describe_changes(folder.changes),
                )
                for folder in state.folders
            ],
            right=(3, 4),
        )
    if state.models:
        output.write_line()
        output.write_table(
            ("model", "state", "dimensions", "vectors", "to come"),
            [
                (
                    model.name,
                    model.state,
                    str(model.dimensions),
                    f"{model.share:.0%}",
                    "" if model.pending is None else f"{model.pending:,}",
                )
                for model in state.models
            ],
            right=(2, 3, 4),
        )
    if state.unused_vectors.count:
        output.write_line()
        _row("unused", f"{_describe_unused(state.unused_vectors)}; 'sennit optimise' deletes them")
    if state.rankers:
        output.write_line()
        output.write_table(
            ("ranker", "recipe", "learned from", "ranks for"),
            [(one.name, one.recipe, one.data, one.ranks_for) for one in state.rankers],
        )
    output.write_line()
    for line in _advice(state):
        output.write_line(line)


def _describe_unused(unused: UnusedVectors) -> str:
    from sennit.apps.cli.index_progress import format_bytes

    size = format_bytes(unused.bytes)
    return f"{output.pluralize(unused.count, 'vector')} of earlier texts ({size}), kept for a branch that returns"


@click.command()
@common_options
@pass_session
def optimise(session: Session) -> None:
    """Merge the index segments, apply every change to indexes on servers, and delete unused vectors.

    \b
    Example:
      sennit optimise

    It is never required. An unused vector belongs to a text that has left the indexed files; it is kept so that going
    back to another branch embeds nothing.
    """
    with session.open() as db:
        size = db.admin.unused_vectors().bytes
        deleted = db.admin.optimise()
    if session.json:
        output.write_json({"deleted_vectors": deleted, "deleted_bytes": size if deleted else 0})
    else:
        freed = f" and deleted {output.pluralize(deleted, 'unused vector')}" if deleted else ""
        output.write_note(session, f"Merged the index segments{freed}.")


def _row(name: str, value: str) -> None:
    output.write_line(f"{click.style(f'{name:<10}', bold=True)}{value}")


def _advice(state: Status) -> Iterable[str]:
    """Say what is left to do, with the command that does it."""
    if not state.records:
        yield "Nothing is stored yet. 'sennit index .' indexes this folder; 'sennit import' reads JSON lines."
    outdated = [folder for folder in state.folders if folder.changes is not None and folder.changes.total]
    if outdated:
        yield f"To index what changed: sennit index {' '.join(_argument(folder) for folder in outdated)}"
    if state.pending_vectors:
        vectors = output.pluralize(state.pending_vectors, "vector")
        yield f"Still to come: {vectors}; until then, keyword search finds these records."
    for ranker in state.rankers:
        if ranker.problem:
            yield unreadable_ranker(ranker.name, ranker.problem)
    if state.last_error is not None:
        yield f"Vectors could not be computed: {output.one_line(state.last_error)}"
    is_behind = any(state.behind.values())
    if is_behind:
        yield "Searches find what an index has not applied yet all the same. To send it to the servers now: sennit migrate"
    if state.records and not (outdated or state.pending_vectors or state.last_error is not None or is_behind):
        yield "Everything is up to date."


def unreadable_ranker(name: str, problem: str) -> str:
    """Say that a stored ranker cannot be read, and what to do about it."""
    from shlex import quote

    shown = output.one_line(name)
    return (
        f"The ranker {shown!r} cannot be read, so no search uses it: {output.one_line(problem)}. "
        f"'sennit learn --name {quote(shown)}' trains it again, 'sennit rankers remove {quote(shown)}' removes it."
    )


def _argument(folder: FolderStatus) -> str:
    from shlex import quote

    return quote(output.one_line(shown_path(folder.path)))


def describe_age(moment: datetime | None) -> str:
    """Return how long ago something was: `3 hours ago`."""
    if moment is None:
        return ""
    age: timedelta = datetime.now(UTC) - moment
    for name, seconds in _UNITS:
        number = int(age.total_seconds() // seconds)
        if number:
            return f"{output.pluralize(number, name)} ago"
    return "just now"


def describe_changes(changes: FolderChanges | None) -> str:
    """Return what has changed in a folder: `2 changed, 1 new`."""
    if changes is None:
        return ""
    parts = [f"{number:,} {name}" for name, number in changes.to_dict().items() if number]
    return ", ".join(parts) or "no change"


def _show_counts(session: Session, found: tuple[NamedCount, ...], noun: str) -> None:
    if session.json:
        output.write_json({f"{noun}s": [one.to_dict() for one in found]})
        return
    if not found:
        output.write_note(session, f"There are no {noun}s; 'sennit status' shows what is there.")
        return
    shown = shown_path if noun == "file" else str
    output.write_table(
        (noun, "records"), [(shown(one.name), f"{one.records:,}") for one in found], right=(1,)
    )


def _show_records(session: Session, page: RecordPage, locations: Sequence[str | None]) -> None:
    if session.json:
        output.write_json(page.to_dict())
        return
    if not page:
        output.write_note(session, "There are no such records; 'sennit status' shows what is there.")
        return
    output.write_table(
        ("record", "collection", "kind", "about"),
        [
            (
                display_citation(record, location),
                record.collection,
                record.kind,
                output.truncate(
                    output.one_line(record.title or record.text[: 4 * ABOUT_CHARACTERS]), ABOUT_CHARACTERS
                ),
            )
            for record, location in sorted(
                zip(page, locations, strict=True),
                key=lambda pair: (pair[1] or pair[0].id, pair[0].lines or (0, 0)),
            )
        ],
    )
    if page.next is not None:
        from shlex import quote

        output.write_note(
            session,
            f"{len(page):,} of {page.total:,} records; the next: --after {quote(output.one_line(page.next))}",
        )
    else:
        output.write_note(session, output.pluralize(page.total, "record") + ".")
