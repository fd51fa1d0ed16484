"""Runs a recipe: sources under one deadline, fusion, stages, and the records of what is left."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.analysis import ANALYSIS_ID
from weft.errors import SourceError, WeftError
from weft.filters import EVERYTHING, Filter, In
from weft.ranking.fusion import Fused, fuse, order
from weft.recipes import Recipe, SourceUse
from weft.records import Json
from weft.results import Degraded, Dropped, Hit, Result, SourceTrace, StageTrace, Trace
from weft.sources.base import Ask, Question, Source
from weft.stores.contract import BM25, Found
from weft.stores.embedded.snapshot import Snapshot

CONTRACT: Final = 1
"""The version of docs/ranking-contract.md that these rankings follow."""

MAX_UNANSWERED: Final = 4
"""Calls of one source that may hang at once; further searches report it as busy instead of adding another."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything a run needs besides the store."""

    recipe: Recipe
    limit: int
    where: Filter
    bm25: BM25
    deadline: float
    explain: bool

    def ask(self, use: SourceUse, question: Question) -> Ask:
        """What a source of the recipe is asked."""
        where = self.where
        if use.collections:
            where = In("collection", use.collections) & where
        return Ask(question, use.pool.size(self.limit), where, self.bm25)


@dataclass(slots=True)
class _Answer:
    found: Found
    milliseconds: float
    error: str | None = None


