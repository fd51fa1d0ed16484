"""A source of one's own that raises, hangs or returns nonsense: the rest answer, and `degraded` names it."""

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
from sennit import Database, Recipe, Record, Result
from sennit.errors import SourceError
from sennit.ranking.fusion import RRF
from sennit.recipes import SourceUse
from sennit.sources.base import Ask
from sennit.stores.contract import Found

RECIPE = Recipe(
    name="with-mine",
    sources=(SourceUse(source="keyword"), SourceUse(source="vector"), SourceUse(source="mine")),
    fusion=RRF(k=60, first_rank=1),
)
PRIVATE = Record(id="private", text="harbour secret", scope="private")


class Mine:
    """Answers with whatever its function returns."""

    def __init__(self, answer: Callable[[Ask], Any], *, inline: bool = False) -> None:
        self._answer = answer
        self.inline = inline

    def search(self, ask: Ask) -> Found:
        found: Found = self._answer(ask)
        return found

    def scores(self, ask: Ask, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.full(len(keys), np.nan)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[Mine], Database]]:
    databases = []

    def open_with(mine: Mine) -> Database:
        db = sennit.open(tmp_path / "db", sources={"mine": mine}, search__deadline=2.0, privacy__open=True)
        databases.append(db)
        db.add([Record(id=f"r{n}", text=f"harbour number {n}") for n in range(5)])
        db.add([PRIVATE])
        return db

    yield open_with
    for db in databases:
        db.close()


def assert_others_answer(result: Result, reason: str) -> None:
    assert {hit.id for hit in result} >= {f"r{n}" for n in range(5)}
    assert [entry.source for entry in result.degraded] == ["mine"]
    assert reason in result.degraded[0].reason, result.degraded


def key(ask: Ask, name: str) -> int:
    found = ask.question.snapshot.key_of(name)
    assert found is not None
    return found


def raising(error: BaseException) -> Callable[[Ask], Any]:
    def search(ask: Ask) -> Any:
        raise error

    return search


def answering(value: object) -> Callable[[Ask], Any]:
    return lambda ask: value


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (raising(RuntimeError("the cable is cut")), "RuntimeError: the cable is cut"),
        (raising(SourceError("no graph here")), "no graph here"),
        (raising(KeyError("x")), "KeyError"),
        (raising(MemoryError()), "MemoryError"),
        (answering(None), "NoneType"),
        (answering("text"), "str"),
        (answering(("a", "b")), "makes no sense"),
        (answering((["r1", "r2"], [1.0, 0.5])), "not whole numbers"),
        (answering(([1.5], [1.0])), "not whole numbers"),
        (answering(([True], [1.0])), "not whole numbers"),
        (answering(([1, 2], [1.0])), "one length"),
        (answering(([[1], [2]], [[1.0], [0.5]])), "one length"),
        (answering((1, 1.0)), "one length"),
        (answering(([1, 2], ["high", "low"])), "makes no sense"),
        (answering(([1, 2], [None, None])), "makes no sense"),
        (answering(([1, 2], [float("nan"), 1.0])), "finite"),
        (answering(([1, 2], [float("inf"), 1.0])), "finite"),
        (answering(([1, 2], [0.5, 1.0])), "do not fall"),
        (answering(([1, 1], [1.0, 0.5])), "twice"),
        (answering(([10**6], [1.0])), "no record"),
        (answering(([-1], [1.0])), "no record"),
        (answering(([2**63], [1.0])), "makes no sense"),
    ],
)
def test_a_source_that_fails_or_talks_nonsense_is_named(
    opened: Callable[[Mine], Database], answer: Callable[[Ask], Any], reason: str, inline: bool
) -> None:
    db = opened(Mine(answer, inline=inline))
    assert_others_answer(db.search("harbour", recipe=RECIPE), reason)
    assert_others_answer(db.search("harbour", recipe=RECIPE, explain=True), reason)


def test_a_sound_source_counts(opened: Callable[[Mine], Database]) -> None:
    db = opened(Mine(lambda ask: Found(np.array([key(ask, "r4")]), np.array([1.0]))))
    result = db.search("harbour", recipe=RECIPE, explain=True)
    assert not result.degraded
    assert result[0].id == "r4"
    assert result[0].explanation is not None
    assert [s.rank for s in result[0].explanation.standings if s.source == "mine"] == [1]


