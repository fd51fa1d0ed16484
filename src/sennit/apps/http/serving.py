"""Running the service until it is told to stop."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from sennit.apps.http.app import Options, make_app
from sennit.apps.http.logs import event
from sennit.apps.listening import run, url_of

if TYPE_CHECKING:
    from sennit.engine import Database

MAX_CONNECTIONS: Final = 1000
"""Open at once; a further one is told that the service is busy."""

KEEP_ALIVE: Final = 30
"""Seconds that a quiet connection stays open."""

GRACE: Final = 5
"""Seconds beyond a request's own that are waited for it at the end."""


def serve(db: Database, listener: socket.socket, options: Options) -> None:
    """Serve until interrupted or terminated; requests that are under way are answered first."""
    event("started", url=url_of(listener))
    try:
        answer(db, listener, options)
    finally:
        event("stopped")


def answer(db: Database, listener: socket.socket, options: Options) -> None:
    """Serve without a word in the log of beginning and end."""
    run(
        make_app(db, options),
        listener,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(options.limits.seconds) + GRACE,
    )
