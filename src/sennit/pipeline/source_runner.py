"""Runs the sources of a search: in parallel where they may block, under one deadline."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.context.expansion import Neighbours
from sennit.errors import SennitError, SourceError
from sennit.filters import Filter
from sennit.ranking.fusion import order
from sennit.ranking.stages import ResultStage
from sennit.recipes import Recipe, SourceConfig
from sennit.sources.base import Prepared, SearchContext, Source, SourceRequest, SteppedSource, period_filter
from sennit.stores.contract import BM25, PartialKeys, ScoredKeys, Steps
from sennit.stores.search_steps import run_steps, together

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
            self.deadline,
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


class _Call(NamedTuple):
    """One call of one source of a plan."""

    at: int
    source: Source
    config: SourceConfig
    request: SourceRequest


class SourceRunner:
    """Calls sources by name."""

    def __init__(self, sources: Mapping[str, Source], custom: Mapping[str, Source]) -> None:
        """`custom` are sources of the user; their answers are checked against the records."""
        self._sources = {**sources, **custom}
        self.custom = frozenset(custom)
        self._stepped = {
            name: source
            for name, source in sources.items()
            if isinstance(source, SteppedSource) and source.server is not None
        }
        self._servers = {name: source.server for name, source in self._stepped.items()}
        self._prepared = {name: one for name, one in self._sources.items() if isinstance(one, Prepared)}
        self._pending: Counter[str] = Counter()
        self._lock = threading.Lock()

    def scores(
        self, plan: SearchPlan, config: SourceConfig, context: SearchContext, keys: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return the source's scores of these records, whether it found them or not."""
        return self._sources[config.source].scores(plan.build_request(config, context), keys)

    def run_sources(self, plan: SearchPlan, context: SearchContext) -> list[SourceResult]:
        """Run every source of the plan: inline sources in this thread, the others each in a thread of its own.

        Sources whose indexes are on the same server share a thread, and each request to the server.
        """
        for config in plan.sources:
            if config.source in self._prepared:
                self._prepared[config.source].prepare()
        end = time.monotonic() + plan.deadline
        results: list[SourceResult | None] = [None] * len(plan.sources)
        groups: dict[int, list[_Call]] = {}
        for at, config in enumerate(plan.sources):
            source = self._sources.get(config.source)
            if source is None or source.inline:
                continue
            server = self._servers.get(config.source)
            call = _Call(at, source, config, plan.build_request(config, context))
            if self._reserve(call):
                groups.setdefault(-1 - at if server is None else id(server), []).append(call)
            else:
                results[at] = _failure(f"it is busy: {MAX_PENDING_CALLS} earlier calls have not returned")
        running = [self._start(group) for group in groups.values()]
        for at, config in enumerate(plan.sources):
            source = self._sources.get(config.source)
            if source is None:
                known = ", ".join(sorted(self._sources))
                results[at] = _failure(f"there is no source {config.source!r}; sources: {known}")
            elif source.inline:
                call = _Call(at, source, config, plan.build_request(config, context))
                if config.is_plain and config.source not in self.custom:
                    results[at] = self._search_inline(call)
                else:
                    results[at] = run_steps(self._steps(call))
        for wait in running:
            for at, result in wait(end, plan.deadline).items():
                results[at] = result
        return [result for result in results if result is not None]

    def _reserve(self, call: _Call) -> bool:
        """Whether there may be one more unanswered call of a source; then it counts."""
        name = call.config.source
        with self._lock:
            if self._pending[name] >= MAX_PENDING_CALLS:
                return False
            self._pending[name] += 1
        return True

    def _start(self, calls: Sequence[_Call]) -> Callable[[float, float], dict[int, SourceResult]]:
        """Call sources in a new thread; the returned function waits for them until a deadline."""
        results: dict[int, SourceResult] = {}
        done = threading.Event()

        def answer(call: _Call) -> Steps[None]:
            # One that has its answer keeps it when another of the group is late.
            results[call.at] = yield from self._steps(call)

        def work() -> None:
            try:
                run_steps(together([answer(call) for call in calls]))
            finally:
                with self._lock:
                    self._pending.subtract(call.config.source for call in calls)
                done.set()

        names = "+".join(call.config.name for call in calls)
        threading.Thread(target=work, name=f"sennit-{names}", daemon=True).start()

        def wait(end: float, seconds: float) -> dict[int, SourceResult]:
            if done.wait(max(0.0, end - time.monotonic())):
                return results
            calls[0].request.context.snapshot.abandon()
            late = {call.at: _failure(f"no answer within {seconds:g} s") for call in calls}
            return late | dict(results)

        return wait

    def _search_inline(self, call: _Call) -> SourceResult:
        """Call a source of this thread that needs nothing else: `_steps`, without steps."""
        began = time.perf_counter()
        try:
            found = call.source.search(call.request)
        except SennitError as error:
            return _failure(str(error), began)
        except Exception as error:  # noqa: BLE001 - one source's failure is reported, and the others still answer
            return _failure(f"{type(error).__name__}: {error}", began)
        if isinstance(found, PartialKeys):
            call.request.context.warn(call.request.list_name, found.problem)
        return SourceResult(found, elapsed_milliseconds(began, time.perf_counter()))

    def _steps(self, call: _Call) -> Steps[SourceResult]:
        config, request = call.config, call.request
        is_custom = config.source in self.custom
        began = time.perf_counter()
        try:
            if not config.is_called_for(lambda: request.context.time):
                return SourceResult(ScoredKeys.empty(), 0.0, asked=False)
            period = request.context.time.period if config.uses_period and not is_custom else None
            if period is None:
                found = yield from self._search(call, request)
            else:
                inside = request._replace(where=period_filter(period) & request.where)
                found, more = yield from together([self._search(call, request), self._search(call, inside)])
                found = _merge(found, more, request.context)
            if is_custom:
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

    def _search(self, call: _Call, request: SourceRequest) -> Steps[ScoredKeys]:
        stepped = self._stepped.get(call.config.source)
        if stepped is not None:
            found = yield from stepped.steps(request)
        else:
            found = call.source.search(request)
        if isinstance(found, PartialKeys):
            request.context.warn(request.list_name, found.problem)
        return found


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
