"""Reranking of conversation turns, which are short, by scores and by adjacent turns.

Ranks lose how much better the first is than the second. If the lists are long enough for a scale, this stage uses
each list's scores divided by its best. The answer often follows the turn that matches ("When did you go?" "Last
Tuesday."), so a record gains a part of its best neighbour's evidence, and a neighbour can become a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

import numpy as np

from sennit.ranking.fusion import order
from sennit.ranking.stages import Floats, Keys, Ranking, StageContext, StageOutput, stage

EQUAL_WEIGHTS: Final[Mapping[str, float]] = {"keyword": 0.5, "vector": 0.5, "graph": 0.5}


@stage
@dataclass(frozen=True, slots=True)
class Evidence:
    """Reorders by Σ weight · score / best score of the list, plus a part of the best neighbour's sum.

    The best result keeps the best fused score and the others scale with it, so later stages see the scale they
    expect. If no list has `min_candidates` candidates, the ranking does not change: so few have no scale.
    """

    name: ClassVar[str] = "evidence"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"

    weights: Mapping[str, float] = field(default_factory=lambda: dict(EQUAL_WEIGHTS))
    neighbours: float = 0.5
    min_candidates: int = 10

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Mapping) or any(
            not np.isfinite(weight) or weight < 0 for weight in self.weights.values()
        ):
            raise ValueError(f"weights must be a table of numbers of at least 0, not {self.weights!r}")
        if not (np.isfinite(self.neighbours) and 0 <= self.neighbours <= 1):
            raise ValueError(f"neighbours must be from 0 to 1, not {self.neighbours!r}")
        object.__setattr__(self, "weights", dict(self.weights))

    def __hash__(self) -> int:
        return hash((tuple(sorted(self.weights.items())), self.neighbours, self.min_candidates))

    def apply(self, ranking: Ranking, context: StageContext) -> StageOutput:
        if max((len(one.keys) for one in ranking.lists), default=0) < self.min_candidates:
            return StageOutput(ranking.keys, ranking.scores)
        adjacent = context.adjacent(ranking.keys) if self.neighbours else {}
        keys = np.array(
            list(
                dict.fromkeys((*ranking.keys.tolist(), *(key for near in adjacent.values() for key in near)))
            ),
            np.int64,
        )
        own = self._own_evidence(ranking, context, keys)
        value = dict(zip(keys.tolist(), own.tolist(), strict=True))
        adjacent = {**(context.adjacent(keys[len(ranking.keys) :]) if self.neighbours else {}), **adjacent}
        neighbour = np.array(
            [max((value.get(k, 0.0) for k in adjacent.get(key, ())), default=0.0) for key in keys.tolist()]
        )
        total = own + self.neighbours * neighbour
        best = float(total.max(initial=0.0))
        scores = total * (float(ranking.scores.max(initial=0.0)) / best) if best > 0 else total
        best_first = order(keys, scores, context.ids)
        kept = best_first[(scores[best_first] > 0) | (best_first < len(ranking.keys))]
        if not context.explain:
            return StageOutput(keys[kept], scores[kept])
        reasons = {
            int(keys[at]): f"{own[at]:.3f} by its own text"
            + (f" + {self.neighbours:g} · {neighbour[at]:.3f} by an adjacent record" if neighbour[at] else "")
            for at in kept.tolist()
        }
        return StageOutput(keys[kept], scores[kept], {}, reasons)

    def _own_evidence(self, ranking: Ranking, context: StageContext, keys: Keys) -> Floats:
        total = np.zeros(len(keys))
        for one in ranking.lists:
            weight = self.weights.get(one.name, 0.0)
            if weight:
                scores = np.nan_to_num(context.list_scores(one.name, keys), nan=0.0)
                best = float(scores[: len(ranking.keys)].max(initial=0.0))
                if best > 0:
                    total += weight * np.maximum(scores, 0.0) / best
        return total
