"""Limits on a request, on a caller and on the service, and timeouts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from sennit import Recipe
from sennit.apps.http.app import HttpOptions
from sennit.apps.http.limits import BURST_SECONDS, MAX_TRACKED_CALLERS, Limits, RateLimiter
from sennit.errors import InvalidInput
from sennit.ranking.fusion import RRF
from sennit.recipes import SourceConfig
from sennit.sources.base import SourceRequest
from sennit.stores.contract import ScoredKeys

from .conftest import Service, StartService, assert_error, wait_until


class Gate:
    """A source that blocks until it is opened."""

    inline = True

    def __init__(self) -> None:
        self.open = threading.Event()
        self.waiting = threading.Semaphore(0)

    def search(self, request: SourceRequest) -> ScoredKeys:
        self.waiting.release()
        assert self.open.wait(60)
        return ScoredKeys.empty()

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.full(len(keys), np.nan)


@pytest.fixture
def gate() -> Iterator[Gate]:
    gate = Gate()
    yield gate
    gate.open.set()


def slow(service: Service) -> None:
    """Add a recipe that blocks at the gate."""
    recipe = Recipe(name="slow", sources=(SourceConfig(source="gate"),), fusion=RRF())
    service.db.recipes.add(recipe)


def wait_at_the_gate(service: Service) -> Any:
    return service.post("/v1/search", {"query": "x", "recipe": "slow"})


def test_body_over_the_limit_gets_413(serve: StartService) -> None:
    with serve(HttpOptions(limits=Limits(max_body_bytes=2000))) as service:
        fits = {"id": "x", "text": "y" * 1900}
        assert service.post("/v1/records", fits).status_code == 200
        for content in (b" " * 2001, b"{" * 10_000_000):
            refused = service.request(
                "POST", "/v1/records", headers={"content-type": "application/json"}, content=content
            )
            assert "2,000 bytes" in assert_error(refused, 413, "payload_too_large")

        def parts() -> Iterator[bytes]:
            yield from (b" " * 500 for _ in range(100))

        refused = service.request(
            "POST", "/v1/records", headers={"content-type": "application/json"}, content=parts()
        )
        assert_error(refused, 413, "payload_too_large")


def test_full_queue_gets_503_with_retry_after(serve: StartService, gate: Gate) -> None:
    options = HttpOptions(limits=Limits(threads=2, max_queued=1))
    with serve(options, sources={"gate": gate}) as service, ThreadPoolExecutor(3) as clients:
        slow(service)
        busy = [clients.submit(wait_at_the_gate, service) for _ in range(3)]
        for _ in range(2):
            assert gate.waiting.acquire(timeout=60)
        wait_until(lambda: error_or_none(service) is not None, "a refusal")
        refused = service.post("/v1/search", {"query": "x"})
        assert_error(refused, 503, "unavailable")
        assert refused.headers["retry-after"] == "1"
        assert service.get("/healthz").status_code == 200
        gate.open.set()
        assert [one.result().status_code for one in busy] == [200, 200, 200]
        assert service.search("x") is not None


def error_or_none(service: Service) -> object:
    response = service.post("/v1/search", {"query": "x"})
    return response if response.status_code == 503 else None


def test_blocked_requests_do_not_block_others(serve: StartService, gate: Gate) -> None:
    with serve(sources={"gate": gate}) as service, ThreadPoolExecutor(3) as clients:
        slow(service)
        held = [clients.submit(wait_at_the_gate, service) for _ in range(3)]
        for _ in held:
            assert gate.waiting.acquire(timeout=60)
        assert service.search("vineyard")["hits"]
        gate.open.set()
        assert [one.result().status_code for one in held] == [200] * 3


def test_slow_request_gets_504_and_keeps_its_thread(serve: StartService, gate: Gate) -> None:
    options = HttpOptions(limits=Limits(timeout_seconds=0.2, threads=1, max_queued=0))
    with serve(options, sources={"gate": gate}) as service:
        slow(service)
        assert_error(wait_at_the_gate(service), 504, "timeout")
        # The thread is still running, and occupies its place until it ends.
        assert_error(service.post("/v1/search", {"query": "x"}), 503, "unavailable")
        gate.open.set()
        wait_until(lambda: service.post("/v1/search", {"query": "x"}).status_code == 200, "a free thread")


def test_rate_limit_applies_to_each_caller_separately(serve: StartService) -> None:
    with serve(HttpOptions(limits=Limits(requests_per_second=0.5))) as service:
        assert service.get("/v1/context", "reader", query="x").status_code == 200
        refused = service.get("/v1/context", "reader", query="x")
        assert_error(refused, 429, "rate_limited")
        assert 1 <= int(refused.headers["retry-after"]) <= 3
        assert service.get("/v1/context", "writer", query="x").status_code == 200


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_body_bytes": 0},
        {"timeout_seconds": 0},
        {"threads": 0},
        {"max_queued": -1},
        {"requests_per_second": -1},
    ],
)
def test_limits_below_the_minimum_are_rejected(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        Limits(**wrong)


@given(st.floats(0.1, 1000), st.lists(st.floats(0, 5), min_size=1, max_size=200))
def test_rate_limiter_allows_at_most_rate_and_burst(rate: float, pauses: list[float]) -> None:
    now = [0.0]
    rates = RateLimiter(rate, lambda: now[0])
    allowed = 0
    for pause in pauses:
        now[0] += pause
        wait = rates.acquire("a")
        allowed += not wait
        if wait:
            now[0] += wait + 1e-6
            assert rates.acquire("a") == 0
            allowed += 1
    assert allowed <= max(1.0, rate * BURST_SECONDS) + rate * now[0] + 1e-3


def test_number_of_tracked_callers_is_bounded() -> None:
    rates = RateLimiter(1.0, lambda: 0.0)
    for number in range(MAX_TRACKED_CALLERS + 10):
        rates.acquire(str(number))
    assert len(rates._buckets) == MAX_TRACKED_CALLERS
    assert not any(RateLimiter(0).acquire("a") for _ in range(1000))
