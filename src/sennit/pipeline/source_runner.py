"""Runs the sources of a search: in parallel where they may block, under one deadline."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.context.expansion import Neighbours
from sennit.errors import SennitError, SourceError
from sennit.filters import Filter
from sennit.ranking.fusion import order
from sennit.ranking.stages import ResultStage
from sennit.recipes import Recipe, SourceConfig
from sennit.sources.base import SearchContext, Source, SourceRequest, period_filter
from sennit.stores.contract import BM25, ScoredKeys

MAX_PENDING_CALLS: Final = 4
"""Calls of one source that may be unanswered at once; further searches report the source as busy."""


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Everything a run needs besides the store."""

    recipe: Recipe
    sources: tuple[SourceConfig, ...]
    limit: int
    where: Filter
    bm25: BM25
    deadline: float
    explain: bool
    neighbours: int = 0
    since: datetime | None = None
    """Sources that use the look-back window return nothing older."""
    min_relevance: float = 0.0
    """Hits with a lower relevance are left out."""
    caller_sees_everything: bool = False
    """Whether the trace may show the number of the last change."""

    @property
    def result_stages(self) -> tuple[ResultStage, ...]:
        """The recipe's stages after the cut, and the neighbours that the caller requested."""
        stages = self.recipe.result_stages
        return (*stages, Neighbours(self.neighbours)) if self.neighbours else stages

    @property
    def searched_collections(self) -> tuple[str, ...]:
        """The collections that the sources are limited to, sorted; empty when they search all."""
        return tuple(sorted({name for config in self.sources for name in config.collections}))

    def build_request(self, config: SourceConfig, context: SearchContext) -> SourceRequest:
        """Return the request to one source of the recipe."""
        return SourceRequest(
            context,
            config.candidates.for_limit(self.limit),
            config.build_filter(self.where, self.since),
            self.bm25,
            config.name,
            config.knows_speakers,
        )


@dataclass(slots=True)
class SourceResult:
    """What a source found, or why it failed."""

    found: ScoredKeys
    milliseconds: float
    error: str | None = None
    asked: bool = True
    """False if the query had nothing to ask it."""

    @property
    def answered(self) -> bool:
        """Whether the source was asked and did not fail."""
        return self.asked and self.error is None


