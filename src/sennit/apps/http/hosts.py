"""Checks of the Host and Origin headers, against requests that a foreign web page makes through the user's browser.

A browser lets any page send requests to 127.0.0.1, and a page can point its own host name at that address (DNS
rebinding). So the Host header must name this service, and the Origin header, which browsers send, must be the service's
own origin or an allowed one. Programs other than browsers send no Origin header.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from sennit.apps.http.errors import HttpError
from sennit.apps.sockets import LOOPBACK_NAMES

_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]\\?#,]+)(?::(\d{1,5}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostPolicy:
    """Which Host and Origin headers are accepted."""

    any_host: bool = False
    """Accept every Host header. Where every request needs a token, checking it protects nothing."""
    hosts: tuple[str, ...] = ()
    """Accepted hosts besides the loopback names, with or without a port."""
    origins: tuple[str, ...] = ()
    """Accepted origins besides the service's own."""

    def check(self, hosts: list[str], origins: list[str]) -> None:
        """Raise HttpError if the values of the Host and Origin headers are not accepted."""
        if len(hosts) != 1 or (parsed := _HOST.fullmatch(hosts[0])) is None:
            raise HttpError(400, "A request needs exactly one Host header: a name and an optional port.")
        host = hosts[0].lower()
        name = parsed[1].lower()
        if (
            not self.any_host
            and name not in LOOPBACK_NAMES
            and not {name, host} & set(map(str.lower, self.hosts))
        ):
            raise HttpError(
                421, "The Host header does not name this service; --allowed-host accepts more names."
            )
        for origin in origins:
            same_origin = origin.lower() in (f"http://{host}", f"https://{host}")
            if not same_origin and origin not in self.origins:
                raise HttpError(
                    403, "Requests from other origins are refused; --allowed-origin accepts an origin."
                )
