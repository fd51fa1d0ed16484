"""What the HTTP service and the MCP server share: the listening socket, bearer tokens, and the server loop."""

from __future__ import annotations

import errno
import ipaddress
import signal
import socket
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from sennit.errors import InvalidInput

if TYPE_CHECKING:
    import asyncio

    from starlette.types import ASGIApp

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
"""Names of the loopback interface as they appear in a Host header."""

LISTEN_BACKLOG: Final = 512
MAX_TOKEN_CHARACTERS: Final = 200
"""Longer tokens are rejected without a lookup. Tokens issued by sennit have 48 characters."""


def is_loopback(host: str) -> bool:
    """Whether a host is reachable only from this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def listen(host: str, port: int) -> socket.socket:
    """Open a listening socket. Port 0 means any free port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=LISTEN_BACKLOG)
    except OSError as error:
        # Python adds the address, which is named already.
        reason = (error.strerror or str(error)).partition(" (while")[0]
        is_port = error.errno in (errno.EADDRINUSE, errno.EACCES)
        advice = (
            "Choose another port with --port; 0 picks a free one." if is_port else "Choose another --host."
        )
        raise InvalidInput(f"Cannot listen on {host} port {port}: {reason}. {advice}") from error
    # Accepted connections inherit this option. Without it, Nagle's algorithm holds back the response body until the
    # client acknowledges the headers, and delayed ACK makes that 40 ms.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def socket_url(listener: socket.socket) -> str:
    """The URL of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def bearer_token(authorization: Sequence[str]) -> str:
    """The bearer token of the only Authorization header, or an empty string."""
    if len(authorization) != 1:
        return ""
    scheme, _, token = authorization[0].partition(" ")
    token = token.strip()
    return token if scheme.lower() == "bearer" and len(token) <= MAX_TOKEN_CHARACTERS else ""


def run_server(
    app: ASGIApp,
    listener: socket.socket,
    *,
    protocol: type[asyncio.Protocol] | Literal["h11"] = "h11",
    event_loop: Literal["asyncio", "uvloop"] = "asyncio",
    **limits: Any,
) -> None:
    """Serve until SIGINT or SIGTERM. Requests in flight are finished first.

    Protocol and loop are always the named ones, whatever else is installed. The defaults are those in plain Python.
    """
    import uvicorn

    config = uvicorn.Config(
        app,
        http=protocol,
        loop=event_loop,
        ws="none",
        lifespan="on",
        # uvicorn's default configuration logs to standard output.
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=LISTEN_BACKLOG,
        **limits,
    )
    server = uvicorn.Server(config)

    def stop(*_: Any) -> None:
        server.should_exit = True

    # uvicorn raises the captured signal again after it has stopped. These handlers are still installed then, so the
    # process is not killed by it.
    previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        server.run(sockets=[listener])
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
