"""Counters and durations for Prometheus. Labels are names of routes, recipes and sources, never of callers or records."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.process_collector import ProcessCollector

if TYPE_CHECKING:
    from sennit.results import Degraded, Result
    from sennit.stores.embedded.writing import Written

BUCKETS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds: a search takes a few milliseconds, and at most its deadline."""

SHARED: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The variable of the environment that tells the library where several processes keep their figures."""

METHODS: Final = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})
OTHER: Final = "other"

# When a counter began would be a second series for each, of use to nobody.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The figures of one service; where it has several processes, of all of them together."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "sennit_http_requests",
            "Requests by route, method and status.",
            ("route", "method", "status"),
            registry=self._registry,
        )
        self._seconds = Histogram(
            "sennit_http_request_seconds",
            "How long requests took.",
            ("route",),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self.in_flight = Gauge(
            "sennit_http_in_flight",
            "Requests that are being answered.",
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        self._searches = Histogram(
            "sennit_search_seconds",
            "How long searches took inside the engine, by recipe.",
            ("recipe",),
            buckets=BUCKETS,
            registry=self._registry,
        )
        self._failures = Counter(
            "sennit_source_failures",
            "Sources that did not answer a search, and language models that did not write an answer.",
            ("source",),
            registry=self._registry,
        )
        self._records = Counter(
            "sennit_records_written",
            "Records added, updated and removed by requests.",
            ("change",),
            registry=self._registry,
        )
        self.waiting = Gauge(
            "sennit_vectors_waiting",
            "Records that wait for a vector.",
            registry=self._registry,
            multiprocess_mode="mostrecent",
        )

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """A request has been answered."""
        known = method if method in METHODS else OTHER
        self._requests.labels(route, known, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def searched(self, result: Result) -> None:
        """A search was made."""
        self._searches.labels(result.recipe).observe(result.milliseconds / 1000)
        self.missed(result.degraded)

    def missed(self, degraded: Sequence[Degraded]) -> None:
        """Something went without these."""
        for missing in degraded:
            self._failures.labels(missing.source).inc()

    def wrote(self, written: Written) -> None:
        """Records were written."""
        for change in ("added", "updated", "removed"):
            self._records.labels(change).inc(getattr(written, change))

    def page(self) -> bytes:
        """Everything, in the text format."""
        if SHARED not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
