"""`sennit read`: print a file, from allowed folders only."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli import output
from sennit.apps.cli.exit_codes import NOT_FOUND, OK, REFUSED, USAGE, ErrorMessage
from sennit.apps.cli.options import folder_option, open_for_files, project_option
from sennit.apps.cli.session import Session, common_options, pass_session
from sennit.context.sanitize import sanitize_for_terminal
from sennit.errors import NotFound
from sennit.places import absolute_path

if TYPE_CHECKING:
    from sennit.engine.database import Database
    from sennit.folders import FileText
    from sennit.records import Record

EXIT_CODES: Final = {"NOT_FOUND": NOT_FOUND, "BAD_PATH": USAGE, "BAD_RANGE": USAGE}
"""The exit code for an error code; all others exit with REFUSED."""

LAST_LINE: Final = (1 << 62) - 1
"""Stands for the end of the file in a range such as `10-`."""

LINES_BEFORE: Final = 5
LINES_AFTER: Final = 60
"""Lines around the one that a picker shows, to fill its preview."""

LineRange = tuple[int, int]
Reader = Callable[[str], "FileText"]


def _parse_lines(_ctx: click.Context, _param: click.Parameter, value: str | None) -> LineRange | None:
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,15})(-([0-9]{1,15})?)?", value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a range of lines such as 10-20, 10- or 10.")
    first, more, last = found.groups()
    return int(first), int(last or LAST_LINE) if more else int(first)


@click.command()
@click.argument("path", metavar="PATH")
@click.option(
    "--lines", metavar="FIRST-LAST", callback=_parse_lines, help="Print only these lines: 10-20, 10- or 10."
)
@project_option
@folder_option("Allow reading from this folder")
@common_options
@pass_session
def read(
    session: Session, path: str, lines: LineRange | None, project: str | None, folders: tuple[Path, ...]
) -> int:
    """Print a UTF-8 text file, if it is in an allowed folder.

    \b
    Example:
      sennit read docs/backup.md:10-20

    PATH may have lines, as a search prints it, or be the id of a record that has a file. It may also be a whole line
    of `search --format`, for the preview of a picker. A relative PATH is tried in the current folder, then in the
    allowed folders. Files outside the allowed folders are never read, not even through symbolic links.
    """
    from sennit.folders import ReadError

    try:
        found = _read(session, path, lines, project, folders)
    except ReadError as error:
        if session.json:
            output.write_error(ErrorMessage("ReadError", str(error)), as_json=True)
        else:
            click.echo(sanitize_for_terminal(str(error)), err=True)
            if error.code == "NOT_TEXT" and not folders:
                output.write_note(session, "'sennit get' prints what was indexed of such a file.")
        return EXIT_CODES.get(error.code, REFUSED)
    if session.json:
        output.write_json(asdict(found))
    elif sys.stdout.isatty():
        output.write_line(sanitize_for_terminal(found.text.replace("\r\n", "\n")))
    else:
        click.echo(found.text.encode(), nl=False)
    return OK


def _read(
    session: Session, path: str, lines: LineRange | None, project: str | None, folders: tuple[Path, ...]
) -> FileText:
    from sennit.folders import FileText, Folders, ReadError

    if folders:
        missing = next((folder for folder in folders if not _exists(str(folder))), None)
        if missing is not None:
            raise NotFound(f"There is no folder {str(missing)!r} to read in.")
        allowed = Folders(folders)
        return _read_place(path, lines, allowed.read)
    with open_for_files(session, "read") as db:
        if project is not None:
            return db.files.read(path, lines=lines, project=project)
        try:
            return _read_place(path, lines, lambda name, span: db.files.read(name, lines=span))
        except ReadError:
            record = _record_without_file(db, path)
            if record is None:
                raise
            count = record.text.count("\n") + 1
            return FileText(record.id, record.text, 1, count, count)


def _read_place(
    path: str, lines: LineRange | None, read: Callable[[str, LineRange | None], FileText]
) -> FileText:
    """Read a path, or what a line of `search --format` leads to, with the lines around it."""
    from sennit.apps.cli.result_lines import parse_line
    from sennit.folders import ReadError

    try:
        return _read_first(path, lambda name: read(name, lines))
    except ReadError as error:
        place, line = parse_line(path)
        if lines is not None or place == path:
            raise
        around = None if line is None else (max(1, line - LINES_BEFORE), line + LINES_AFTER)
        try:
            return _read_first(place, lambda name: read(name, around))
        except ReadError:
            raise error from None


def _record_without_file(db: Database, line: str) -> Record | None:
    """The record that a line of `search --format` leads to, if it has no file."""
    from sennit.apps.cli.result_lines import parse_line
    from sennit.errors import SennitError

    name, number = parse_line(line)
    if name == line or number is not None:
        return None
    try:
        record = db.find(name)
    except SennitError:
        return None
    return record if record.path is None else None


def _read_first(path: str, read: Reader) -> FileText:
    """Read a path relative to the current folder, else relative to one of the allowed folders."""
    from sennit.folders import ReadError

    if path and not Path(path).is_absolute():
        try:
            return read(absolute_path(path))
        except ReadError as error:
            # A file that exists in the current folder is the one meant, even if it may not be read.
            if error.code not in ("NOT_FOUND", "ACCESS_DENIED") or _exists(path):
                raise
    return read(path)


def _exists(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False
