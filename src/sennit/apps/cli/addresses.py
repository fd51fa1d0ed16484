"""Options of the commands that listen: where, and to whom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from sennit.apps.cli.session import TEXT

F = TypeVar("F", bound=Callable[..., Any])


def listening_at(port: int) -> Callable[[F], F]:
    """--host and --port, with this port where none is named."""

    def add(command: F) -> F:
        named = click.option(
            "--port",
            type=click.IntRange(0, 65535),
            default=port,
            show_default=True,
            help="0: any that is free.",
        )
        where = click.option(
            "--host", type=TEXT, default="127.0.0.1", show_default=True, help="Where to listen."
        )
        return where(named(command))

    return add


allowed_hosts: Final = click.option(
    "--allowed-host",
    "hosts",
    type=TEXT,
    multiple=True,
    help="A Host header that is answered besides the loopback names; repeatable.",
)


def allowed_origins(about: str) -> Callable[[F], F]:
    """--allowed-origin, which says this of itself: what an origin may do depends on what listens."""
    return click.option("--allowed-origin", "origins", type=TEXT, multiple=True, help=f"{about}; repeatable.")
