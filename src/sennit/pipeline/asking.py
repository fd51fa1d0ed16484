"""What is asked of the sources, and how: those that may wait beside each other, under one deadline."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.errors import SennitError, SourceError
from sennit.filters import Filter
from sennit.recipes import Recipe, SourceUse
from sennit.sources.base import Ask, Question, Source
from sennit.stores.contract import BM25, Found

MAX_UNANSWERED: Final = 4
"""Calls of one source that may hang at once; further searches report it as busy instead of adding another."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a run needs besides the store."""

    recipe: Recipe
    lists: tuple[SourceUse, ...]
    limit: int
    where: Filter
    bm25: BM25
    deadline: float
    explain: bool
    neighbours: int = 0
    since: datetime | None = None
    """Lists that look back ask for nothing older."""
    whole: bool = False
    """Whether the caller is the operator, who may know how often the database has changed."""

    def ask(self, use: SourceUse, question: Question) -> Ask:
        """What a source of the recipe is asked."""
        return Ask(
            question, use.pool.size(self.limit), use.narrowed(self.where, self.since), self.bm25, use.name
        )


@dataclass(slots=True)
class Answer:
    """What a source found, or why it did not answer."""

    found: Found
    milliseconds: float
    error: str | None = None


class Asker:
    """Asks sources by name."""

    def __init__(self, sources: Mapping[str, Source], own: Mapping[str, Source]) -> None:
        """`own` are the user's sources: what they answer is checked against the records."""
        self._sources = {**sources, **own}
        self.own = frozenset(own)
        self._hanging: Counter[str] = Counter()
        self._lock = threading.Lock()

    def scores(
        self, plan: Plan, use: SourceUse, question: Question, keys: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The scores that a source of the recipe gives to these records, whether it found them or not."""
        return self._sources[use.source].scores(plan.ask(use, question), keys)

    def ask_all(self, plan: Plan, question: Question) -> list[Answer]:
        """Each source's answer; those that may wait run beside each other, the others here."""
        end = time.monotonic() + plan.deadline
        answers: list[Answer | None] = [None] * len(plan.lists)
        waiting = []
        for at, use in enumerate(plan.lists):
            source = self._sources.get(use.source)
            if source is not None and not source.inline:
                waiting.append((at, use, self._start(source, use, plan.ask(use, question))))
        for at, use in enumerate(plan.lists):
            source = self._sources.get(use.source)
            if source is None:
                known = ", ".join(sorted(self._sources))
                answers[at] = _failed(f"there is no source {use.source!r} here; there are: {known}")
            elif source.inline:
                answers[at] = self._call(source, use, plan.ask(use, question))
        for at, _, call in waiting:
            answers[at] = call(end, plan.deadline)
        return [answer for answer in answers if answer is not None]

    def _start(self, source: Source, use: SourceUse, ask: Ask) -> Callable[[float, float], Answer]:
        """Call a source in a thread of its own, which a search does not wait for beyond its deadline."""
        with self._lock:
            if self._hanging[use.source] >= MAX_UNANSWERED:
                busy = f"it has not answered {self._hanging[use.source]} earlier calls; not asked again yet"
                return lambda _end, _seconds: _failed(busy)
            self._hanging[use.source] += 1
        box: list[Answer] = []
        done = threading.Event()

        def work() -> None:
            try:
                box.append(self._call(source, use, ask))
            finally:
                with self._lock:
                    self._hanging[use.source] -= 1
                done.set()

        threading.Thread(target=work, name=f"sennit-{use.name}", daemon=True).start()

        def wait(end: float, seconds: float) -> Answer:
            if done.wait(max(0.0, end - time.monotonic())):
                return box[0]
            ask.question.snapshot.abandon()
            return _failed(f"no answer within {seconds:g} s")

        return wait

    def _call(self, source: Source, use: SourceUse, ask: Ask) -> Answer:
        began = time.perf_counter()
        try:
            found = source.search(ask)
            if use.source in self.own:
                found = _checked(found, ask.pool)
                _check_records(found, ask)
            if use.has_threshold:
                enough = use.near_enough(found.scores)
                found = Found(found.keys[enough], found.scores[enough])
        except SennitError as error:
            return _failed(str(error), began)
        except Exception as error:  # noqa: BLE001 - whatever a source does, the others answer and this is reported
            return _failed(f"{type(error).__name__}: {error}", began)
        return Answer(found, milliseconds(began, time.perf_counter()))


def _failed(reason: str, began: float | None = None) -> Answer:
    return Answer(Found.nothing(), 0.0 if began is None else milliseconds(began, time.perf_counter()), reason)


def _checked(found: object, pool: int) -> Found:
    """A source's answer in the form fusion needs; raises SourceError when it makes no sense."""
    if not isinstance(found, tuple) or len(found) != 2:
        raise SourceError(f"its answer makes no sense: {type(found).__name__} instead of keys and scores")
    try:
        keys = np.asarray(found[0])
        scores = np.asarray(found[1], np.float64)
    except (TypeError, ValueError) as error:
        raise SourceError(f"its answer makes no sense: {error}") from error
    if keys.ndim != 1 or keys.shape != scores.shape:
        raise SourceError("its answer makes no sense: keys and scores are not two lists of one length")
    if len(keys) and (keys.dtype.kind not in "iu" or keys.max() > np.iinfo(np.int64).max):
        raise SourceError("its answer makes no sense: keys are not whole numbers")
    if not np.isfinite(scores).all():
        raise SourceError("its answer makes no sense: a score is not a finite number")
    if len(keys) > 1 and (scores[1:] > scores[:-1]).any():
        raise SourceError("its answer makes no sense: scores do not fall")
    if len(np.unique(keys)) != len(keys):
        raise SourceError("its answer makes no sense: a record stands in it twice")
    return Found(keys[:pool].astype(np.int64), scores[:pool])


def _check_records(found: Found, ask: Ask) -> None:
    """Whatever a source of the user's own says, only records are answers, and only those that pass the filter."""
    snapshot = ask.question.snapshot
    if not snapshot.exist(found.keys).all():
        raise SourceError("its answer makes no sense: a key in it is of no record")
    if not all(snapshot.passes(key, ask.where) for key in found.keys.tolist()):
        raise SourceError("its answer has a record that does not pass the filter")


def milliseconds(began: float, ended: float) -> float:
    """Between two moments of perf_counter."""
    return (ended - began) * 1000
