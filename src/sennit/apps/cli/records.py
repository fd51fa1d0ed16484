"""`sennit get`, `sennit remove`, `sennit export` and `sennit import`."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.exit_codes import OK, USAGE, ErrorMessage
from sennit.apps.cli.options import FILTER_HELP
from sennit.apps.cli.session import TEXT, Session, common_options, pass_session
from sennit.context.sanitize import sanitize_for_terminal
from sennit.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from sennit.jsonl import ImportReport, WriteCounts
    from sennit.records import Record

STANDARD_STREAM: Final = Path("-")
"""As FILE: standard input or output."""


@click.command()
@click.argument("reference", metavar="ID", type=TEXT)
@common_options
@pass_session
def get(session: Session, reference: str) -> None:
    """Show the record ID with all its fields.

    \b
    Example:
      sennit get docs/backup.md:3-5

    ID is what a search prints: an id or the beginning of one, or a file with lines.
    """
    with session.open(background=False) as db:
        record = db.find(reference)
    if session.json:
        output.write_json(record.to_dict())
        return
    fields = record.to_dict()
    text = fields.pop("text")
    for name, value in fields.items():
        shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        output.write_line(f"{click.style(name + ':', bold=True)} {output.one_line(shown)}")
    output.write_line()
    output.write_line(sanitize_for_terminal(str(text)))


@click.command()
@click.argument("references", metavar="[ID]...", type=TEXT, nargs=-1)
@click.option("--where", metavar="FILTER", type=TEXT, help=FILTER_HELP)
@click.option("-y", "--yes", is_flag=True, help="Do not ask before removing what --where matches.")
@click.option("--missing-ok", is_flag=True, help="Ignore an ID that does not exist.")
@common_options
@pass_session
def remove(
    session: Session, references: tuple[str, ...], where: str | None, yes: bool, missing_ok: bool
) -> None:
    """Remove records; if one does not exist, nothing is removed.

    \b
    Example:
      sennit remove note-17 docs/old.md
      sennit remove --where 'collection = "memory" and timestamp < 2025-01-01'

    ID is what a search prints: an id or a short one, or a file with lines. A file without lines means all of its
    records.
    """
    if bool(references) == (where is not None):
        raise InvalidInput("Give either records to remove, or a condition with --where.")
    if where is not None:
        _remove_matching(session, where, yes=yes)
        return
    missing: list[str] = []
    ids: list[str] = []
    with session.open() as db:
        for reference in dict.fromkeys(references):
            try:
                ids += [record.id for record in db.find_removable([reference])]
            except NotFound as error:
                if not missing_ok:
                    raise NotFound(f"{error} Nothing was removed; --missing-ok ignores it.") from error
                missing.append(reference)
        removed = db.remove(ids, caller=db.caller)
    if session.json:
        output.write_json({"removed": removed, "missing": missing})
    else:
        output.write_note(session, f"Removed {output.pluralize(removed, 'record')}.")


def _remove_matching(session: Session, where: str, *, yes: bool) -> None:
    with session.open() as db:
        number = db.records(where, limit=1).total
        if number:
            output.confirm(session, f"Remove {output.pluralize(number, 'record')}?", yes=yes)
        removed = db.remove(where=where) if number else 0
    if session.json:
        output.write_json({"removed": removed, "missing": []})
    else:
        output.write_note(session, f"Removed {output.pluralize(removed, 'record')}.")


@click.command()
@click.argument("file", type=click.Path(path_type=Path), default=STANDARD_STREAM)
@click.option(
    "--everything",
    is_flag=True,
    help="Write every record, whatever its sensitivity, scope and tenant (a backup).",
)
@common_options
@pass_session
def export(session: Session, file: Path, everything: bool) -> None:
    """Write the records as JSON lines to FILE or standard output, ordered by id.

    \b
    Example:
      sennit export backup.jsonl --everything

    'sennit import' reads this format. FILE is replaced only once the export is complete. Without --everything,
    the export contains what the [privacy] settings let you see; see docs/privacy.md.
    """
    from sennit.jsonl import export_lines, write_atomically

    with (
        session.open(background=False) as db,
        # The header says how many records follow, so both are read from one snapshot.
        db.admin.export(everything=everything) as (count, records),
    ):
        content = export_lines(records, count)
        if file == STANDARD_STREAM:
            sys.stdout.buffer.writelines(content)
            sys.stdout.buffer.flush()
            return
        write_atomically(file, content)
    if session.json:
        output.write_json({"file": str(file), "records": count})
    else:
        output.write_note(session, f"Wrote {output.pluralize(count, 'record')} to {file}.")


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), default=STANDARD_STREAM)
@click.option("--check", is_flag=True, help="Check every line and write nothing.")
@click.option("--skip-bad", is_flag=True, help="Skip invalid lines instead of stopping at the first.")
@common_options
@pass_session
def import_(session: Session, file: Path, check: bool, skip_bad: bool) -> int:
    """Add or replace records from FILE or standard input, one JSON object per line.

    \b
    Example:
      echo '{"id": "note-17", "text": "Top up the boiler."}' | sennit import

    An object needs "id" and "text"; docs/reference/cli.md lists the other fields. Records are written in batches
    of 1000. An invalid line stops the import; the records before it stay in the database.
    """
    from sennit.jsonl import import_records

    label = "Checking (kB)" if check else "Importing (kB)"
    with (
        _open_input(file) as (stream, size),
        _open_writer(session, check) as add,
        output.progress_bar(session, label) as update,
    ):
        report = import_records(
            stream, add, skip_bad=skip_bad, progress=lambda _, done: update(done // 1000, size // 1000)
        )
    _show_report(session, report, check=check)
    return USAGE if report.bad and not (skip_bad and not check) else OK


@contextlib.contextmanager
def _open_input(file: Path) -> Iterator[tuple[BinaryIO, int]]:
    if file == STANDARD_STREAM:
        if sys.stdin.isatty():
            raise click.UsageError("Give a FILE, or pipe JSON lines into this command.")
        yield sys.stdin.buffer, 0
        return
    try:
        stream = file.open("rb")
    except FileNotFoundError:
        raise NotFound(f"There is no file {file}.") from None
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror or error}.") from error
    with stream:
        yield stream, file.stat().st_size


@contextlib.contextmanager
def _open_writer(session: Session, check: bool) -> Iterator[Callable[[list[Record]], WriteCounts] | None]:
    if check:
        yield None
        return
    with session.open(create=True) as db:
        yield db.add


def _show_report(session: Session, report: ImportReport, *, check: bool) -> None:
    stored = report.added + report.updated + report.unchanged
    if session.json:
        output.write_json(
            {
                "read": report.read,
                "added": report.added,
                "updated": report.updated,
                "unchanged": report.unchanged,
                "bad": [{"line": bad.line, "problem": bad.problem} for bad in report.bad],
            }
        )
    for bad in report.bad:
        output.write_error(ErrorMessage("BadLine", str(bad)), as_json=session.json)
    if session.json:
        return
    if check:
        output.write_note(session, f"{output.pluralize(report.read, 'line')} can be imported.")
    else:
        output.write_note(
            session,
            f"{output.pluralize(stored, 'record')}: {report.added:,} added, {report.updated:,} updated, "
            f"{report.unchanged:,} unchanged.",
        )
        if report.bad:
            output.write_note(session, "The imported records stay; you can import the corrected file again.")
