"""What all commands share: the common options, the choice of the database, and logging."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from sennit.apps.cli.imports import without_collection
from sennit.apps.cli.output import allows_colours
from sennit.context.sanitize import sanitize_for_terminal
from sennit.errors import NotFound
from sennit.stores.target import is_postgres
from sennit.user_cache import expand_home

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.settings import Settings

DATABASE_FOLDER: Final = ".sennit"
DATABASE_FILE: Final = "sennit.db"

Command = TypeVar("Command", bound=Callable[..., Any])


@dataclass
class Session:
    """The values of the common options, which may come before or after the command's name."""

    db: Path | str | None = None
    """A folder, or the connection string of a Postgres database, which may hold a password."""
    json: bool = False
    quiet: bool = False
    verbose: int = 0

    def existing_database(self) -> Path | str:
        """Return the folder of the database to use, which must exist, or a connection string."""
        path = self._chosen_database()
        if path is not None:
            if isinstance(path, Path) and not (path / DATABASE_FILE).is_file():
                raise NotFound(
                    f"There is no sennit database in {path}. Choose another with --db, or create this one with "
                    "'sennit index' or 'sennit import'."
                )
            return path
        found = nearest_database(Path.cwd())
        if found is None:
            raise NotFound(
                f"There is no sennit database here: no {DATABASE_FOLDER} in {Path.cwd()} or in a folder above. Create "
                "one with 'sennit index' or 'sennit import', or choose one with --db or SENNIT_DB."
            )
        return found

    def writable_database(self) -> Path | str:
        """Return the database to write to; if there is none, a new one in the current folder."""
        return self._chosen_database() or nearest_database(Path.cwd()) or Path(DATABASE_FOLDER)

    def open(self, *, create: bool = False, background: bool = True, **overrides: object) -> Database:
        """Open the database; without `background`, no work begins that the command does not ask for."""
        with without_collection():
            from sennit.engine import Database

        path = self.writable_database() if create else self.existing_database()
        return Database(path, load_settings(**overrides), background=background)

    def on_this_database(self, command: str) -> str:
        """Return a `sennit` command line with the --db of this one; a connection string may hold a password."""
        if not isinstance(self.db, Path):
            return command
        return f"sennit --db {shlex.quote(str(self.db))} {command.removeprefix('sennit ')}"

    def _chosen_database(self) -> Path | str | None:
        """Return the database from --db or SENNIT_DB, if there is one."""
        if self.db is not None:
            return self.db
        variable = os.environ.get("SENNIT_DB")
        if variable and is_postgres(variable):
            return variable
        return expand_home(variable) if variable else None


def nearest_database(start: Path) -> Path | None:
    """Return the database in `start` or in the nearest folder above that has one."""
    for folder in (start, *start.parents):
        if (folder / DATABASE_FOLDER / DATABASE_FILE).is_file():
            return folder / DATABASE_FOLDER
    return None


def load_settings(**overrides: object) -> Settings:
    """Load the settings that apply in the current folder; `overrides` win over all others."""
    from sennit.settings import load_settings

    return load_settings(overrides={key.replace("__", "."): value for key, value in overrides.items()})


class DatabaseTarget(click.Path):
    """A database folder, or the connection string of a Postgres database."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)
        self.name = "target"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and is_postgres(value):
            return value
        if not value:
            self.fail("it is empty. Give the folder of a database.", param, ctx)
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if path.is_file():
            folder = f", here {str(path.parent)!r}" if path.name == DATABASE_FILE else ""
            self.fail(f"{str(path)!r} is a file. A database is a folder{folder}.", param, ctx)
        return path


class UnicodeText(click.types.StringParamType):
    """A text argument; refuses bytes that are not UTF-8."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(super().convert(value, param, ctx))
        try:
            text.encode()
        except UnicodeEncodeError:
            try:
                # Where Python does not take the locale for UTF-8, it escapes every byte that is not ASCII.
                return os.fsencode(text).decode()
            except UnicodeError:
                self.fail("it is not valid UTF-8 text.", param, ctx)
        return text


TEXT: Final = UnicodeText()


class OutputFile(click.Path):
    """A file that is written at the end of long work; refused at the beginning if it cannot be."""

    def __init__(self) -> None:
        super().__init__(path_type=Path, dir_okay=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        path = Path(os.fsdecode(super().convert(value, param, ctx)))
        if not path.parent.is_dir():
            self.fail(f"there is no folder {str(path.parent)!r}.", param, ctx)
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            self.fail(f"{str(path)!r} cannot be written: permission denied.", param, ctx)
        return path


OUTPUT_FILE: Final = OutputFile()


class _StderrHandler(logging.Handler):
    """Writes to the current standard error, which tests replace."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"sennit: {sanitize_for_terminal(self.format(record))}", err=True)


def _store_in_session(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        session = ctx.ensure_object(Session)
        if value:
            setattr(session, name, value)
        _configure(ctx, session)

    return callback


def _configure(ctx: click.Context, session: Session) -> None:
    if not allows_colours():
        ctx.color = False
    levels = {0: logging.WARNING, 1: logging.INFO}
    logger = logging.getLogger("sennit")
    logger.setLevel(logging.ERROR if session.quiet else levels.get(session.verbose, logging.DEBUG))
    if not any(isinstance(handler, _StderrHandler) for handler in logger.handlers):
        logger.addHandler(_StderrHandler())


_OPTIONS: Final = (
    click.option(
        "--db",
        type=DatabaseTarget(),
        expose_value=False,
        callback=_store_in_session("db"),
        help="Database folder, or postgresql://… . Default: $SENNIT_DB, else the nearest .sennit here or above.",
    ),
    click.option(
        "--json", is_flag=True, expose_value=False, callback=_store_in_session("json"), help="Print JSON."
    ),
    click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=_store_in_session("quiet"),
        help="Print only results and errors.",
    ),
    click.option(
        "-v",
        "--verbose",
        count=True,
        expose_value=False,
        callback=_store_in_session("verbose"),
        help="Log to standard error; -vv logs more.",
    ),
)


def common_options(command: Command) -> Command:
    """Add the options that every command has."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


pass_session: Final = click.make_pass_decorator(Session, ensure=True)
