"""Custom sources that raise, hang or return malformed answers: the others answer, and `degraded` names the failure."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import sennit
from sennit import Database, Recipe, Record, SearchResult
from sennit.errors import InvalidInput, SourceError
from sennit.ranking.fusion import RRF, Weighted
from sennit.recipes import SourceConfig
from sennit.sources.base import SourceRequest
from sennit.sources.keyword import KeywordSource
from sennit.stores.contract import ScoredKeys

RECIPE = Recipe(
    name="with-mine",
    sources=(SourceConfig(source="keyword"), SourceConfig(source="vector"), SourceConfig(source="mine")),
    fusion=RRF(k=60, first_rank=1),
)
PRIVATE = Record(id="private", text="harbour secret", scope="private")


class CustomSource:
    """Answers with whatever its function returns."""

    def __init__(self, answer: Callable[[SourceRequest], Any], *, inline: bool = False) -> None:
        self._answer = answer
        self.inline = inline

    def search(self, request: SourceRequest) -> ScoredKeys:
        found: ScoredKeys = self._answer(request)
        return found

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.full(len(keys), np.nan)


@pytest.fixture
def open_database(tmp_path: Path) -> Iterator[Callable[[CustomSource], Database]]:
    databases = []

    def open_with(mine: CustomSource) -> Database:
        db = sennit.open(tmp_path / "db", sources={"mine": mine}, search__deadline=2.0, privacy__open=True)
        databases.append(db)
        db.add([Record(id=f"r{n}", text=f"harbour number {n}") for n in range(5)])
        db.add([PRIVATE])
        return db

    yield open_with
    for db in databases:
        db.close()


def assert_others_answer(result: SearchResult, reason: str) -> None:
    assert {hit.id for hit in result} >= {f"r{n}" for n in range(5)}
    assert [entry.source for entry in result.degraded] == ["mine"]
    assert reason in result.degraded[0].reason, result.degraded


def key(request: SourceRequest, name: str) -> int:
    found = request.context.snapshot.find_key(name)
    assert found is not None
    return found


def raise_error(error: BaseException) -> Callable[[SourceRequest], Any]:
    def search(request: SourceRequest) -> Any:
        raise error

    return search


def return_value(value: object) -> Callable[[SourceRequest], Any]:
    return lambda request: value


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (raise_error(RuntimeError("the cable is cut")), "RuntimeError: the cable is cut"),
        (raise_error(SourceError("no graph here")), "no graph here"),
        (raise_error(KeyError("x")), "KeyError"),
        (raise_error(MemoryError()), "MemoryError"),
        (return_value(None), "NoneType"),
        (return_value("text"), "str"),
        (return_value(("a", "b")), "malformed"),
        (return_value((["r1", "r2"], [1.0, 0.5])), "not whole numbers"),
        (return_value(([1.5], [1.0])), "not whole numbers"),
        (return_value(([True], [1.0])), "not whole numbers"),
        (return_value(([1, 2], [1.0])), "one length"),
        (return_value(([[1], [2]], [[1.0], [0.5]])), "one length"),
        (return_value((1, 1.0)), "one length"),
        (return_value(([1, 2], ["high", "low"])), "malformed"),
        (return_value(([1, 2], [None, None])), "malformed"),
        (return_value(([1, 2], [float("nan"), 1.0])), "finite"),
        (return_value(([1, 2], [float("inf"), 1.0])), "finite"),
        (return_value(([1, 2], [0.5, 1.0])), "descending"),
        (return_value(([1, 1], [1.0, 0.5])), "twice"),
        (return_value(([10**6], [1.0])), "no record"),
        (return_value(([-1], [1.0])), "no record"),
        (return_value(([2**63], [1.0])), "malformed"),
    ],
)
def test_failing_or_malformed_source_is_reported(
    open_database: Callable[[CustomSource], Database],
    answer: Callable[[SourceRequest], Any],
    reason: str,
    inline: bool,
) -> None:
    db = open_database(CustomSource(answer, inline=inline))
    assert_others_answer(db.search("harbour", recipe=RECIPE), reason)
    assert_others_answer(db.search("harbour", recipe=RECIPE, explain=True), reason)


def test_valid_custom_source_is_fused(open_database: Callable[[CustomSource], Database]) -> None:
    db = open_database(
        CustomSource(lambda request: ScoredKeys(np.array([key(request, "r4")]), np.array([1.0])))
    )
    result = db.search("harbour", recipe=RECIPE, explain=True)
    assert not result.degraded
    assert result[0].id == "r4"
    assert result[0].explanation is not None
    assert [s.rank for s in result[0].explanation.source_scores if s.source == "mine"] == [1]


def test_custom_source_may_return_lists(open_database: Callable[[CustomSource], Database]) -> None:
    db = open_database(CustomSource(lambda request: ([key(request, "r3")], [2])))
    assert db.search("harbour", recipe=RECIPE)[0].id == "r3"


def test_custom_source_may_return_nothing(open_database: Callable[[CustomSource], Database]) -> None:
    db = open_database(CustomSource(return_value(([], []))))
    result = db.search("harbour", recipe=RECIPE)
    assert not result.degraded
    assert len(result) == 6


def test_custom_source_is_cut_to_its_candidate_count(
    open_database: Callable[[CustomSource], Database],
) -> None:
    db = open_database(
        CustomSource(lambda request: ([key(request, f"r{n}") for n in range(5)], [5, 4, 3, 2, 1]))
    )
    result = db.search("harbour", recipe=RECIPE, limit=2, explain=True)
    assert result.trace is not None
    assert len(result.trace.sources[2].keys) == 2


def test_removed_record_is_refused(open_database: Callable[[CustomSource], Database]) -> None:
    keys: list[int] = []

    def search_removed(request: SourceRequest) -> Any:
        if not keys:
            keys.append(key(request, "private"))
        return (keys, [1.0])

    db = open_database(CustomSource(search_removed))
    assert not db.search("harbour", recipe=RECIPE).degraded
    db.remove(["private"])
    assert_others_answer(db.search("harbour", recipe=RECIPE), "no record")


def test_a_source_cannot_get_a_record_past_the_filter(
    open_database: Callable[[CustomSource], Database],
) -> None:
    db = open_database(CustomSource(lambda request: ([key(request, "private")], [9.0])))
    assert "private" in {hit.id for hit in db.search("harbour", recipe=RECIPE)}
    result = db.search("harbour", recipe=RECIPE, filters="scope = 'public'")
    assert_others_answer(result, "filter")
    assert "private" not in {hit.id for hit in result}


def test_hanging_source_is_abandoned_and_not_called_without_end(
    open_database: Callable[[CustomSource], Database],
) -> None:
    never = threading.Event()
    calls: list[int] = []

    def hang(request: SourceRequest) -> Any:
        calls.append(1)
        never.wait(60)
        return request.context.snapshot.count(request.where)

    db = open_database(CustomSource(hang))
    threads = threading.active_count()
    for _ in range(8):
        began = time.monotonic()
        result = db.search("harbour", recipe=RECIPE)
        assert time.monotonic() - began < 20
        assert_others_answer(result, "")
    assert len(calls) == 4
    assert "4 earlier calls" in result.degraded[0].reason
    assert threading.active_count() <= threads + 4
    db.add([Record(id="more", text="harbour more")])
    assert "more" in {hit.id for hit in db.search("harbour", recipe=RECIPE)}
    never.set()


def test_recovered_source_is_called_again(open_database: Callable[[CustomSource], Database]) -> None:
    hold = threading.Event()

    def wait(request: SourceRequest) -> Any:
        hold.wait(60)
        return ([key(request, "r2")], [1.0])

    db = open_database(CustomSource(wait))
    for _ in range(6):
        assert db.search("harbour", recipe=RECIPE).degraded
    hold.set()
    end = time.monotonic() + 10
    while (result := db.search("harbour", recipe=RECIPE)).degraded:
        assert time.monotonic() < end
    assert result[0].id == "r2"


def test_closing_with_a_hanging_source_is_quick(open_database: Callable[[CustomSource], Database]) -> None:
    never = threading.Event()
    db = open_database(CustomSource(lambda request: never.wait(60)))
    assert db.search("harbour", recipe=RECIPE).degraded
    began = time.monotonic()
    db.close()
    assert time.monotonic() - began < 20
    never.set()


def test_unknown_source_is_reported(open_database: Callable[[CustomSource], Database]) -> None:
    db = open_database(CustomSource(return_value(([], []))))
    recipe = Recipe(
        name="x",
        sources=(SourceConfig(source="keyword"), SourceConfig(source="nowhere")),
        fusion=RRF(k=60, first_rank=1),
    )
    result = db.search("harbour", recipe=recipe)
    assert len(result) == 6
    assert result.degraded[0].source == "nowhere"
    assert "keyword" in result.degraded[0].reason


def test_when_every_source_fails_the_result_is_empty_and_degraded(
    open_database: Callable[[CustomSource], Database],
) -> None:
    db = open_database(CustomSource(raise_error(RuntimeError("no"))))
    recipe = Recipe(name="x", sources=(SourceConfig(source="mine"),), fusion=RRF(k=60, first_rank=1))
    result = db.search("harbour", recipe=recipe, explain=True)
    assert len(result) == 0
    assert [entry.source for entry in result.degraded] == ["mine"]
    assert db.why("harbour", "r1", recipe=recipe).kept is False


def test_a_source_can_be_made_from_the_backend_and_anything_else_is_refused() -> None:
    own = {"mine": lambda backend: KeywordSource(backend.keyword)}
    recipe = Recipe(
        name="mine", sources=(SourceConfig(source="mine"),), fusion=Weighted({"mine": 1.0}, "none")
    )
    with sennit.open(":memory:", sources=own) as db:
        db.add([Record(id="a", text="harbour")])
        assert [hit.id for hit in db.search("harbour", recipe=recipe)] == ["a"]
    with pytest.raises(InvalidInput, match="'mine' must have inline, search and scores"):
        sennit.open(":memory:", sources={"mine": "keyword"})  # type: ignore[dict-item]
