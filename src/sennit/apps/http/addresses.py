"""By which names, and from which pages, the service may be asked.

A browser sends any page's requests to 127.0.0.1, and a page can give its own name that address (DNS rebinding). So the
Host header must be a name the service is known by, and the Origin header, which browsers send along, its own page or
one that was allowed. Other programs send no Origin.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from sennit.apps.http.errors import Refused
from sennit.apps.listening import LOOPBACK

_HOST: Final = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]\\?#,]+)(?::(\d{1,5}))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Addresses:
    """Names and pages that are answered."""

    any_host: bool = False
    """Whether the Host header does not matter: where tokens are asked for, it protects nothing."""
    hosts: tuple[str, ...] = ()
    """Names besides the loopback ones, with or without a port."""
    origins: tuple[str, ...] = ()
    """Pages besides the service's own."""

    def check(self, hosts: list[str], origins: list[str]) -> None:
        """Refuse a request by the values of its Host and Origin headers."""
        if len(hosts) != 1 or (named := _HOST.fullmatch(hosts[0])) is None:
            raise Refused(400, "A request needs one Host header, with a name and perhaps a port.")
        host = hosts[0].lower()
        name = named[1].lower()
        if not self.any_host and name not in LOOPBACK and not {name, host} & set(map(str.lower, self.hosts)):
            raise Refused(421, "This service is not known by that name; --allowed-host names more.")
        for origin in origins:
            own = origin.lower() in (f"http://{host}", f"https://{host}")
            if not own and origin not in self.origins:
                raise Refused(403, "Pages of other origins may not ask; --allowed-origin names exceptions.")
