"""What commands over files have in common: folders that are named, or those of the database."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from sennit.apps.cli.session import Session
from sennit.errors import NotFound

if TYPE_CHECKING:
    from sennit.engine import Database

F = TypeVar("F", bound=Callable[..., Any])


def named_folders(about: str) -> Callable[[F], F]:
    """--folder, which says this of itself."""
    return click.option(
        "--folder",
        "folders",
        metavar="DIR",
        type=click.Path(path_type=Path),
        multiple=True,
        help=f"{about}; repeatable. Default: the folders of the database.",
    )


def database(session: Session, purpose: str) -> Database:
    """The database, or an error that says what to do `purpose` without one."""
    try:
        return session.open()
    except NotFound as error:
        raise NotFound(f"{error} To {purpose} without a database, name a folder with --folder.") from error
