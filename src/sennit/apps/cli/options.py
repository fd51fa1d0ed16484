"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from sennit.apps.cli.session import TEXT, Command, Session
from sennit.errors import NotFound
from sennit.search_parameters import Count, Hours, Parameter, Texts

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.engine.search_request import SearchRequest


def host_and_port(default_port: int) -> Callable[[Command], Command]:
    """Add --host and --port to a command that listens."""

    def add(command: Command) -> Command:
        port = click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=default_port,
            show_default=True,
            help="Port to listen on; 0 picks a free one.",
        )
        host = click.option(
            "--host", type=TEXT, default="127.0.0.1", show_default=True, help="Address to listen on."
        )
        return host(port(command))

    return add


FILTER_HELP: Final = "Condition on records, e.g. 'kind = \"note\" and timestamp >= 2026-01-01'."

allowed_hosts: Final = click.option(
    "--allowed-host",
    "hosts",
    type=TEXT,
    multiple=True,
    help="Accept this Host header besides the loopback names; repeatable.",
)


def allowed_origins(help_text: str) -> Callable[[Command], Command]:
    """Add --allowed-origin; the meaning depends on the server, so the command gives the help text."""
    return click.option(
        "--allowed-origin", "origins", type=TEXT, multiple=True, help=f"{help_text}; repeatable."
    )


def search_option(
    parameter: Parameter, *names: str, help_text: str = "", default: object = None
) -> Callable[[Command], Command]:
    """Add the option of a parameter of a search. Its help has the bounds, which the request checks."""
    types = {Count: click.INT, Hours: click.FLOAT}
    return click.option(
        *names,
        type=types.get(type(parameter), TEXT),
        multiple=isinstance(parameter, Texts),
        metavar="HOURS" if isinstance(parameter, Hours) else None,
        default=() if isinstance(parameter, Texts) else default,
        show_default=default is not None,
        help=f"{help_text or parameter.help}{_bounds(parameter)}",
    )


def _bounds(parameter: Parameter) -> str:
    """The bounds that a person may run into."""
    return f" {parameter.bounds.capitalize()}." if isinstance(parameter, Count | Hours) else ""


def build_request(
    query: str, *, keywords: tuple[str, ...] = (), look_back: float | None = None, **options: Any
) -> SearchRequest:
    """Make the request of a search from the values of its options."""
    from sennit.engine.search_request import SearchRequest

    return SearchRequest(
        query, keywords=keywords or None, look_back=False if look_back is None else look_back, **options
    )


def query_words(command: Command) -> Command:
    """Add the argument QUERY; several words without quotes are one query."""
    return click.argument(
        "query", metavar="QUERY...", type=TEXT, nargs=-1, required=True, callback=_join_words
    )(command)


def _join_words(_ctx: click.Context, _param: click.Parameter, words: tuple[str, ...]) -> str:
    return " ".join(words)


def folder_option(help_text: str) -> Callable[[Command], Command]:
    """Add --folder, with which a command reads files without a database."""
    return click.option(
        "--folder",
        "folders",
        metavar="DIR",
        type=click.Path(path_type=Path),
        multiple=True,
        help=f"{help_text}; repeatable. Default: the folders of the database.",
    )


def open_for_files(session: Session, verb: str) -> Database:
    """Open the database; if there is none, the error says how to `verb` files without one."""
    try:
        return session.open()
    except NotFound as error:
        raise NotFound(f"{error} To {verb} files without a database, give a folder with --folder.") from error