class Pipeline:
    """The one pipeline. It knows sources by name and recipes by value."""

    def __init__(self, sources: Mapping[str, Source], own: Mapping[str, Source]) -> None:
        """`own` are the user's sources: what they answer is checked against the records."""
        self._sources = {**sources, **own}
        self._own = frozenset(own)
        self._hanging: Counter[str] = Counter()
        self._lock = threading.Lock()

    def run(self, plan: Plan, question: Question) -> Result:
        """The answer to a question."""
        began = time.perf_counter()
        recipe = plan.recipe
        answers = self._ask_all(plan, question)
        searched = time.perf_counter()
        lists = [
            (use.name, *found)
            for use, found, answer in zip(
                recipe.sources, self._completed(plan, question, answers), answers, strict=True
            )
            if answer.error is None
        ]
        fused = fuse(recipe.fusion, lists, [use.name for use in recipe.sources])
        ranking = order(fused.keys, fused.scores, question.snapshot.ids, None if plan.explain else plan.limit)
        kept = ranking[: plan.limit]
        keys = fused.keys[kept].tolist()
        records = question.snapshot.records(keys)
        ended = time.perf_counter()
        trace = None
        if plan.explain:
            times = {"sources": _ms(began, searched), "fusion": _ms(searched, ended)}
            trace = _trace(plan, question, answers, fused, ranking, times)
        hits: list[Hit] = []
        for key, score in zip(keys, fused.scores[kept].tolist(), strict=True):
            record = records.get(key)
            if record is not None:
                hits.append(Hit(record, score, len(hits) + 1, trace.explain(key) if trace else None))
        degraded = tuple(
            Degraded(use.name, answer.error)
            for use, answer in zip(recipe.sources, answers, strict=True)
            if answer.error is not None
        )
        return Result(
            question.text, recipe.name, tuple(hits), degraded, trace, _ms(began, time.perf_counter())
        )

    def scores(
        self, plan: Plan, use: SourceUse, question: Question, keys: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The scores that a source of the recipe gives to these records, whether it found them or not."""
        return self._sources[use.source].scores(plan.ask(use, question), keys)

    def _completed(self, plan: Plan, question: Question, answers: Sequence[_Answer]) -> list[Found]:
        """What the sources found; where the recipe says so, with their scores of what only others found."""
        found = [answer.found for answer in answers]
        if not plan.recipe.complete or len(found) < 2:
            return found
        known = [set(keys.tolist()) for keys, _ in found]
        union: set[int] = set().union(*known)
        for at, use in enumerate(plan.recipe.sources):
            missing = np.array(sorted(union - known[at]), np.int64)
            # A list of its own collections has no opinion on others; a user's source is asked once.
            if (
                answers[at].error is None
                and len(missing)
                and not use.collections
                and use.source not in self._own
            ):
                found[at] = _extended(found[at], missing, self.scores(plan, use, question, missing), use)
        return found

    def _ask_all(self, plan: Plan, question: Question) -> list[_Answer]:
        """Each source's answer; those that may wait run beside each other, the others here."""
        end = time.monotonic() + plan.deadline
        answers: list[_Answer | None] = [None] * len(plan.recipe.sources)
        waiting = []
        for at, use in enumerate(plan.recipe.sources):
            source = self._sources.get(use.source)
            if source is not None and not source.inline:
                waiting.append((at, use, self._start(source, use, plan.ask(use, question))))
        for at, use in enumerate(plan.recipe.sources):
            source = self._sources.get(use.source)
            if source is None:
                known = ", ".join(sorted(self._sources))
                answers[at] = _failed(f"there is no source {use.source!r} here; there are: {known}")
            elif source.inline:
                answers[at] = self._call(source, use, plan.ask(use, question))
        for at, _, call in waiting:
            answers[at] = call(end, plan.deadline)
        return [answer for answer in answers if answer is not None]

    def _start(self, source: Source, use: SourceUse, ask: Ask) -> Callable[[float, float], _Answer]:
        """Call a source in a thread of its own, which a search does not wait for beyond its deadline."""
        with self._lock:
            if self._hanging[use.source] >= MAX_UNANSWERED:
                busy = f"it has not answered {self._hanging[use.source]} earlier calls; not asked again yet"
                return lambda _end, _seconds: _failed(busy)
            self._hanging[use.source] += 1
        box: list[_Answer] = []
        done = threading.Event()

        def work() -> None:
            try:
                box.append(self._call(source, use, ask))
            finally:
                with self._lock:
                    self._hanging[use.source] -= 1
                done.set()

        threading.Thread(target=work, name=f"weft-{use.name}", daemon=True).start()

        def wait(end: float, seconds: float) -> _Answer:
            if done.wait(max(0.0, end - time.monotonic())):
                return box[0]
            ask.question.snapshot.abandon()
            return _failed(f"no answer within {seconds:g} s")

        return wait

    def _call(self, source: Source, use: SourceUse, ask: Ask) -> _Answer:
        began = time.perf_counter()
        try:
            found = source.search(ask)
            if use.source in self._own:
                found = _checked(found, ask.pool)
                _check_records(found, ask)
            if use.min_score is not None:
                enough = found.scores >= use.min_score
                found = Found(found.keys[enough], found.scores[enough])
        except WeftError as error:
            return _failed(str(error), began)
        except Exception as error:  # noqa: BLE001 - whatever a source does, the others answer and this is reported
            return _failed(f"{type(error).__name__}: {error}", began)
        return _Answer(found, _ms(began, time.perf_counter()))


def _extended(found: Found, keys: NDArray[np.int64], scores: NDArray[np.float64], use: SourceUse) -> Found:
    """A source's answer with further records; those it has no score for, or too low a one, stay out."""
    usable = scores > max(0.0, use.min_score or 0.0)
    keys = np.concatenate([found.keys, keys[usable]])
    scores = np.concatenate([found.scores, scores[usable]])
    best = np.argsort(-scores, kind="stable")
    return Found(keys[best], scores[best])


def _failed(reason: str, began: float | None = None) -> _Answer:
    return _Answer(Found.nothing(), 0.0 if began is None else _ms(began, time.perf_counter()), reason)


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


def _trace(
    plan: Plan,
    question: Question,
    answers: Sequence[_Answer],
    fused: Fused,
    ranking: NDArray[np.intp],
    times: Mapping[str, float],
) -> Trace:
    snapshot = question.snapshot
    names = snapshot.ids(fused.keys)
    ranked, scores = fused.keys[ranking], fused.scores[ranking]
    last = float(scores[plan.limit - 1]) if len(scores) > plan.limit else 0.0
    ranks = np.full_like(fused.ranks, -1)
    for at, answer in enumerate(answer for answer in answers if answer.error is None):
        # A score that completes the picture is not a rank: the source did not bring the record.
        ranks[at, np.searchsorted(fused.keys, answer.found.keys)] = np.arange(len(answer.found.keys))
    beyond = {
        key: Dropped(
            "limit", f"rank {plan.limit + at} of {len(ranked)}, and {plan.limit} were asked for", score, last
        )
        for at, (key, score) in enumerate(
            zip(ranked[plan.limit :].tolist(), scores[plan.limit :].tolist(), strict=True), 1
        )
    }
    return Trace(
        query=question.text,
        limit=plan.limit,
        filter="" if plan.where == EVERYTHING else str(plan.where),
        recipe={"name": plan.recipe.name, **plan.recipe.to_dict(), "bm25": _bm25(plan.bm25)},
        state=state_of(snapshot),
        sources=tuple(
            SourceTrace(
                use.name,
                use.source,
                use.pool.size(plan.limit),
                answer.found.keys,
                answer.found.scores,
                answer.milliseconds,
                answer.error,
            )
            for use, answer in zip(plan.recipe.sources, answers, strict=True)
        ),
        fused_keys=fused.keys,
        fused_scores=fused.scores,
        shares=fused.terms,
        ranks=ranks,
        source_scores=fused.source_scores,
        stages=(StageTrace("limit", ranked[: plan.limit], scores[: plan.limit], beyond),),
        ids={key: name.decode() for key, name in zip(fused.keys.tolist(), names, strict=True)},
        milliseconds=times,
    )


def state_of(snapshot: Snapshot) -> dict[str, Json]:
    """What an answer depends on besides its settings."""
    return {
        "contract": CONTRACT,
        "analysis": ANALYSIS_ID,
        "model": snapshot.model.fingerprint if snapshot.model else None,
        "change": snapshot.seq,
    }


def _bm25(bm25: BM25) -> dict[str, float]:
    return {"k1": bm25.k1, "b": bm25.b, "text_weight": bm25.text_weight, "title_weight": bm25.title_weight}


def _ms(began: float, ended: float) -> float:
    return (ended - began) * 1000
