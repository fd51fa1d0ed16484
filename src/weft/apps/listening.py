"""Where a server of this machine listens."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final

from weft.errors import InvalidInput

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
"""What this machine calls itself, as a Host header has it."""

BACKLOG: Final = 512


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
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise InvalidInput(
            f"Cannot listen on {host} port {port}: {error.strerror or error}. Name another with --host or --port."
        ) from error


def url_of(listener: socket.socket) -> str:
    """The address of a listening socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
