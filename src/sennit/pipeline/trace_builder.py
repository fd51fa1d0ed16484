"""Builds the trace of a run. Expensive parts are computed when somebody reads them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import ANALYSIS_ID
from sennit.filters import EVERYTHING
from sennit.pipeline.source_runner import SearchPlan, SourceResult
from sennit.ranking.calibration import Background
from sennit.ranking.decay import Decay
from sennit.ranking.fusion import Fused, calibrated_sources
from sennit.ranking.relevance import Evidence
from sennit.ranking.stages import CandidateList, ListStageOutput, StageOutput
from sennit.records import Json, split_id
from sennit.results import Dropped, ListStageTrace, RelevanceTrace, SourceTrace, StageTrace, Trace
from sennit.sources.base import SearchContext
from sennit.stores.contract import Backend, Snapshot

CONTRACT_VERSION: Final = 2
"""The version of docs/ranking-contract.md that these rankings follow."""


@dataclass(slots=True)
class RunLog:
    """What a run leaves for its trace, in the order in which it happens."""

    results: Sequence[SourceResult]
    lists: Sequence[CandidateList] = ()
    """The lists of the sources that answered, after the stages before fusion that have run."""
    list_stages: list[ListStageTrace] = field(default_factory=list)
    merged_into: dict[int, int] = field(default_factory=dict)
    """Which key stands for which in a list that had it."""
    stages: list[StageTrace] = field(default_factory=list)
    result_stages: list[StageTrace] = field(default_factory=list)
    relevance: dict[int, RelevanceTrace] = field(default_factory=dict)
    milliseconds: dict[str, float] = field(default_factory=dict)

    def add_list_stage(self, name: str, output: ListStageOutput, milliseconds: float) -> None:
        """Note what a stage before fusion did."""
        self.list_stages.append(ListStageTrace(name, output.dropped, output.reasons, milliseconds))
        # What an earlier stage merged follows the candidate that it was merged into.
        moved = {key: output.merged_into.get(winner, winner) for key, winner in self.merged_into.items()}
        self.merged_into = {**output.merged_into, **moved}


def trace_limit(limit: int, ranking: StageOutput) -> StageTrace:
    """Return the cut to the limit as the trace of a stage."""
    return StageTrace("limit", ranking.keys[:limit], ranking.scores[:limit], _DroppedByLimit(limit, ranking))


def trace_relevance(
    keys: Sequence[int], evidence: Evidence, relevance: Sequence[float]
) -> dict[int, RelevanceTrace]:
    """Return what the relevance of each record was estimated from."""
    linked = evidence.linked or [False] * len(keys)
    numbers = zip(keys, relevance, evidence.coverage, evidence.lift, linked, strict=True)
    return {
        key: RelevanceTrace(
            chance,
            None if math.isnan(coverage) else coverage,
            None if math.isnan(lift) else lift,
            is_linked,
            evidence.best,
        )
        for key, chance, coverage, lift, is_linked in numbers
    }


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
    plan: SearchPlan, context: SearchContext, fused: Fused, run: RunLog, promises: Mapping[str, Json]
) -> Trace:
    """Return the trace: what every stage did to every candidate."""
    background = fused.lists.background
    return Trace(
        query=context.text,
        limit=plan.limit,
        filter="" if plan.where == EVERYTHING else str(plan.where),
        describe_recipe=lambda: {
            "name": plan.recipe.name,
            **plan.recipe.to_dict(),
            "bm25": {f.name: getattr(plan.bm25, f.name) for f in fields(plan.bm25)},
        },
        state={
            **_describe_state(context.snapshot, with_change=plan.caller_sees_everything),
            **({"indexes": dict(promises)} if promises else {}),
        },
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
            for config, result in zip(plan.sources, run.results, strict=True)
        ),
        fused_keys=fused.keys,
        fused_scores=fused.scores,
        shares=fused.terms,
        ranks=source_ranks(fused, run) if run.list_stages else fused.ranks,
        raw_scores=fused.raw_scores,
        list_stages=tuple(run.list_stages),
        stages=tuple(run.stages),
        result_stages=tuple(run.result_stages),
        read_ids=lambda keys: [split_id(full_id.decode())[1] for full_id in context.ids(keys)],
        milliseconds=run.milliseconds,
        match_reasons=context.match_reasons,
        relevance=run.relevance,
        background=context.background.mean,
        backgrounds=dict.fromkeys(
            calibrated_sources(plan.recipe.fusion, fused.lists.names),
            (background.mean, partial(_normalise, background)),
        ),
        transform=context.rewrite.to_dict(),
        time=_describe_time(plan, context),
    )


def _normalise(background: Background, cosine: float) -> float:
    return float(background.normalise(np.array([cosine]))[0])


def _describe_time(plan: SearchPlan, context: SearchContext) -> dict[str, Json]:
    """Return how time counted in a search; empty if it did not."""
    decay = next((stage for stage in plan.recipe.stages if isinstance(stage, Decay)), None)
    out: dict[str, Json] = {}
    if decay is not None:
        out["now"] = context.now.isoformat()
        out["recency"] = decay.recency_for(context.time)
        if context.time.recent:
            out["recent"] = context.time.recent
        period = context.time.period
        if period is not None:
            out["period"] = {
                "words": period.words,
                "start": None if period.start is None else period.start.isoformat(),
                "end": None if period.end is None else period.end.isoformat(),
            }
    if plan.since is not None and any(config.uses_look_back for config in plan.sources):
        out["look_back_since"] = plan.since.isoformat()
    return out


def source_ranks(fused: Fused, run: RunLog) -> NDArray[np.int32]:
    """Return the rank of each candidate in what each source itself found; -1 for what a stage added to its list."""
    ranks = np.full_like(fused.ranks, -1)
    answered = [result for result in run.results if result.error is None]
    for at, (one, result) in enumerate(zip(run.lists, answered, strict=True)):
        listed = set(one.keys.tolist())
        found = [
            key if key in listed else run.merged_into.get(key, key) for key in result.found.keys.tolist()
        ]
        keys = [key for key in dict.fromkeys(found) if key in listed]
        ranks[at, np.searchsorted(fused.keys, keys)] = np.arange(len(keys))
    return ranks


def describe_promises(backend: Backend) -> dict[str, Json]:
    """Return whose scores and statistics an index has, for each on a server or not by the ranking contract."""
    promises = {"keyword": backend.keyword.capabilities, "vector": backend.vector.capabilities}
    out: dict[str, Json] = {}
    for role, one in promises.items():
        server = backend.bindings.get(role)
        named = {"server": server} if server in backend.servers else {}
        if named or one.scores != "contract" or one.statistics in ("whole", "shard"):
            out[role] = {**named, "scores": one.scores, "statistics": one.statistics}
    return out


def _describe_state(snapshot: Snapshot, *, with_change: bool) -> dict[str, Json]:
    """Return what a ranking depends on besides its settings."""
    state: dict[str, Json] = {
        "contract": CONTRACT_VERSION,
        "analysis": ANALYSIS_ID,
        "model": snapshot.model.fingerprint if snapshot.model else None,
    }
    # The number of changes reveals that there are records which the caller may not see.
    return state | {"change": snapshot.seq} if with_change else state
