"""How a server of this machine listens, who comes in, and how it runs until it is told to stop."""

from __future__ import annotations

import ipaddress
import signal
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from sennit.errors import InvalidInput

if TYPE_CHECKING:
    from starlette.types import ASGIApp

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
"""What this machine calls itself, as a Host header has it."""

BACKLOG: Final = 512

MAX_TOKEN: Final = 200
"""Characters; ours have 48."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches what listens on a host."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections; port 0: any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise InvalidInput(
            f"Cannot listen on {host} port {port}: {error.strerror or error}. Name another with --host or --port."
        ) from error
    # Connections have it from here. Without it the body of an answer waits until the client has confirmed the head,
    # which clients put off for 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def url_of(listener: socket.socket) -> str:
    """The address of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def bearer(authorization: Sequence[str]) -> str:
    """The token of the one Authorization header, or nothing."""
    if len(authorization) != 1:
        return ""
    scheme, _, token = authorization[0].partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and len(token) <= MAX_TOKEN else ""


def run(app: ASGIApp, listener: socket.socket, **limits: Any) -> None:
    """Serve until interrupted or terminated; requests that are under way are answered first."""
    import uvicorn

    config = uvicorn.Config(
        app,
        # One implementation everywhere, and the stricter one, whatever else is installed.
        http="h11",
        ws="none",
        lifespan="on",
        # Its own log would go to standard output.
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        **limits,
    )
    server = uvicorn.Server(config)

    def stop(*_: Any) -> None:
        server.should_exit = True

    # The server raises the signal again when it has ended; by then it means nothing any more.
    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run(sockets=[listener])
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
