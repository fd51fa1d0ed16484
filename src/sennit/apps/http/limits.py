"""How much one request, one caller and all of them together may ask for."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sennit.errors import InvalidInput

MAX_QUERY: Final = 10_000
"""Characters of a question; a longer text is a document."""

MAX_BATCH: Final = 1000
"""Records, facts or segments of one request; a larger load is several requests, each confirmed."""

MAX_KEYWORDS: Final = 100

MAX_EDITOR: Final = 500_000
"""Characters of the code in an editor; a longer file is not one that a person is writing. However they are escaped
(twelve bytes at most), so many fit into a body."""

BURST_SECONDS: Final = 2.0
"""A caller who has been quiet may send so many seconds' worth of requests at once."""

MAX_CALLERS: Final = 10_000
"""Whose last requests are remembered; of more than that, the longest quiet are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What the operator decides when the service is started."""

    body: int = 8 * 1024 * 1024
    """Bytes."""
    seconds: float = 30.0
    """For a body to arrive, and for an answer."""
    threads: int = 16
    """Requests that are worked on at once."""
    waiting: int = 128
    """Requests that may wait for that; a further one is sent away at once."""
    rate: float = 0.0
    """Requests per second of one caller; 0: any."""

    def __post_init__(self) -> None:
        for name, least in (("body", 1024), ("seconds", 0.001), ("threads", 1), ("waiting", 0), ("rate", 0)):
            if getattr(self, name) < least:
                raise InvalidInput(
                    f"The limit {name!r} must be at least {least}, not {getattr(self, name)!r}"
                )


class Rates:
    """How fast each caller asks. For one thread."""

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._most = max(1.0, rate * BURST_SECONDS)
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By caller: what was left, and when."""

    def take(self, caller: str) -> float:
        """Take one request: 0 when it may be sent, else the seconds after which it may."""
        if not self._rate:
            return 0.0
        now = self._clock()
        left, since = self._left.get(caller, (self._most, now))
        left = min(self._most, left + (now - since) * self._rate)
        wait = 0.0 if left >= 1.0 else (1.0 - left) / self._rate
        self._left[caller] = (left if wait else left - 1.0, now)
        self._left.move_to_end(caller)
        if len(self._left) > MAX_CALLERS:
            self._left.popitem(last=False)
        return wait
