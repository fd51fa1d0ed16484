"""Explains why a record is in a search result or not: the stage and the number that decided."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sennit.errors import SennitError
from sennit.facts import FACT_FIELDS, ended_at, is_fact
from sennit.filters import EVERYTHING, And, Equal
from sennit.pipeline import Pipeline, SearchPlan
from sennit.recipes import DISTANCES, SourceConfig
from sennit.results import SearchResult, SourceScore, SourceTrace, Why
from sennit.sources.base import SearchContext


@dataclass(frozen=True, slots=True)
class _Miss:
    """Why one source did not return a record: its score, and the score it would have needed."""

    source: str
    reason: str
    score: float | None
    needed: float | None


def explain_record(
    pipeline: Pipeline,
    plan: SearchPlan,
    context: SearchContext,
    result: SearchResult,
    record_id: str,
    key: int,
) -> Why:
    """Explain what happened to a record in a search that was run with `explain`."""
    trace = result.trace
    if trace is None:
        raise ValueError("the result has no trace; run the search with explain=True")
    hit = next((hit for hit in result.hits if hit.id == record_id), None)
    shown = hit.explanation if hit is not None else None
    if hit is not None and shown is not None:
        rank = f"rank {hit.rank} of {len(result)}: {_format_shares(shown.source_scores)}"
        return Why(
            record_id,
            kept=True,
            stage="result",
            reason="; ".join([rank, *trace.remarks(hit.key)]),
            number=hit.score,
            needed=result.hits[-1].score,
            rank=hit.rank,
            source_scores=shown.source_scores,
            degraded=result.degraded,
            answered=result.answered,
        )
    if plan.where != EVERYTHING and not context.matches(key, plan.where):
        return _not_in_result(record_id, result, "filter", f"it does not pass the filter {plan.where}")
    ended = _explain_end(plan, context, key)
    if ended:
        return _not_in_result(record_id, result, "source:graph", ended)
    explanation = trace.explain(key)
    drop = trace.dropped(key)
    if explanation is not None and drop is not None:
        return _not_in_result(
            record_id, result, drop.stage, drop.reason, drop.number, drop.needed, explanation.source_scores
        )
    misses = [
        _explain_miss(pipeline, plan, context, config, source, key)
        for config, source in zip(plan.sources, trace.sources, strict=True)
    ]
    return _explain_not_found(record_id, result, misses)


def _explain_end(plan: SearchPlan, context: SearchContext, key: int) -> str:
    """Return how a fact ended, if the search leaves out such facts; empty for any other record."""
    record = context.records([key])[key]
    ended = ended_at(record) if is_fact(record) else None
    if ended is None or ended > context.now or not any(config.source == "graph" for config in plan.sources):
        return ""
    # The snapshot has only what the caller may see, so a hidden successor is not named.
    same_relation = And(
        tuple(Equal(f"metadata.{name}", str(record.metadata[name])) for name in FACT_FIELDS[:2])
    )
    others = context.snapshot.records_matching(same_relation | Equal("metadata.supersedes", record.id))
    successor = min(
        (one for one in others if one.id != record.id and (one.timestamp or context.now) >= ended),
        key=lambda one: one.timestamp or context.now,
        default=None,
    )
    by = "it ended" if successor is None else f"superseded by {successor.text!r} ({successor.id})"
    return f"{by} on {ended.date().isoformat()}; it stays in history"


def _explain_miss(
    pipeline: Pipeline,
    plan: SearchPlan,
    context: SearchContext,
    config: SourceConfig,
    source: SourceTrace,
    key: int,
) -> _Miss:
    if source.error is not None:
        return _Miss(config.name, f"{config.name} did not answer ({source.error})", None, None)
    request = plan.build_request(config, context)
    if request.where != plan.where and not context.matches(key, request.where):
        only = ", ".join(config.collections) or config.where
        return _Miss(config.name, f"{config.name} searches only {only}", None, None)
    try:
        score = float(pipeline.scores(plan, config, context, np.array([key], np.int64))[0])
    except SennitError as error:
        return _Miss(config.name, f"{config.name} cannot score it ({error})", None, None)
    if math.isnan(score):
        return _Miss(config.name, f"{config.name} does not have it (yet)", None, None)
    if config.min_score is not None and score < config.min_score:
        return _Miss(
            config.name, f"{config.name} {score:.4f} is below its threshold", score, config.min_score
        )
    if (
        config.max_distance is not None
        and not config.passes_threshold(np.array([score]), context.background)[0]
    ):
        distance = float(DISTANCES[config.metric](np.array([score]), context.background)[0])
        return _Miss(
            config.name,
            f"{config.name}: its {config.metric} distance {distance:.4f} is not below {config.max_distance:g}",
            distance,
            config.max_distance,
        )
    if len(source.keys) < source.candidates:
        reason = "no word of the query is in it" if config.source == "keyword" else "it is not near the query"
        return _Miss(config.name, f"{config.name}: {reason}", score, None)
    last = float(source.scores[-1])
    return _Miss(
        config.name,
        f"{config.name} {score:.4f} is below the last of its {source.candidates} candidates ({last:.4f})",
        score,
        last,
    )


def _explain_not_found(record_id: str, result: SearchResult, misses: list[_Miss]) -> Why:
    closest = min(
        (miss for miss in misses if miss.score is not None and miss.needed is not None),
        key=lambda miss: (miss.needed or 0.0) - (miss.score or 0.0),
        default=misses[0],
    )
    source_scores = tuple(SourceScore(miss.source, None, miss.score, 0.0) for miss in misses)
    return _not_in_result(
        record_id,
        result,
        f"source:{closest.source}",
        "; ".join(miss.reason for miss in misses),
        closest.score,
        closest.needed,
        source_scores,
    )


def _not_in_result(
    record_id: str,
    result: SearchResult,
    stage: str,
    reason: str,
    number: float | None = None,
    needed: float | None = None,
    source_scores: tuple[SourceScore, ...] = (),
) -> Why:
    return Why(
        record_id, False, stage, reason, number, needed, None, source_scores, result.degraded, result.answered
    )


def _format_shares(source_scores: tuple[SourceScore, ...]) -> str:
    return " + ".join(
        f"{s.source} {s.share:.4f} (rank {s.rank}, {s.score:.4f})"
        for s in source_scores
        if s.rank is not None
    )
