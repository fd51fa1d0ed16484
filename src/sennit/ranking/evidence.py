"""Scores in place of ranks, and the words of a neighbour: for turns of a conversation, which are short.

Ranks forget how much better the first is than the second. Where lists are long enough to have a scale, each list's
scores are taken as a share of its best. And an answer often stands next to the words that match ("When did you go?"
"Last Tuesday."): a record gains a share of the best of its neighbours, and a neighbour may so become a result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from sennit.ranking.fusion import order
from sennit.ranking.stages import Floats, Keys, Ranked, Staged, stage

EQUAL: Final[Mapping[str, float]] = {"keyword": 0.5, "vector": 0.5, "graph": 0.5}


@stage
@dataclass(frozen=True, slots=True)
class Evidence:
    """Reorders by Σ weight · score / best score of the list, plus a share of the best neighbour's.

    The best keeps the best fused score, and the others theirs in proportion, so that what follows sees the scale
    it knows. Where no list has `at_least` candidates the ranking stays as it was: so few have no scale.
    """

    name: ClassVar[str] = "evidence"

    weights: Mapping[str, float] = field(default_factory=lambda: dict(EQUAL))
    neighbours: float = 0.5
    at_least: int = 10

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Mapping) or any(
            not np.isfinite(weight) or weight < 0 for weight in self.weights.values()
        ):
            raise ValueError(f"weights must be a table of numbers of at least 0, not {self.weights!r}")
        if not (np.isfinite(self.neighbours) and 0 <= self.neighbours <= 1):
            raise ValueError(f"neighbours must be from 0 to 1, not {self.neighbours!r}")
        object.__setattr__(self, "weights", dict(self.weights))

    def __hash__(self) -> int:
        return hash((tuple(sorted(self.weights.items())), self.neighbours, self.at_least))

    def apply(self, ranked: Ranked) -> Staged:
        if ranked.found < self.at_least:
            return Staged(ranked.keys, ranked.scores)
        beside = ranked.beside(ranked.keys) if self.neighbours else {}
        keys = np.array(
            list(dict.fromkeys((*ranked.keys.tolist(), *(key for near in beside.values() for key in near)))),
            np.int64,
        )
        own = self._evidence(ranked, keys)
        value = dict(zip(keys.tolist(), own.tolist(), strict=True))
        beside = {**(ranked.beside(keys[len(ranked.keys) :]) if self.neighbours else {}), **beside}
        near = np.array(
            [max((value.get(k, 0.0) for k in beside.get(key, ())), default=0.0) for key in keys.tolist()]
        )
        total = own + self.neighbours * near
        best = float(total.max(initial=0.0))
        scores = total * (float(ranked.scores.max(initial=0.0)) / best) if best > 0 else total
        best_first = order(keys, scores, ranked.ids)
        places = best_first[(scores[best_first] > 0) | (best_first < len(ranked.keys))]
        if not ranked.explain:
            return Staged(keys[places], scores[places])
        reasons = {
            int(keys[at]): f"{own[at]:.3f} by its own words"
            + (f" + {self.neighbours:g} · {near[at]:.3f} by the record next to it" if near[at] else "")
            for at in places.tolist()
        }
        return Staged(keys[places], scores[places], {}, reasons)

    def _evidence(self, ranked: Ranked, keys: Keys) -> Floats:
        total = np.zeros(len(keys))
        for name in ranked.lists:
            weight = self.weights.get(name, 0.0)
            if weight:
                scores = np.nan_to_num(ranked.scores_of(name, keys), nan=0.0)
                best = float(scores[: len(ranked.keys)].max(initial=0.0))
                if best > 0:
                    total += weight * np.maximum(scores, 0.0) / best
        return total
