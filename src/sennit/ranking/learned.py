"""Learned ranking: a ranker that `sennit learn` has trained orders the best candidates by their features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np

from sennit.errors import SennitError
from sennit.ranking.fusion import order
from sennit.ranking.stages import Floats, Ranking, StageContext, StageOutput, stage

RANKED_CANDIDATES: Final = 50
"""Candidates that are ranked, in the training and in a search. Of those behind, hardly one belongs to the first ten."""

MAX_LOG_ODDS: Final = 500.0
"""Beyond it, the logistic function is 0 or 1 to the last bit, and its exponential would overflow."""

NAMED_SHARES: Final = 4
"""Features that the reason of a rank names."""


@stage
@dataclass(frozen=True, slots=True)
class Learned:
    """Orders the best candidates by a ranker, which is found by its name among those of the database.

    A score is the logistic function of the ranker's. Without a ranker that fits the search, the ranking stays as it is,
    and the answer says so in `degraded`.
    """

    name: ClassVar[str] = "learned"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"

    ranker: str
    depth: int = RANKED_CANDIDATES

    def __post_init__(self) -> None:
        from sennit.ranking.ranker import check_ranker_name

        check_ranker_name(self.ranker)
        if type(self.depth) is not int or not 1 <= self.depth <= 1000:
            raise ValueError(f"depth must be a whole number from 1 to 1000, not {self.depth!r}")

    def apply(self, ranking: Ranking, context: StageContext) -> StageOutput:
        if not len(ranking.keys):
            return StageOutput(ranking.keys, ranking.scores)
        try:
            ranker = context.find_ranker(self.ranker)
        except SennitError as error:
            return StageOutput(ranking.keys, ranking.scores, degraded=f"the recipe ranks without it: {error}")
        keys, rest = np.split(ranking.keys, [self.depth])
        features = ranking.features(keys, ranking.scores[: self.depth])
        raw = ranker.scores(features)
        best = order(keys, raw, context.ids)
        scores = 1.0 / (1.0 + np.exp(-raw.clip(-MAX_LOG_ODDS, MAX_LOG_ODDS)[best]))
        out_keys = np.concatenate([keys[best], rest])
        out_scores = np.concatenate([scores, _behind(ranking.scores[self.depth :], float(scores[-1]))])
        if not context.explain:
            return StageOutput(out_keys, out_scores)
        shares = [
            {name: share for name, share in zip(ranker.feature_names, row, strict=True) if share}
            for row in ranker.shares(features).tolist()
        ]
        return StageOutput(
            out_keys,
            out_scores,
            reasons={
                key: _describe(value, own)
                for key, value, own in zip(keys.tolist(), raw.tolist(), shares, strict=True)
            },
            shares=dict(zip(keys.tolist(), shares, strict=True)),
            features=dict(zip(keys.tolist(), map(tuple, features.tolist()), strict=True)),
        )


def _behind(scores: Floats, lowest: float) -> Floats:
    """Scores of what was not ranked again: in their order, and none above the lowest of what was."""
    if not len(scores) or scores[0] <= 0:
        return np.zeros(len(scores))
    out: Floats = lowest * (scores / scores[0]).clip(0.0, 1.0)
    return out


def _describe(value: float, shares: Mapping[str, float]) -> str:
    most: Sequence[tuple[str, float]] = sorted(shares.items(), key=lambda item: -abs(item[1]))[:NAMED_SHARES]
    return f"{value:+.3f} from " + ", ".join(f"{name} {share:+.3f}" for name, share in most)
