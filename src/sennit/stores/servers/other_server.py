"""What answers at an address may be another program than the settings say: a proxy, a web page, another search engine."""

from __future__ import annotations

from typing import Final

from sennit.errors import SourceError

UNKNOWN_PATH: Final = frozenset((301, 302, 303, 307, 308, 404, 405))
"""How an HTTP server answers that does not know the path of a request, or sends the reader elsewhere."""


def may_be_any(status: int) -> bool:
    """Whether every server answers so, and a proxy before it: it refuses, has too much to do, or fails."""
    return status in (401, 403, 429) or status >= 500


class OtherServer(SourceError):
    """Something else answers than the server that the settings expect."""

    def __init__(self, place: str, expected: str, setting: str) -> None:
        super().__init__(f"what answers at {place} is not {expected}; {setting} names this address")
