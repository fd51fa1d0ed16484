"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sennit.apps.cli.session import TEXT, Command, Session
from sennit.errors import NotFound

if TYPE_CHECKING:
    from sennit.engine import Database


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
