"""Builds the trace of a run. Expensive parts are computed when somebody reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Final

import numpy as np

from sennit.analysis import ANALYSIS_ID
from sennit.filters import EVERYTHING
from sennit.pipeline.source_runner import SearchPlan, SourceResult
from sennit.ranking.fusion import Fused
from sennit.ranking.stages import StageOutput
from sennit.records import Json, split_id
from sennit.results import Dropped, SourceTrace, StageTrace, Trace
from sennit.sources.base import SearchContext
from sennit.stores.embedded.snapshot import Snapshot

CONTRACT_VERSION: Final = 1
"""The version of docs/ranking-contract.md that these rankings follow."""


def trace_limit(limit: int, ranking: StageOutput) -> StageTrace:
    """Return the cut to the limit as the trace of a stage."""
    return StageTrace("limit", ranking.keys[:limit], ranking.scores[:limit], _DroppedByLimit(limit, ranking))


class _DroppedByLimit(Mapping[int, Dropped]):
    """The candidates after the limit; computed on first use."""

    def __init__(self, limit: int, ranking: StageOutput) -> None:
        self._limit = limit
        self._ranking = ranking

    def __getitem__(self, key: int) -> Dropped:
        return self._dropped[key]

    def __iter__(self) -> Iterator[int]:
        return iter(self._dropped)

    def __len__(self) -> int:
        return max(0, len(self._ranking.keys) - self._limit)

    @cached_property
    def _dropped(self) -> dict[int, Dropped]:
        limit, keys, scores = self._limit, self._ranking.keys, self._ranking.scores.tolist()
        return {
            key: Dropped(
                "limit",
                f"rank {at + 1} of {len(keys)}, but the limit is {limit}",
                scores[at],
                scores[limit - 1],
            )
            for at, key in enumerate(keys.tolist())
            if at >= limit
        }


def build_trace(
    plan: SearchPlan,
    context: SearchContext,
    results: Sequence[SourceResult],
    fused: Fused,
    stages: Sequence[StageTrace],
    merged_into: Mapping[int, int],
    milliseconds: Mapping[str, float],
) -> Trace:
    """Return the trace: what every stage did to every candidate."""
    ranks = fused.ranks
    if plan.recipe.rescore_missing:
        ranks = np.full_like(fused.ranks, -1)
        for at, result in enumerate(result for result in results if result.error is None):
            # Only candidates that the source itself found have a rank in it; the rest were rescored.
            ranks[at, np.searchsorted(fused.keys, result.found.keys)] = np.arange(len(result.found.keys))
    return Trace(
        query=context.text,
        limit=plan.limit,
        filter="" if plan.where == EVERYTHING else str(plan.where),
        describe_recipe=lambda: {
            "name": plan.recipe.name,
            **plan.recipe.to_dict(),
            "bm25": {f.name: getattr(plan.bm25, f.name) for f in fields(plan.bm25)},
        },
        state=_describe_state(context.snapshot, with_change=plan.caller_sees_everything),
        sources=tuple(
            SourceTrace(
                config.name,
                config.source,
                config.candidates.for_limit(plan.limit),
                result.found.keys,
                result.found.scores,
                result.milliseconds,
                result.error,
            )
            for config, result in zip(plan.sources, results, strict=True)
        ),
        fused_keys=fused.keys,
        fused_scores=fused.scores,
        shares=fused.terms,
        ranks=ranks,
        raw_scores=fused.raw_scores,
        stages=tuple(stages),
        read_ids=lambda keys: [split_id(full_id.decode())[1] for full_id in context.ids(keys)],
        milliseconds=milliseconds,
        match_reasons=context.match_reasons,
        merged_into=merged_into,
        transform=context.rewrite.to_dict(),
    )


def _describe_state(snapshot: Snapshot, *, with_change: bool) -> dict[str, Json]:
    """Return what a ranking depends on besides its settings."""
    state: dict[str, Json] = {
        "contract": CONTRACT_VERSION,
        "analysis": ANALYSIS_ID,
        "model": snapshot.model.fingerprint if snapshot.model else None,
    }
    # The number of changes reveals that there are records which the caller may not see.
    return state | {"change": snapshot.seq} if with_change else state
