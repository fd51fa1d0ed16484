"""Prometheus metrics. Labels are names of routes, recipes and sources, never of callers or records."""

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

from sennit.apps.http.recent_searches import RecentSearches

if TYPE_CHECKING:
    from sennit.results import Degraded, SearchResult
    from sennit.stores.contract import WriteResult

BUCKET_SECONDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""A search takes a few milliseconds, and at most its deadline."""

MULTIPROCESS_DIR: Final = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable that names the directory where several processes share their metrics."""

METHODS: Final = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS", "PUT", "PATCH"})
OTHER: Final = "other"
"""The label of unknown routes and methods, which keeps the number of series bounded."""

# The creation times would double the number of series.
disable_created_metrics()  # type: ignore[no-untyped-call]


class Metrics:
    """The metrics of one service, summed over its worker processes if it has several."""

    def __init__(self) -> None:
        self.recent = RecentSearches()
        """The last hour, of this process only."""
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "sennit_http_requests",
            "Requests by route, method and status.",
            ("route", "method", "status"),
            registry=self._registry,
        )
        self._request_seconds = Histogram(
            "sennit_http_request_seconds",
            "Duration of requests, by route.",
            ("route",),
            buckets=BUCKET_SECONDS,
            registry=self._registry,
        )
        self.in_flight = Gauge(
            "sennit_http_requests_in_flight",
            "Requests being processed.",
            registry=self._registry,
            multiprocess_mode="livesum",
        )
        self._search_seconds = Histogram(
            "sennit_search_seconds",
            "Duration of searches inside the engine, by recipe.",
            ("recipe",),
            buckets=BUCKET_SECONDS,
            registry=self._registry,
        )
        self._source_failures = Counter(
            "sennit_source_failures",
            "Sources that failed in a search, and language models that failed to write an answer.",
            ("source",),
            registry=self._registry,
        )
        self._records_written = Counter(
            "sennit_records_written",
            "Records added, updated and removed by requests.",
            ("change",),
            registry=self._registry,
        )
        self.vectors_pending = Gauge(
            "sennit_vectors_pending",
            "Records without a vector yet.",
            registry=self._registry,
            multiprocess_mode="mostrecent",
        )

    def record_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a finished request."""
        label = method if method in METHODS else OTHER
        self._requests.labels(route, label, str(status)).inc()
        self._request_seconds.labels(route).observe(seconds)

    def record_search(self, result: SearchResult) -> None:
        """Count a search, and the sources that failed in it."""
        failed = [failure.source for failure in result.degraded]
        self.recent.add(result.milliseconds, failed, result.source_milliseconds)
        self._search_seconds.labels(result.recipe).observe(result.milliseconds / 1000)
        self.record_failures(result.degraded)

    def record_failures(self, degraded: Sequence[Degraded]) -> None:
        """Count sources that failed."""
        for failure in degraded:
            self._source_failures.labels(failure.source).inc()

    def record_write(self, written: WriteResult) -> None:
        """Count written records."""
        for change in ("added", "updated", "removed"):
            self._records_written.labels(change).inc(getattr(written, change))

    def render(self) -> bytes:
        """All metrics, in the Prometheus text format."""
        if MULTIPROCESS_DIR not in os.environ:
            return generate_latest(self._registry)
        summed = CollectorRegistry()
        MultiProcessCollector(summed)  # type: ignore[no-untyped-call]
        return generate_latest(summed)