class SourceRunner:
    """Calls sources by name."""

    def __init__(self, sources: Mapping[str, Source], custom: Mapping[str, Source]) -> None:
        """`custom` are sources of the user; their answers are checked against the records."""
        self._sources = {**sources, **custom}
        self.custom = frozenset(custom)
        self._pending: Counter[str] = Counter()
        self._lock = threading.Lock()

    def scores(
        self, plan: SearchPlan, config: SourceConfig, context: SearchContext, keys: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the source's scores of these records, whether it found them or not."""
        return self._sources[config.source].scores(plan.build_request(config, context), keys)

    def run_sources(self, plan: SearchPlan, context: SearchContext) -> list[SourceResult]:
        """Run every source of the plan: inline sources in this thread, the others each in a thread of its own."""
        end = time.monotonic() + plan.deadline
        results: list[SourceResult | None] = [None] * len(plan.sources)
        running = []
        for at, config in enumerate(plan.sources):
            source = self._sources.get(config.source)
            if source is not None and not source.inline:
                running.append((at, self._start(source, config, plan.build_request(config, context))))
        for at, config in enumerate(plan.sources):
            source = self._sources.get(config.source)
            if source is None:
                known = ", ".join(sorted(self._sources))
                results[at] = _failure(f"there is no source {config.source!r}; sources: {known}")
            elif source.inline:
                results[at] = self._call(source, config, plan.build_request(config, context))
        for at, wait in running:
            results[at] = wait(end, plan.deadline)
        return [result for result in results if result is not None]

    def _start(
        self, source: Source, config: SourceConfig, request: SourceRequest
    ) -> Callable[[float, float], SourceResult]:
        """Call a source in a new thread; the returned function waits for it until a deadline."""
        with self._lock:
            if self._pending[config.source] >= MAX_PENDING_CALLS:
                busy = f"it is busy: {self._pending[config.source]} earlier calls have not returned"
                return lambda _end, _seconds: _failure(busy)
            self._pending[config.source] += 1
        results: list[SourceResult] = []
        done = threading.Event()

        def work() -> None:
            try:
                results.append(self._call(source, config, request))
            finally:
                with self._lock:
                    self._pending[config.source] -= 1
                done.set()

        threading.Thread(target=work, name=f"sennit-{config.name}", daemon=True).start()

        def wait(end: float, seconds: float) -> SourceResult:
            if done.wait(max(0.0, end - time.monotonic())):
                return results[0]
            request.context.snapshot.abandon()
            return _failure(f"no answer within {seconds:g} s")

        return wait

    def _call(self, source: Source, config: SourceConfig, request: SourceRequest) -> SourceResult:
        began = time.perf_counter()
        try:
            if not config.is_called_for(lambda: request.context.time):
                return SourceResult(ScoredKeys.empty(), 0.0, asked=False)
            found = source.search(request)
            period = request.context.time.period if config.uses_period else None
            if period is not None and config.source not in self.custom:
                inside = source.search(replace(request, where=period_filter(period) & request.where))
                found = _merge(found, inside, request.context)
            if config.source in self.custom:
                found = _check_answer(found, request.limit)
                _check_records(found, request)
            if config.has_threshold:
                passing = config.passes_threshold(found.scores, request.context.background)
                found = ScoredKeys(found.keys[passing], found.scores[passing])
        except SennitError as error:
            return _failure(str(error), began)
        except Exception as error:  # noqa: BLE001 - one source's failure is reported, and the others still answer
            return _failure(f"{type(error).__name__}: {error}", began)
        return SourceResult(found, elapsed_milliseconds(began, time.perf_counter()))


def check_period(plan: SearchPlan, context: SearchContext) -> None:
    """Ignore a period in which nothing lies, and say so: an old memory is better than an empty answer."""
    if not any(config.uses_period for config in plan.sources):
        return
    period = context.time.period
    if period is not None and not context.snapshot.count(period_filter(period) & plan.where):
        context.time = replace(context.time, period=None)
        context.warn("window", f"nothing has a time in {period}; the answer is of all times")


def _merge(found: ScoredKeys, more: ScoredKeys, context: SearchContext) -> ScoredKeys:
    """Return both lists as one, each record once, best first."""
    keys, first = np.unique(np.concatenate([found.keys, more.keys]), return_index=True)
    scores = np.concatenate([found.scores, more.scores])[first]
    best = order(keys, scores, context.ids)
    return ScoredKeys(keys[best], scores[best])


def _failure(reason: str, began: float | None = None) -> SourceResult:
    milliseconds = 0.0 if began is None else elapsed_milliseconds(began, time.perf_counter())
    return SourceResult(ScoredKeys.empty(), milliseconds, reason)


def _check_answer(found: object, limit: int) -> ScoredKeys:
    """Return a custom source's answer as fusion needs it; raise SourceError when it is malformed."""
    if not isinstance(found, tuple) or len(found) != 2:
        raise SourceError(f"its answer is malformed: {type(found).__name__} instead of keys and scores")
    try:
        keys = np.asarray(found[0])
        scores = np.asarray(found[1], np.float64)
    except (TypeError, ValueError) as error:
        raise SourceError(f"its answer is malformed: {error}") from error
    if keys.ndim != 1 or keys.shape != scores.shape:
        raise SourceError("its answer is malformed: keys and scores are not two lists of one length")
    if len(keys) and (keys.dtype.kind not in "iu" or keys.max() > np.iinfo(np.int64).max):
        raise SourceError("its answer is malformed: keys are not whole numbers")
    if not np.isfinite(scores).all():
        raise SourceError("its answer is malformed: a score is not a finite number")
    if len(keys) > 1 and (scores[1:] > scores[:-1]).any():
        raise SourceError("its answer is malformed: scores are not in descending order")
    if len(np.unique(keys)) != len(keys):
        raise SourceError("its answer is malformed: it lists a record twice")
    return ScoredKeys(keys[:limit].astype(np.int64), scores[:limit])


def _check_records(found: ScoredKeys, request: SourceRequest) -> None:
    """Refuse keys that are not records, and records that do not pass the filter, from a custom source."""
    snapshot = request.context.snapshot
    if not snapshot.exists(found.keys).all():
        raise SourceError("its answer is malformed: it has a key that belongs to no record")
    if not all(snapshot.matches(key, request.where) for key in found.keys.tolist()):
        raise SourceError("its answer has a record that does not pass the filter")


def elapsed_milliseconds(began: float, ended: float) -> float:
    """Return the milliseconds between two values of perf_counter."""
    return (ended - began) * 1000
