"""Limits on a single request, on each caller, and on the whole service."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sennit.errors import InvalidInput

MAX_BATCH_ITEMS: Final = 1000
"""Records, facts or turns in one request. A larger load takes several requests, each acknowledged by itself."""

MAX_URL_QUERY_CHARACTERS: Final = 10_000
"""A query in a URL. The server accepts a request line of 64 KB, so a URL cannot carry the longest query of a body."""

BURST_SECONDS: Final = 2.0
"""A caller who has been idle may send this many seconds' worth of requests at once."""

MAX_TRACKED_CALLERS: Final = 10_000
"""Callers whose rate is tracked. Beyond that, the least recently active are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits that the operator sets when the service starts."""

    max_body_bytes: int = 8 * 1024 * 1024
    timeout_seconds: float = 30.0
    """For a body to arrive, and again for the response."""
    threads: int = 16
    """Requests that are processed at once."""
    max_queued: int = 128
    """Requests that may wait for a thread. Further ones are refused at once."""
    requests_per_second: float = 0.0
    """For each caller. 0 means unlimited."""

    def __post_init__(self) -> None:
        for name, minimum in (
            ("max_body_bytes", 1024),
            ("timeout_seconds", 0.001),
            ("threads", 1),
            ("max_queued", 0),
            ("requests_per_second", 0),
        ):
            if getattr(self, name) < minimum:
                raise InvalidInput(
                    f"The limit {name!r} must be at least {minimum}, not {getattr(self, name)!r}"
                )


class RateLimiter:
    """A token bucket for each caller. Not thread-safe."""

    def __init__(self, requests_per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = requests_per_second
        self._capacity = max(1.0, requests_per_second * BURST_SECONDS)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """For each caller: the requests left in its bucket, and when that was computed."""

    def acquire(self, caller: str) -> float:
        """Count one request. Returns 0 if it is allowed, or else the seconds after which to try again."""
        if not self._rate:
            return 0.0
        now = self._clock()
        left, since = self._buckets.get(caller, (self._capacity, now))
        left = min(self._capacity, left + (now - since) * self._rate)
        wait = 0.0 if left >= 1.0 else (1.0 - left) / self._rate
        self._buckets[caller] = (left if wait else left - 1.0, now)
        self._buckets.move_to_end(caller)
        if len(self._buckets) > MAX_TRACKED_CALLERS:
            self._buckets.popitem(last=False)
        return wait
