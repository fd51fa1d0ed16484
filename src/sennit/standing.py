"""Why a record is in an answer, or not: the stage and the number that decided."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sennit.errors import SennitError
from sennit.filters import EVERYTHING
from sennit.pipeline import Pipeline, Plan
from sennit.recipes import DISTANCES, SourceUse
from sennit.results import Result, SourceTrace, Standing, Why
from sennit.sources.base import Question


@dataclass(frozen=True, slots=True)
class _Miss:
    """Why one source did not bring a record: its score, and the score it would have needed."""

    source: str
    reason: str
    score: float | None
    needed: float | None


def stand(
    pipeline: Pipeline, plan: Plan, question: Question, result: Result, record_id: str, key: int
) -> Why:
    """What became of a record in a result that carries its trace."""
    trace = result.trace
    if trace is None:
        raise ValueError("only a result with a trace can be asked why")
    hit = next((hit for hit in result.hits if hit.id == record_id), None)
    if hit is not None and hit.explanation is not None:
        return Why(
            record_id,
            kept=True,
            stage="result",
            reason=f"rank {hit.rank} of {len(result)}: " + _shares(hit.explanation.standings),
            number=hit.score,
            needed=result.hits[-1].score,
            rank=hit.rank,
            standings=hit.explanation.standings,
            degraded=result.degraded,
            answered=result.answered,
        )
    if plan.where != EVERYTHING and not question.snapshot.passes(key, plan.where):
        return _dropped(record_id, result, "filter", f"it does not pass the filter {plan.where}")
    head = trace.gave_way.get(key)
    if head is not None:
        return _dropped(
            record_id, result, "join", f"it is the same place as {trace.ids[head]}, which stands for both"
        )
    explanation = trace.explain(key)
    drop = trace.dropped(key)
    if explanation is not None and drop is not None:
        return _dropped(
            record_id, result, drop.stage, drop.reason, drop.number, drop.needed, explanation.standings
        )
    misses = [
        _miss(pipeline, plan, question, use, source, key)
        for use, source in zip(plan.lists, trace.sources, strict=True)
    ]
    return _not_found(record_id, result, misses)


def _miss(
    pipeline: Pipeline, plan: Plan, question: Question, use: SourceUse, source: SourceTrace, key: int
) -> _Miss:
    if source.error is not None:
        return _Miss(use.name, f"{use.name} did not answer ({source.error})", None, None)
    ask = plan.ask(use, question)
    if ask.where != plan.where and not question.snapshot.passes(key, ask.where):
        only = ", ".join(use.collections) or use.where
        return _Miss(use.name, f"{use.name} searches only {only}", None, None)
    try:
        score = float(pipeline.scores(plan, use, question, np.array([key], np.int64))[0])
    except SennitError as error:
        return _Miss(use.name, f"{use.name} cannot score it ({error})", None, None)
    if math.isnan(score):
        return _Miss(use.name, f"{use.name} does not have it (yet)", None, None)
    if use.min_score is not None and score < use.min_score:
        return _Miss(use.name, f"{use.name} {score:.4f} is below its threshold", score, use.min_score)
    if use.max_distance is not None and not use.near_enough(np.array([score]))[0]:
        distance = float(DISTANCES[use.metric](np.array([score]))[0])
        return _Miss(
            use.name,
            f"{use.name}: its {use.metric} distance {distance:.4f} is not below {use.max_distance:g}",
            distance,
            use.max_distance,
        )
    if len(source.keys) < source.pool:
        reason = "no word of the query is in it" if use.source == "keyword" else "it is not near the query"
        return _Miss(use.name, f"{use.name}: {reason}", score, None)
    last = float(source.scores[-1])
    return _Miss(
        use.name,
        f"{use.name} {score:.4f} is below the last of the {source.pool} that were looked at ({last:.4f})",
        score,
        last,
    )


def _not_found(record_id: str, result: Result, misses: list[_Miss]) -> Why:
    closest = min(
        (miss for miss in misses if miss.score is not None and miss.needed is not None),
        key=lambda miss: (miss.needed or 0.0) - (miss.score or 0.0),
        default=misses[0],
    )
    standings = tuple(Standing(miss.source, None, miss.score, 0.0) for miss in misses)
    return _dropped(
        record_id,
        result,
        f"source:{closest.source}",
        "; ".join(miss.reason for miss in misses),
        closest.score,
        closest.needed,
        standings,
    )


def _dropped(
    record_id: str,
    result: Result,
    stage: str,
    reason: str,
    number: float | None = None,
    needed: float | None = None,
    standings: tuple[Standing, ...] = (),
) -> Why:
    return Why(
        record_id, False, stage, reason, number, needed, None, standings, result.degraded, result.answered
    )


def _shares(standings: tuple[Standing, ...]) -> str:
    return " + ".join(
        f"{s.source} {s.share:.4f} (rank {s.rank}, {s.score:.4f})" for s in standings if s.rank is not None
    )