def test_plain_lists_are_an_answer_too(opened: Callable[[Mine], Database]) -> None:
    db = opened(Mine(lambda ask: ([key(ask, "r3")], [2])))
    assert db.search("harbour", recipe=RECIPE)[0].id == "r3"


def test_a_source_may_answer_nothing(opened: Callable[[Mine], Database]) -> None:
    db = opened(Mine(answering(([], []))))
    result = db.search("harbour", recipe=RECIPE)
    assert not result.degraded
    assert len(result) == 6


def test_more_than_the_pool_is_cut(opened: Callable[[Mine], Database]) -> None:
    db = opened(Mine(lambda ask: ([key(ask, f"r{n}") for n in range(5)], [5, 4, 3, 2, 1])))
    result = db.search("harbour", recipe=RECIPE, limit=2, explain=True)
    assert result.trace is not None
    assert len(result.trace.sources[2].keys) == 2


def test_a_removed_record_is_no_record(opened: Callable[[Mine], Database]) -> None:
    keys: list[int] = []

    def remembered(ask: Ask) -> Any:
        if not keys:
            keys.append(key(ask, "private"))
        return (keys, [1.0])

    db = opened(Mine(remembered))
    assert not db.search("harbour", recipe=RECIPE).degraded
    db.remove(["private"])
    assert_others_answer(db.search("harbour", recipe=RECIPE), "no record")


def test_a_source_cannot_get_a_record_past_the_filter(opened: Callable[[Mine], Database]) -> None:
    db = opened(Mine(lambda ask: ([key(ask, "private")], [9.0])))
    assert "private" in {hit.id for hit in db.search("harbour", recipe=RECIPE)}
    result = db.search("harbour", recipe=RECIPE, filters="scope = 'public'")
    assert_others_answer(result, "filter")
    assert "private" not in {hit.id for hit in result}


def test_a_hanging_source_is_not_waited_for_and_not_piled_up(opened: Callable[[Mine], Database]) -> None:
    never = threading.Event()
    calls: list[int] = []

    def hang(ask: Ask) -> Any:
        calls.append(1)
        never.wait(60)
        return ask.question.snapshot.keyword_search([], ask.bm25, 5, ask.where)

    db = opened(Mine(hang))
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


def test_a_source_that_recovers_is_asked_again(opened: Callable[[Mine], Database]) -> None:
    hold = threading.Event()

    def wait(ask: Ask) -> Any:
        hold.wait(60)
        return ([key(ask, "r2")], [1.0])

    db = opened(Mine(wait))
    for _ in range(6):
        assert db.search("harbour", recipe=RECIPE).degraded
    hold.set()
    end = time.monotonic() + 10
    while (result := db.search("harbour", recipe=RECIPE)).degraded:
        assert time.monotonic() < end
    assert result[0].id == "r2"


def test_closing_with_a_hanging_source_is_quick(opened: Callable[[Mine], Database]) -> None:
    never = threading.Event()
    db = opened(Mine(lambda ask: never.wait(60)))
    assert db.search("harbour", recipe=RECIPE).degraded
    began = time.monotonic()
    db.close()
    assert time.monotonic() - began < 20
    never.set()


def test_a_source_that_is_not_there_is_named(opened: Callable[[Mine], Database]) -> None:
    db = opened(Mine(answering(([], []))))
    recipe = Recipe(
        name="x",
        sources=(SourceUse(source="keyword"), SourceUse(source="nowhere")),
        fusion=RRF(k=60, first_rank=1),
    )
    result = db.search("harbour", recipe=recipe)
    assert len(result) == 6
    assert result.degraded[0].source == "nowhere"
    assert "keyword" in result.degraded[0].reason


def test_when_every_source_fails_the_answer_is_empty_and_says_so(opened: Callable[[Mine], Database]) -> None:
    db = opened(Mine(raising(RuntimeError("no"))))
    recipe = Recipe(name="x", sources=(SourceUse(source="mine"),), fusion=RRF(k=60, first_rank=1))
    result = db.search("harbour", recipe=recipe, explain=True)
    assert len(result) == 0
    assert [entry.source for entry in result.degraded] == ["mine"]
    assert db.why("harbour", "r1", recipe=recipe).kept is False
