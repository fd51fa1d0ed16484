"""The transports of the MCP server: standard input and output, or streamable HTTP."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from sennit.apps.mcp.server import TOKEN_KEY, LazyDatabase
from sennit.apps.sockets import LOOPBACK_NAMES, bearer_token, is_loopback, listen, run_server, socket_url

if TYPE_CHECKING:
    from mcp.server import Server
    from starlette.types import ASGIApp, Receive, Scope, Send

    from sennit.repositories.tokens import Token

PATH: Final = "/mcp"
UNAUTHORIZED: Final = b"A token is required; 'sennit tokens add' makes one."


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTransport:
    """Where to listen, and which requests to accept."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 means any free port."""
    allowed_hosts: tuple[str, ...] = ()
    """Accepted values of the Host header besides the loopback names."""
    allowed_origins: tuple[str, ...] = ()
    """Accepted values of the Origin header besides the loopback ones. Only browsers send this header."""
    require_token: bool = False
    """Whether every caller needs a token. Always true if other machines can reach the host."""


def serve_stdio(server: Server[Any]) -> None:
    """Serve one client over standard input and output, until it closes them."""
    from mcp.server.stdio import stdio_server

    async def run() -> None:
        async with stdio_server() as (read, write):
            # The transport has taken over file descriptor 1. Without this, printed text would stay in Python's buffer
            # and reach the client when the descriptor is restored.
            with contextlib.redirect_stdout(sys.stderr):
                await server.run(read, write, server.create_initialization_options())

    # A thread blocks in a read that Python cannot interrupt. Acknowledged writes are on disk, so the process may be
    # killed by the signal.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(run)


def serve_http(
    server: Server[Any], database: LazyDatabase, transport: HttpTransport, on_ready: Callable[[str], None]
) -> None:
    """Serve over HTTP until interrupted. `on_ready` gets the URL once the socket accepts connections."""
    from mcp.server.transport_security import TransportSecuritySettings

    listener = listen(transport.host, transport.port)
    port = listener.getsockname()[1]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*_with_port(LOOPBACK_NAMES, port), *_with_any_port(transport.allowed_hosts)],
        allowed_origins=[
            *_with_port((f"http://{name}" for name in LOOPBACK_NAMES), port),
            *transport.allowed_origins,
        ],
    )
    app = TokenMiddleware(
        server.streamable_http_app(streamable_http_path=PATH, transport_security=security),
        database,
        require_token=transport.require_token or not is_loopback(transport.host),
    )
    on_ready(f"{socket_url(listener)}{PATH}")
    run_server(app, listener)


class TokenMiddleware:
    """Looks up the bearer token of a request. Rejects an unknown one, and a missing one if a token is required."""

    def __init__(self, app: ASGIApp, database: LazyDatabase, *, require_token: bool) -> None:
        self._app = app
        self._database = database
        self._require_token = require_token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            authorization = [
                value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"
            ]
            secret = bearer_token(authorization)
            token = await anyio.to_thread.run_sync(self._find_token, secret) if secret else None
            if token is None and (authorization or self._require_token):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": UNAUTHORIZED})
                return
            scope = {**scope, TOKEN_KEY: token}
        await self._app(scope, receive, send)

    def _find_token(self, secret: str) -> Token | None:
        # Looked up at each request, so that a revoked token stops working at once.
        return self._database.get().admin.tokens.find(secret)


def _with_port(names: Iterable[str], port: int) -> list[str]:
    """The names as they appear in a header of a client that uses this port."""
    return [value for name in names for value in ([f"{name}:{port}"] + ([name] if port == 80 else []))]


def _with_any_port(names: Iterable[str]) -> list[str]:
    """The names, and for a name without a port also a pattern for any port."""
    return [value for name in names for value in ([name] if _has_port(name) else [name, f"{name}:*"])]


def _has_port(name: str) -> bool:
    return ":" in name.rpartition("]")[2]
