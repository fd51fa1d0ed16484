"""Facts among turns: a fact that answers stands before small talk that shares its words, any other fact behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from sennit.ranking.fusion import order
from sennit.ranking.stages import Ranking, StageContext, StageOutput, stage
from sennit.results import Dropped


@stage
@dataclass(frozen=True, slots=True)
class KnownFacts:
    """Scores a fact by how much of the query it answers, relative to the best record that is no fact.

    A fact's score is `lead` · match · the best such score, so one that has everything the query asks for stands first.
    One with less than `min_share` of that is dropped: it shares a name with the query and no more. If no list has
    `min_candidates` candidates, ranks are all there is, and only a fact that would stand first is moved.
    """

    name: ClassVar[str] = "facts"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"

    lead: float = 1.2
    min_share: float = 0.3
    min_candidates: int = 10

    def __post_init__(self) -> None:
        if not (np.isfinite(self.lead) and 0 < self.lead <= 10):
            raise ValueError(f"lead must be above 0 and at most 10, not {self.lead!r}")

    def apply(self, ranking: Ranking, context: StageContext) -> StageOutput:
        matches = np.array([context.fact_matches.get(key, np.nan) for key in ranking.keys.tolist()])
        is_fact = ~np.isnan(matches)
        if not is_fact.any() or is_fact.all():
            return StageOutput(ranking.keys, ranking.scores)
        best = float(ranking.scores[~is_fact].max())
        lifted = self.lead * np.where(is_fact, matches, 0.0) * best
        if max((len(one.keys) for one in ranking.lists), default=0) < self.min_candidates:
            moved, kept = is_fact & (lifted >= best), np.ones(len(is_fact), bool)
        else:
            moved, kept = is_fact, ~is_fact | (lifted >= self.min_share * best)
        scores = np.where(moved, lifted, ranking.scores)
        best_first = order(ranking.keys, scores, context.ids)
        best_first = best_first[kept[best_first]]
        reasons = {
            int(key): f"a fact with {match:.2f} of what the query asks for"
            for key, match in zip(ranking.keys[moved].tolist(), matches[moved].tolist(), strict=True)
            if context.explain
        }
        dropped = {
            key: Dropped(
                self.name,
                f"it has only {match:.2f} of what the query asks for",
                self.lead * match * best,
                self.min_share * best,
            )
            for key, match in zip(ranking.keys[~kept].tolist(), matches[~kept].tolist(), strict=True)
            if context.explain
        }
        return StageOutput(ranking.keys[best_first], scores[best_first], dropped, reasons)
