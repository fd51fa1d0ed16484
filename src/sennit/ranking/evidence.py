"""Reranking of conversation turns, which are short, by scores and by adjacent turns.

Ranks lose how much better the first is than the second. If the lists are long enough for a scale, this stage uses
each list's scores divided by its best. The answer often follows the turn that matches ("When did you go?" "Last
Tuesday."), so a record gains a part of its best neighbour's evidence, and a neighbour can become a result. A turn that
is itself a question repeats the words of the query and seldom answers it, so its own text counts less, and the turn
after it gains more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

import numpy as np

from sennit.ranking.fusion import order
from sennit.ranking.stages import Ranking, StageContext, StageOutput, stage
from sennit.results import Dropped

WEIGHTS: Final[Mapping[str, float]] = {"keyword": 0.6, "vector": 0.4}
"""Words say more than a static model about short turns: docs/design/memory-ranking.md."""

QUESTION_DEPTH: Final = 30
"""Only the texts of this many best candidates are read to see whether they are questions."""

QUESTION_MARKS: Final = ("?", "？", "؟", "՞")
"""How a question ends, in several scripts."""


@stage
@dataclass(frozen=True, slots=True)
class Evidence:
    """Reorders by Σ weight · score / best score of the list, plus a part of the best neighbour's sum.

    The best result keeps the best fused score and the others scale with it, so later stages see the scale they
    expect. What has less than `min_share` of the best is dropped: such texts share a word with the query and no more.
    If the query asks for what is recent, age decides among what has `recent_min_share`. If none of the
    weighed lists has `min_candidates` candidates, the ranking does not change: so few have no scale.
    """

    name: ClassVar[str] = "evidence"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"

    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS))
    neighbours: float = 0.5
    min_candidates: int = 10
    question_share: float = 0.8
    """What the own text of a question counts."""
    answer_share: float = 0.7
    """What the turn after a question gains of the evidence for the question and for what was said before it."""
    speaker_share: float = 0.1
    """What a turn gains if the query names its speaker."""
    min_share: float = 0.3
    recent_min_share: float = 0.7

    def __post_init__(self) -> None:
        if not isinstance(self.weights, Mapping) or any(
            not np.isfinite(weight) or weight < 0 for weight in self.weights.values()
        ):
            raise ValueError(f"weights must be a table of numbers of at least 0, not {self.weights!r}")
        for name in (
            "neighbours",
            "question_share",
            "answer_share",
            "speaker_share",
            "min_share",
            "recent_min_share",
        ):
            value = getattr(self, name)
            if not (np.isfinite(value) and 0 <= value <= 1):
                raise ValueError(f"{name} must be from 0 to 1, not {value!r}")
        object.__setattr__(self, "weights", dict(self.weights))

    def __hash__(self) -> int:
        return hash((tuple(sorted(self.weights.items())), self.neighbours, self.min_candidates))

    def apply(self, ranking: Ranking, context: StageContext) -> StageOutput:
        weighed = [len(one.keys) for one in ranking.lists if self.weights.get(one.name)]
        if max(weighed, default=0) < self.min_candidates:
            return StageOutput(ranking.keys, ranking.scores)
        found = ranking.keys.tolist()
        adjacent = dict(context.adjacent(ranking.keys)) if self.neighbours else {}
        keys = list(dict.fromkeys((*found, *(key for near in adjacent.values() for key in near))))
        if self.neighbours:
            adjacent |= context.adjacent(np.array(keys[len(found) :], np.int64))
        best_scores: dict[str, float] = {}
        own = self._own_evidence(ranking, context, keys, best_scores)
        questions = self._questions(keys, own, adjacent, context)
        following = self._following(questions, adjacent, context)
        missing = [key for key in following.values() if key not in own]
        own |= self._own_evidence(ranking, context, missing, best_scores)
        total: dict[int, float] = {}
        reasons: dict[int, str] = {}
        nothing: tuple[int, ...] = ()
        for key, value in own.items():
            neighbour = max([own.get(other, 0.0) for other in adjacent.get(key, nothing)], default=0.0)
            share = self.question_share if key in questions else 1.0
            total[key] = value * share + self.neighbours * neighbour
            if context.explain:
                reasons[key] = f"{value:.3f} by its own text"
                if share < 1:
                    reasons[key] += f" · {share:g} as a question"
                if neighbour:
                    reasons[key] += f" + {self.neighbours:g} · {neighbour:.3f} by an adjacent record"
        for question, key in following.items():
            # The question is about what was said before it, and this turn answers it.
            before = max([own.get(k, 0.0) for k in adjacent[question] if k != key], default=0.0)
            asked = own[question] + self.neighbours * before
            gained = own[key] + self.answer_share * asked
            if before > own[question]:
                gained = min(gained, before)  # what was said before is nearer to the query
            if gained > total[key]:
                total[key] = gained
                reasons[key] = (
                    f"{own[key]:.3f} by its own text + {self.answer_share:g} · {asked:.3f} by the question before"
                )
        return self._select(ranking, context, total, reasons)

    def _select(
        self, ranking: Ranking, context: StageContext, total: Mapping[int, float], reasons: Mapping[int, str]
    ) -> StageOutput:
        """Order by evidence, on the scale of the fused scores, and drop what has too little."""
        keys = np.array(list(total), np.int64)
        values = np.array(list(total.values()))
        best = float(values.max(initial=0.0))
        scores = values * (float(ranking.scores.max(initial=0.0)) / best) if best > 0 else values
        share = self.recent_min_share if context.time.recent else self.min_share
        needed = share * float(scores.max(initial=0.0))
        # Facts are judged by a stage of their own.
        is_fact = np.array([key in context.fact_matches for key in keys.tolist()], bool)
        was_found = np.isin(keys, ranking.keys)
        passes = (scores >= needed) | is_fact
        best_first = order(keys, scores, context.ids)
        best_first = best_first[((scores > 0) | was_found)[best_first]]
        kept = best_first[passes[best_first]]
        if not context.explain:
            return StageOutput(keys[kept], scores[kept])
        dropped = {
            int(keys[at]): Dropped(
                self.name, f"{scores[at]:.4f} is below {share:g} of the best", float(scores[at]), needed
            )
            for at in best_first[~passes[best_first]].tolist()
        }
        return StageOutput(
            keys[kept], scores[kept], dropped, {key: reasons[key] for key in keys[kept].tolist()}
        )

    def _questions(
        self,
        keys: Sequence[int],
        own: Mapping[int, float],
        adjacent: Mapping[int, Sequence[int]],
        context: StageContext,
    ) -> set[int]:
        """Return which of the best candidates are questions."""
        if self.question_share == 1 and not self.answer_share:
            return set()
        near = {key: max([own.get(k, 0.0) for k in adjacent.get(key, ())], default=0.0) for key in keys}
        best = sorted(keys, key=lambda key: -(own[key] + self.neighbours * near[key]))[:QUESTION_DEPTH]
        texts = context.records(best)
        return {key for key in best if texts[key].text.rstrip().endswith(QUESTION_MARKS)}

    def _following(
        self, questions: Iterable[int], adjacent: Mapping[int, Sequence[int]], context: StageContext
    ) -> dict[int, int]:
        """Return the turn after each question, where there is one."""
        pairs = [(key, other) for key in questions for other in adjacent.get(key, ())]
        if not pairs or not self.answer_share:
            return {}
        involved = np.array(list(dict.fromkeys(key for pair in pairs for key in pair)), np.int64)
        position = dict(
            zip(involved.tolist(), (value for (value,) in context.values(involved, "position")), strict=True)
        )
        return {key: other for key, other in pairs if position[other] == position[key] + 1}

    def _own_evidence(
        self, ranking: Ranking, context: StageContext, keys: Sequence[int], best_scores: dict[str, float]
    ) -> dict[int, float]:
        """Return the evidence of these records by their own text.

        The first call, whose keys begin with those of the ranking, fills in the best score of each list.
        """
        total = np.zeros(len(keys))
        new = np.array(keys, np.int64)
        for one in ranking.lists:
            weight = self.weights.get(one.name, 0.0)
            if weight and len(new):
                scores = np.nan_to_num(context.list_scores(one.name, new), nan=0.0)
                best = best_scores.setdefault(one.name, float(scores[: len(ranking.keys)].max(initial=0.0)))
                if best > 0:
                    total += weight * np.maximum(scores, 0.0) / best
        speakers = context.speakers() if self.speaker_share and len(new) else frozenset()
        if speakers:
            said_by = [str(name or "").split(" ")[0] for (name,) in context.values(new, "speaker")]
            total += self.speaker_share * np.array([name in speakers for name in said_by])
        return dict(zip(keys, total.tolist(), strict=True))
