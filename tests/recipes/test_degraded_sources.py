"""Any of the sources of the recipe `memory` may fail: the others answer, and the result names those that failed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import sennit
from sennit import Fact, Record
from sennit.context.briefing import briefing, memory_from_record
from sennit.sources.base import SourceRequest
from sennit.sources.graph import GraphSource
from sennit.sources.keyword import KeywordSource
from sennit.sources.vector import VectorSource
from sennit.stores.contract import ScoredKeys
from sennit.stores.embedded.roles import LocalGraph, LocalKeyword, LocalVector

SOURCES = ("keyword", "vector", "graph")
SUBSETS = [subset for size in (1, 2, 3) for subset in combinations(SOURCES, size)]


class BrokenSource:
    """A source that fails, hangs or answers nonsense."""

    def __init__(self, how: str, released: threading.Event) -> None:
        self.how = how
        self.released = released
        self.inline = how != "hang"

    def search(self, request: SourceRequest) -> ScoredKeys:
        if self.how == "error":
            raise ConnectionError("the server is gone")
        if self.how == "hang":
            self.released.wait(60)
            return ScoredKeys.empty()
        return ScoredKeys(np.array([10**9, 10**9 + 1]), np.array([float("nan"), 1.0]))

    def scores(self, request: SourceRequest, keys: Any) -> Any:
        return np.full(len(keys), np.nan)


class CustomSource:
    """A real source under its own name."""

    def __init__(self, real: Any) -> None:
        self.inline = True
        self.search = real.search
        self.scores = real.scores


REAL: dict[str, Callable[[], Any]] = {
    "keyword": lambda: KeywordSource(LocalKeyword()),
    "vector": lambda: VectorSource(LocalVector(), inline=True),
    "graph": lambda: GraphSource(LocalGraph(), LocalKeyword(), LocalVector()),
}


@pytest.fixture
def released() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


@pytest.mark.parametrize("how", ["error", "hang", "nonsense"])
@pytest.mark.parametrize("down", SUBSETS, ids="+".join)
def test_remaining_sources_answer_and_failed_ones_are_named(
    down: tuple[str, ...], how: str, released: threading.Event
) -> None:
    sources = {
        name: BrokenSource(how, released) if name in down else CustomSource(REAL[name]()) for name in SOURCES
    }
    with sennit.open(":memory:", sources=sources, search__deadline=0.3) as db:
        db.add([Record(id="turn", text="We plan the Goa trip", metadata={"speaker": "Priya"})])
        db.add_facts([Fact(subject="Priya", relation="plans", object="Goa")])
        result = db.search("What does Priya plan in Goa?", recipe="memory")
        assert {one.source for one in result.degraded} == set(down)
        assert all(one.reason for one in result.degraded)
        assert result.answered == 3 - len(down)
        found = {hit.record.kind or "turn" for hit in result}
        expected = {"turn"} if {"keyword", "vector"} - set(down) else set()
        expected |= set() if "graph" in down else {"fact"}
        assert found == expected
        assert (briefing([memory_from_record(hit.record) for hit in result]) == "") == (not expected)
