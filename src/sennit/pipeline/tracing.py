"""The trace of a run. Whatever costs something is worked out when somebody looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import Final

import numpy as np

from sennit.analysis import ANALYSIS_ID
from sennit.filters import EVERYTHING
from sennit.pipeline.asking import Answer, Plan
from sennit.ranking.fusion import Fused
from sennit.ranking.stages import Staged
from sennit.records import Json, split_id
from sennit.results import Dropped, SourceTrace, StageTrace, Trace
from sennit.sources.base import Question
from sennit.stores.embedded.snapshot import Snapshot

CONTRACT: Final = 1
"""The version of docs/ranking-contract.md that these rankings follow."""


def beyond_limit(limit: int, ranking: Staged) -> StageTrace:
    """The cut to the limit."""
    return StageTrace("limit", ranking.keys[:limit], ranking.scores[:limit], Beyond(limit, ranking))


class Beyond(Mapping[int, Dropped]):
    """What came after the limit; worked out when somebody looks."""

    def __init__(self, limit: int, ranking: Staged) -> None:
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
                f"rank {at + 1} of {len(keys)}, and {limit} were asked for",
                scores[at],
                scores[limit - 1],
            )
            for at, key in enumerate(keys.tolist())
            if at >= limit
        }


def trace_of(
    plan: Plan,
    question: Question,
    answers: Sequence[Answer],
    fused: Fused,
    steps: Sequence[StageTrace],
    gave_way: Mapping[int, int],
    times: Mapping[str, float],
) -> Trace:
    """What every stage did to every candidate."""
    ranks = fused.ranks
    if plan.recipe.complete:
        ranks = np.full_like(fused.ranks, -1)
        for at, answer in enumerate(answer for answer in answers if answer.error is None):
            # A score that completes the picture is not a rank: the source did not bring the record.
            ranks[at, np.searchsorted(fused.keys, answer.found.keys)] = np.arange(len(answer.found.keys))
    return Trace(
        query=question.text,
        limit=plan.limit,
        filter="" if plan.where == EVERYTHING else str(plan.where),
        describe=lambda: {
            "name": plan.recipe.name,
            **plan.recipe.to_dict(),
            "bm25": {f.name: getattr(plan.bm25, f.name) for f in fields(plan.bm25)},
        },
        state=state_of(question.snapshot, whole=plan.whole),
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
            for use, answer in zip(plan.lists, answers, strict=True)
        ),
        fused_keys=fused.keys,
        fused_scores=fused.scores,
        shares=fused.terms,
        ranks=ranks,
        source_scores=fused.source_scores,
        stages=tuple(steps),
        names=lambda keys: [split_id(name.decode())[1] for name in question.ids(keys)],
        milliseconds=times,
        notes=question.notes,
        gave_way=gave_way,
        transform=question.wording.to_dict(),
    )


def state_of(snapshot: Snapshot, *, whole: bool) -> dict[str, Json]:
    """What an answer depends on besides its settings."""
    state: dict[str, Json] = {
        "contract": CONTRACT,
        "analysis": ANALYSIS_ID,
        "model": snapshot.model.fingerprint if snapshot.model else None,
    }
    # The number of changes tells of records that the caller may not know of.
    return state | {"change": snapshot.seq} if whole else state
