"""Reranking of conversation turns, which are short, by scores and by adjacent turns.

Ranks lose how much better the first is than the second. If the lists are long enough for a scale, this stage uses
each list's scores divided by its best. The answer often follows the turn that matches ("When did you go?" "Last
Tuesday."), so a record gains a part of its best neighbour's evidence, and a neighbour can become a result. A turn that
is itself a question repeats the words of the query and seldom answers it, so its own text counts less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from sennit.ranking.fusion import order
from sennit.ranking.stages import Floats, Keys, Ranking, StageContext, StageOutput, stage
from sennit.results import Dropped

WEIGHTS: Final[Mapping[str, float]] = {"keyword": 0.6, "vector": 0.4}
"""Words say more than a static model about short turns: docs/design/memory-ranking.md."""

QUESTION_DEPTH: Final = 40
"""Only the texts of this many best candidates are read to see whether they are questions."""

QUESTION_MARKS: Final = ("?", "？", "؟", "՞")
"""How a question ends, in several scripts."""


@stage
@dataclass(frozen=True, slots=True)
class Evidence:
    """Reorders by Σ weight · score / best score of the list, plus a part of the best neighbour's sum.

    The best result keeps the best fused score and the others scale with it, so later stages see the scale they
    expect. What has less than `min_share` of the best is dropped: such texts share a word with the query and no more.
    If the query asks for what is recent, age decides among what has `recent_min_share`. If no list has
    `min_candidates` candidates, the ranking does not change: so few have no scale.
    """

    name: ClassVar[str] = "evidence"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"

    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS))
    neighbours: float = 0.5
    min_candidates: int = 10
    question_share: float = 0.8
    """What the own text of a question counts."""
    min_share: float = 0.3
    recent_min_share: float = 0.7

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Mapping) or any(
            not np.isfinite(weight) or weight < 0 for weight in self.weights.values()
        ):
            raise ValueError(f"weights must be a table of numbers of at least 0, not {self.weights!r}")
        for name in ("neighbours", "question_share", "min_share", "recent_min_share"):
            value = getattr(self, name)
            if not (np.isfinite(value) and 0 <= value <= 1):
                raise ValueError(f"{name} must be from 0 to 1, not {value!r}")
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
        questions = self._questions(keys, total, context)
        total = total - (1 - self.question_share) * own * questions
        best = float(total.max(initial=0.0))
        scores = total * (float(ranking.scores.max(initial=0.0)) / best) if best > 0 else total
        best_first = order(keys, scores, context.ids)
        best_first = best_first[(scores[best_first] > 0) | (best_first < len(ranking.keys))]
        share = self.recent_min_share if context.time.recent else self.min_share
        needed = share * float(scores.max(initial=0.0))
        # Facts are judged by a stage of their own.
        is_fact = np.array([key in context.fact_matches for key in keys.tolist()], bool)
        passes = (scores >= needed) | is_fact
        kept = best_first[passes[best_first]]
        if not context.explain:
            return StageOutput(keys[kept], scores[kept])
        dropped = {
            int(keys[at]): Dropped(
                self.name, f"{scores[at]:.4f} is below {share:g} of the best", float(scores[at]), needed
            )
            for at in best_first[~passes[best_first]].tolist()
        }
        reasons = {
            int(keys[at]): f"{own[at]:.3f} by its own text"
            + (f" · {self.question_share:g} as a question" if questions[at] else "")
            + (f" + {self.neighbours:g} · {neighbour[at]:.3f} by an adjacent record" if neighbour[at] else "")
            for at in kept.tolist()
        }
        return StageOutput(keys[kept], scores[kept], dropped, reasons)

    def _questions(self, keys: Keys, total: Floats, context: StageContext) -> NDArray[np.bool_]:
        """Return which of the best candidates are questions."""
        out = np.zeros(len(keys), bool)
        if self.question_share < 1:
            best = np.argsort(-total, kind="stable")[:QUESTION_DEPTH]
            out[best] = [record.text.rstrip().endswith(QUESTION_MARKS) for record in context.read(keys[best])]
        return out

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
