"""`sennit export` and `sennit import`."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from sennit.apps.cli import output
from sennit.apps.cli.exits import OK, USAGE, Complaint
from sennit.apps.cli.session import Session, common, load_settings, pass_session
from sennit.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from sennit.exchange import Counts, Imported
    from sennit.records import Record

STANDARD = Path("-")


@click.command()
@click.argument("file", type=click.Path(path_type=Path), default=STANDARD)
@click.option("--everything", is_flag=True, help="A backup: of every level, scope and tenant.")
@common
@pass_session
def export(session: Session, file: Path, everything: bool) -> None:
    """Write the records that you may see to FILE (default: standard output) as JSON lines, ordered by id.

    'sennit import' gives the same records back. A FILE appears complete or not at all. What you may see is set in
    [privacy]; see docs/privacy.md.
    """
    from sennit.engine.callers import default_audience
    from sennit.exchange import lines, write_file
    from sennit.filters import matches
    from sennit.stores.embedded.codec import SELECT, from_values

    audience = default_audience(load_settings())
    store = session.store()
    try:
        # One moment for both: the header says how many records follow.
        with store.database.read() as connection:
            rows = map(from_values, connection.execute(f"{SELECT} ORDER BY id"))
            count = sum(everything or matches(audience, record) for record in rows)
            rows = map(from_values, connection.execute(f"{SELECT} ORDER BY id"))
            content = lines((record for record in rows if everything or matches(audience, record)), count)
            if file == STANDARD:
                sys.stdout.buffer.writelines(content)
                sys.stdout.buffer.flush()
                return
            write_file(file, content)
    finally:
        store.close()
    if session.json:
        output.emit({"file": str(file), "records": count})
    else:
        output.note(session, f"Wrote {output.counted(count, 'record')} to {file}.")


@click.command("import")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True), default=STANDARD)
@click.option("--check", is_flag=True, help="Only say whether every line is a record; write nothing.")
@click.option(
    "--skip-bad", is_flag=True, help="Leave bad lines out and go on, instead of stopping at the first."
)
@common
@pass_session
def import_(session: Session, file: Path, check: bool, skip_bad: bool) -> int:
    """Add or replace records from FILE (default: standard input), which has one JSON object per line.

    An object needs "id" and "text"; see docs/cli.md for the other fields. Records are added in batches of
    1000. A bad line stops the import; the records before it are in the database.
    """
    from sennit.exchange import import_records

    label = "Checking (kB)" if check else "Importing (kB)"
    with (
        _reading(file) as (stream, size),
        _adding(session, check) as add,
        output.progress(session, label) as update,
    ):
        report = import_records(
            stream, add, skip_bad=skip_bad, progress=lambda _, done: update(done // 1000, size // 1000)
        )
    _report(session, report, check=check)
    return USAGE if report.bad and not (skip_bad and not check) else OK


@contextlib.contextmanager
def _reading(file: Path) -> Iterator[tuple[BinaryIO, int]]:
    if file == STANDARD:
        if sys.stdin.isatty():
            raise click.UsageError("Name a FILE, or pipe JSON lines into this command.")
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
def _adding(session: Session, check: bool) -> Iterator[Callable[[list[Record]], Counts] | None]:
    if check:
        yield None
        return
    with session.open(create=True) as db:
        yield db.add


def _report(session: Session, report: Imported, *, check: bool) -> None:
    stored = report.added + report.updated + report.unchanged
    if session.json:
        output.emit(
            {
                "read": report.read,
                "added": report.added,
                "updated": report.updated,
                "unchanged": report.unchanged,
                "bad": [{"line": bad.line, "problem": bad.problem} for bad in report.bad],
            }
        )
    for bad in report.bad:
        output.complain(Complaint("BadLine", str(bad)), as_json=session.json)
    if session.json:
        return
    if check:
        output.note(session, f"{output.counted(report.read, 'line')} can be imported.")
    else:
        output.note(
            session,
            f"{output.counted(stored, 'record')}: {report.added:,} added, {report.updated:,} updated, "
            f"{report.unchanged:,} unchanged.",
        )
        if report.bad:
            output.note(session, "What was imported stays; importing the mended file again is safe.")
