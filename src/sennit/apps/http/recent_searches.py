"""The searches of the last hour, minute by minute, in the memory of this process."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

MINUTES: Final = 60

MAX_SAMPLES: Final = 500
"""Durations that are kept of each minute; of more searches, the latest."""


@dataclass(slots=True)
class _Minute:
    number: int
    searches: int = 0
    durations: deque[float] = field(default_factory=lambda: deque(maxlen=MAX_SAMPLES))
    degraded: Counter[str] = field(default_factory=Counter)
    sources: dict[str, deque[float]] = field(default_factory=dict)


class RecentSearches:
    """Counts searches, their durations and the sources that failed. It knows no query and no caller."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._minutes: deque[_Minute] = deque(maxlen=MINUTES)
        self._lock = threading.Lock()

    def add(
        self, milliseconds: float, degraded: Iterable[str], sources: Mapping[str, float] | None = None
    ) -> None:
        """Count a search; `sources` is how long each of its sources took."""
        number = int(self._clock() // 60)
        with self._lock:
            if not self._minutes or self._minutes[-1].number != number:
                self._minutes.append(_Minute(number))
            minute = self._minutes[-1]
            minute.searches += 1
            minute.durations.append(milliseconds)
            minute.degraded.update(degraded)
            for name, duration in (sources or {}).items():
                minute.sources.setdefault(name, deque(maxlen=MAX_SAMPLES)).append(duration)

    def to_list(self) -> list[dict[str, Any]]:
        """The last hour, the oldest minute first, with a row for every minute."""
        last = int(self._clock() // 60)
        with self._lock:
            known = {minute.number: minute for minute in self._minutes}
            return [
                _describe(known.get(number) or _Minute(number))
                for number in range(last - MINUTES + 1, last + 1)
            ]

    def sources(self) -> list[dict[str, Any]]:
        """The sources that were asked in the last hour, by name, with how often, their durations and their failures."""
        first = int(self._clock() // 60) - MINUTES + 1
        durations: dict[str, list[float]] = {}
        failed: Counter[str] = Counter()
        with self._lock:
            for minute in self._minutes:
                if minute.number >= first:
                    failed.update(minute.degraded)
                    for name, taken in minute.sources.items():
                        durations.setdefault(name, []).extend(taken)
        return [
            {"name": name, "searches": len(taken), **_quantiles(taken), "failed": failed[name]}
            for name, taken in sorted(durations.items())
        ]


def _describe(minute: _Minute) -> dict[str, Any]:
    return {
        "minute": minute.number * 60,
        "searches": minute.searches,
        **_quantiles(minute.durations),
        "degraded": dict(minute.degraded),
        "sources": {name: _quantiles(taken) for name, taken in sorted(minute.sources.items())},
    }


def _quantiles(durations: Iterable[float]) -> dict[str, float]:
    ordered = sorted(durations)

    def quantile(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3) if ordered else 0.0

    return {"p50": quantile(0.5), "p95": quantile(0.95)}
