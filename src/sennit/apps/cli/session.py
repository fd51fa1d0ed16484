"""What every command shares: its common options, the database it works on, and logging."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from sennit.apps.cli.output import plain
from sennit.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.settings import Settings
    from sennit.stores.embedded.store import EmbeddedStore

FOLDER: Final = ".sennit"
DATABASE_FILE: Final = "sennit.db"

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Session:
    """The common options of one call, wherever on the command line they stood."""

    db: Path | None = None
    json: bool = False
    quiet: bool = False
    verbose: int = 0

    def existing(self) -> Path:
        """The folder of a database that is there."""
        path = self._named()
        if path is not None:
            if not (path / DATABASE_FILE).is_file():
                raise NotFound(
                    f"There is no sennit database in {path}. Name another with --db, or put records into this "
                    "one with 'sennit import'."
                )
            return path
        found = nearest(Path.cwd())
        if found is None:
            raise NotFound(
                f"There is no sennit database here: no {FOLDER} in {Path.cwd()} or above. Name one with --db or "
                "SENNIT_DB, or make one with 'sennit import'."
            )
        return found

    def writable(self) -> Path:
        """The folder of the database to write to; one in the current folder when there is none yet."""
        return self._named() or nearest(Path.cwd()) or Path(FOLDER)

    def open(self, *, create: bool = False, **overrides: object) -> Database:
        """The database, with its models."""
        import sennit

        path = self.writable() if create else self.existing()
        return sennit.open(path, settings=load_settings(**overrides))

    def store(self) -> EmbeddedStore:
        """The database alone: no model is loaded and no background work begins."""
        from sennit.stores.embedded.store import EmbeddedStore

        return EmbeddedStore(self.existing())

    def _named(self) -> Path | None:
        if self.db is not None:
            return self.db
        named = os.environ.get("SENNIT_DB")
        return Path(named).expanduser() if named else None


def nearest(start: Path) -> Path | None:
    """The database of the nearest folder at or above `start` that has one."""
    for folder in (start, *start.parents):
        if (folder / FOLDER / DATABASE_FILE).is_file():
            return folder / FOLDER
    return None


def load_settings(**overrides: object) -> Settings:
    """The settings in force here."""
    from sennit.settings import load

    return load(overrides={key.replace("__", "."): value for key, value in overrides.items()})


class UnicodeText(click.types.StringParamType):
    """An argument that is text: bytes that are not UTF-8 are refused and not guessed at."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        text = str(super().convert(value, param, ctx))
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InvalidInput(
                f"{param.human_readable_name if param else 'An argument'} is not valid UTF-8 text."
            ) from None
        return text


TEXT: Final = UnicodeText()


class _Handler(logging.Handler):
    """To whatever standard error is at the moment."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(f"sennit: {plain(self.format(record))}", err=True)


def _keep(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        session = ctx.ensure_object(Session)
        if value:
            setattr(session, name, value)
        _configure(ctx, session)

    return callback


def _configure(ctx: click.Context, session: Session) -> None:
    if os.environ.get("NO_COLOR"):
        ctx.color = False
    levels = {0: logging.WARNING, 1: logging.INFO}
    logger = logging.getLogger("sennit")
    logger.setLevel(logging.ERROR if session.quiet else levels.get(session.verbose, logging.DEBUG))
    if not any(isinstance(handler, _Handler) for handler in logger.handlers):
        logger.addHandler(_Handler())


_OPTIONS: Final = (
    click.option(
        "--db",
        type=click.Path(path_type=Path, file_okay=False),
        expose_value=False,
        callback=_keep("db"),
        help="The database folder. Default: SENNIT_DB, else the nearest .sennit here or above.",
    ),
    click.option("--json", is_flag=True, expose_value=False, callback=_keep("json"), help="Answer in JSON."),
    click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        callback=_keep("quiet"),
        help="Only results and errors; no progress and no notes.",
    ),
    click.option(
        "-v",
        "--verbose",
        count=True,
        expose_value=False,
        callback=_keep("verbose"),
        help="Log to standard error; twice for more.",
    ),
)


def common(function: F) -> F:
    """Give a command the options that every command has."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


pass_session: Final = click.make_pass_decorator(Session, ensure=True)
