"""How a server is reached: over standard input and output, or over streamable HTTP."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from sennit.apps.listening import LOOPBACK, bearer, is_loopback, listen, run, url_of
from sennit.apps.mcp.server import TOKEN, Desk

if TYPE_CHECKING:
    from mcp.server import Server
    from starlette.types import ASGIApp, Receive, Scope, Send

    from sennit.stores.embedded.permits import Token

PATH: Final = "/mcp"
REFUSED: Final = b"A token is needed; 'sennit tokens add' makes one."


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """Where to listen, whom to answer, and what a client has to show."""

    host: str = "127.0.0.1"
    port: int = 0
    """0: any that is free."""
    hosts: tuple[str, ...] = ()
    """Values of the Host header that are answered, besides the loopback names."""
    origins: tuple[str, ...] = ()
    """Values of the Origin header that are answered, besides the loopback ones; a client without one is not a page."""
    tokens: bool = False
    """Whether every caller must show a token; where other machines can come in, they must."""


def serve_stdio(server: Server[Any]) -> None:
    """Serve one client over standard input and output, until it closes them."""
    from mcp.server.stdio import stdio_server

    async def run() -> None:
        async with stdio_server() as (read, write):
            # The transport has taken the descriptors; what anything prints must not wait in a buffer for their return.
            with contextlib.redirect_stdout(sys.stderr):
                await server.run(read, write, server.create_initialization_options())

    # A thread waits in a read that nothing interrupts. What was confirmed is on disk, so the process may just end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(run)


def serve_http(server: Server[Any], desk: Desk, address: Address, ready: Callable[[str], None]) -> None:
    """Serve over HTTP until interrupted; `ready` is told the address once connections are taken."""
    from mcp.server.transport_security import TransportSecuritySettings

    listener = listen(address.host, address.port)
    port = listener.getsockname()[1]
    allowed = TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*_with_port(LOOPBACK, port), *_with_any_port(address.hosts)],
        allowed_origins=[*_with_port((f"http://{name}" for name in LOOPBACK), port), *address.origins],
    )
    app = Door(
        server.streamable_http_app(streamable_http_path=PATH, transport_security=allowed),
        desk,
        tokens=address.tokens or not is_loopback(address.host),
    )
    ready(f"{url_of(listener)}{PATH}")
    run(app, listener)


class Door:
    """Lets in who shows a token of the database, as the caller it stands for; and others, where none is needed."""

    def __init__(self, app: ASGIApp, desk: Desk, *, tokens: bool) -> None:
        self._app = app
        self._desk = desk
        self._needed = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            given = [value.decode("latin-1") for name, value in scope["headers"] if name == b"authorization"]
            shown = bearer(given)
            token = await anyio.to_thread.run_sync(self._known, shown) if shown else None
            if token is None and (given or self._needed):
                headers = [(b"www-authenticate", b"Bearer"), (b"content-type", b"text/plain")]
                await send({"type": "http.response.start", "status": 401, "headers": headers})
                await send({"type": "http.response.body", "body": REFUSED})
                return
            scope = {**scope, TOKEN: token}
        await self._app(scope, receive, send)

    def _known(self, shown: str) -> Token | None:
        # Looked up at each request: one that is taken back is taken back at once.
        return self._desk.db().permits.token(shown)


def _with_port(names: Iterable[str], port: int) -> list[str]:
    """Names as a client writes them that reaches this port."""
    return [written for name in names for written in ([f"{name}:{port}"] + ([name] if port == 80 else []))]


def _with_any_port(names: Iterable[str]) -> list[str]:
    """Names as they are; one without a port also with any."""
    return [written for name in names for written in ([name] if _has_port(name) else [name, f"{name}:*"])]


def _has_port(name: str) -> bool:
    return ":" in name.rpartition("]")[2]
