"""Long calls: progress, cancellation and concurrency; and failed sources."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import anyio
import numpy as np
import pytest
from mcp import Client
from numpy.typing import NDArray

import sennit
from sennit.apps.mcp.server import MAX_CONCURRENT_CALLS, LazyDatabase, make_server
from sennit.settings import load_settings
from sennit.sources.base import SourceRequest
from sennit.stores.contract import ScoredKeys

from .conftest import SampleDatabase, note_of, structured_content_of, text_of

pytestmark = pytest.mark.anyio

ASK = {"query": "vineyard", "recipe": "patient"}


class Patient:
    """A source that blocks until it is released."""

    inline = False

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)
        self.go_on = threading.Event()

    def search(self, _: SourceRequest) -> ScoredKeys:
        self.asked.release()
        assert self.go_on.wait(60)
        return ScoredKeys.empty()

    def scores(self, _: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.zeros(len(keys))


@pytest.fixture
def patient() -> Iterator[Patient]:
    source = Patient()
    yield source
    source.go_on.set()


@pytest.fixture
def opens(sample: SampleDatabase, patient: Patient) -> Callable[[], sennit.Database]:
    return opening(sample, patient, seconds=30)


def opening(sample: SampleDatabase, patient: Patient, seconds: float) -> Callable[[], sennit.Database]:
    """Opens the database with a recipe that uses the blocking source, and this deadline."""
    table = {"sources": ["patient", "keyword"], "fusion": {"method": "rrf"}}
    settings = replace(load_settings(overrides={"search.deadline": seconds}), recipes={"patient": table})
    return lambda: sennit.open(sample.db, settings=settings, sources={"patient": patient})


async def asked(patient: Patient) -> None:
    """Wait until the source is running."""
    assert await anyio.to_thread.run_sync(lambda: patient.asked.acquire(timeout=60))


async def test_long_call_reports_progress(opens: Callable[[], sennit.Database], patient: Patient) -> None:
    signs: list[tuple[float, str | None]] = []

    async def see(progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        signs.append((progress, message))
        if len(signs) == 3:
            patient.go_on.set()

    async with Client(make_server(LazyDatabase(opens), progress_seconds=0.01), mode="legacy") as client:
        answer = await client.call_tool("hybrid_search", ASK, progress_callback=see)
    with structured_content_of(answer):
        assert len(signs) >= 3
    assert [done for done, _ in signs] == sorted({done for done, _ in signs})
    assert all(message and "so far" in message for _, message in signs)


async def test_cancelled_call_returns_at_once_and_others_continue(
    opens: Callable[[], sennit.Database], patient: Patient
) -> None:
    async with Client(make_server(LazyDatabase(opens)), mode="legacy") as client:
        async with anyio.create_task_group() as tasks:

            async def cancelled() -> None:
                await client.call_tool("hybrid_search", ASK)

            tasks.start_soon(cancelled)
            await asked(patient)
            beside = await client.call_tool("hybrid_search", {"query": "vineyard"})
            tasks.cancel_scope.cancel()
        after = await client.call_tool("hybrid_search", {"query": "vineyard"})
    assert not patient.go_on.is_set(), "the source still waits"
    for answer in (beside, after):
        with structured_content_of(answer) as values:
            assert values["results"]


async def test_more_calls_than_threads_all_return(sample: SampleDatabase) -> None:
    answers: list[int] = []
    async with sample.client() as client:

        async def ask() -> None:
            with structured_content_of(
                await client.call_tool("hybrid_search", {"query": "vineyard"})
            ) as values:
                answers.append(values["count"])

        async with anyio.create_task_group() as tasks:
            for _ in range(3 * MAX_CONCURRENT_CALLS):
                tasks.start_soon(ask)
    assert len(answers) == 3 * MAX_CONCURRENT_CALLS
    assert set(answers) == {answers[0]}


async def test_failed_source_is_reported_and_the_others_answer(
    sample: SampleDatabase, patient: Patient
) -> None:
    async with Client(make_server(LazyDatabase(opening(sample, patient, seconds=0.05)))) as client:
        answer = await client.call_tool("hybrid_search", ASK)
    with structured_content_of(answer) as values:
        assert values["results"]
        assert [source["source"] for source in values["degraded"]] == ["patient"]
    assert "Missing from this answer: patient: no answer within 0.05 s" in note_of(answer)


async def test_internal_error_is_logged_and_not_revealed(
    sample: SampleDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    def opens() -> sennit.Database:
        raise RuntimeError(f"secret of {sample.db}")

    async with Client(make_server(LazyDatabase(opens))) as client:
        answer = await client.call_tool("hybrid_search", {"query": "x"})
    assert answer.is_error
    assert (
        text_of(answer)
        == "Search failed: hybrid_search failed inside sennit (RuntimeError); the log says where."
    )
    assert "secret" in caplog.text


async def test_failed_open_is_retried_at_the_next_call(sample: SampleDatabase) -> None:
    tries: list[int] = []

    def opens() -> sennit.Database:
        tries.append(1)
        if len(tries) == 1:
            raise sennit.SennitError("The disk is away. Put it back.")
        return sennit.open(sample.db)

    async with Client(make_server(LazyDatabase(opens))) as client:
        first = await client.call_tool("hybrid_search", {"query": "vineyard"})
        second = await client.call_tool("hybrid_search", {"query": "vineyard"})
        third = await client.call_tool("hybrid_search", {"query": "vineyard"})
    assert text_of(first) == "Search failed: The disk is away. Put it back."
    assert not second.is_error
    assert not third.is_error
    assert len(tries) == 2
