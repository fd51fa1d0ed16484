"""Running the service until it is told to stop."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING, Any, Final

import uvicorn

from weft.apps.http.app import Options, make_app
from weft.apps.http.logs import event
from weft.apps.listening import url_of

if TYPE_CHECKING:
    from weft.engine import Weft

MAX_CONNECTIONS: Final = 1000
"""Open at once; a further one is told that the service is busy."""

KEEP_ALIVE: Final = 30
"""Seconds that a quiet connection stays open."""

GRACE: Final = 5
"""Seconds beyond a request's own that are waited for it at the end."""


def serve(db: Weft, listener: socket.socket, options: Options) -> None:
    """Serve until interrupted or terminated; requests that are under way are answered first."""
    config = uvicorn.Config(
        make_app(db, options),
        # One implementation everywhere, and the stricter one, whatever else is installed.
        http="h11",
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=int(options.limits.seconds) + GRACE,
    )
    server = uvicorn.Server(config)

    def stop(*_: Any) -> None:
        server.should_exit = True

    # The server raises the signal again when it has ended; by then it means nothing any more.
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    event("started", url=url_of(listener))
    try:
        server.run(sockets=[listener])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        event("stopped")
