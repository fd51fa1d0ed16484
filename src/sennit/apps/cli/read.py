"""`sennit read`: the text of a file, from allowed folders only."""

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
from sennit.apps.cli.exits import NOT_FOUND, OK, REFUSED, USAGE, Complaint
from sennit.apps.cli.folders import database, named_folders
from sennit.apps.cli.session import Session, common, pass_session

if TYPE_CHECKING:
    from sennit.folders import FileText

EXIT_CODES: Final = {"NOT_FOUND": NOT_FOUND, "BAD_PATH": USAGE, "BAD_RANGE": USAGE}
"""By the code of the error; every other is a refusal."""

END: Final = (1 << 62) - 1

Lines = tuple[int, int]
Read = Callable[[str], "FileText"]


def _range(_ctx: click.Context, _param: click.Parameter, value: str | None) -> Lines | None:
    if value is None:
        return None
    found = re.fullmatch(r"([0-9]{1,15})(-([0-9]{1,15})?)?", value)
    if found is None:
        raise click.BadParameter(f"{value!r} is not a range of lines such as 10-20, 10- or 10.")
    first, more, last = found.groups()
    return int(first), int(last or END) if more else int(first)


@click.command()
@click.argument("path", metavar="PATH")
@click.option("--lines", metavar="FIRST-LAST", callback=_range, help="Only these: 10-20, 10- or 10.")
@named_folders("A folder that may be read")
@common
@pass_session
def read(session: Session, path: str, lines: Lines | None, folders: tuple[Path, ...]) -> int:
    """Print the UTF-8 text of the file at PATH, if it is in an allowed folder.

    A relative PATH is looked for in the current folder, then in the allowed ones. Whatever PATH and links on its way
    are, nothing outside the allowed folders is read.
    """
    from sennit.folders import ReadError

    try:
        found = _found(session, path, lines, folders)
    except ReadError as error:
        if session.json:
            output.complain(Complaint("ReadError", str(error)), as_json=True)
        else:
            click.echo(output.plain(str(error)), err=True)
        return EXIT_CODES.get(error.code, REFUSED)
    if session.json:
        output.emit(asdict(found))
    elif sys.stdout.isatty():
        output.say(output.plain(found.text.replace("\r\n", "\n")))
    else:
        click.echo(found.text.encode(), nl=False)
    return OK


def _found(session: Session, path: str, lines: Lines | None, folders: tuple[Path, ...]) -> FileText:
    if folders:
        from sennit.folders import Folders

        allowed = Folders(folders)
        return _here_or_there(path, lambda name: allowed.read(name, lines))
    with database(session, "read") as db:
        return _here_or_there(path, lambda name: db.read_file(name, lines=lines))


def _here_or_there(path: str, read: Read) -> FileText:
    """A relative path as the shell would take it, else as one of the allowed folders has it."""
    from sennit.folders import ReadError

    if path and not Path(path).is_absolute():
        try:
            return read(f"{Path.cwd()}{os.sep}{path}")
        except ReadError as error:
            # What is there for whoever runs this is what was meant, even if it may not be read.
            if error.code not in ("NOT_FOUND", "ACCESS_DENIED") or _is_there(path):
                raise
    return read(path)


def _is_there(path: str) -> bool:
    try:
        return os.path.lexists(path)
    except ValueError:
        return False
