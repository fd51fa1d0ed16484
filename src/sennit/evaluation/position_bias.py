"""How often a result is looked at by its position, estimated from feedback, so that clicks can be weighted by it.

A result at the top is clicked more often because it is looked at more often. The same result for the same query at two
positions tells how much: it is equally relevant at both, so the ratio of its clicks is the ratio of the looks
(intervention harvesting: Agarwal et al., "Estimating Position Bias without Intrusive Interventions", WSDM 2019). Interleaving,
new recipes and new records all move results. The ratios of all pairs of positions give the curve by the Bradley-Terry
model (MM algorithm: Hunter, Annals of Statistics 32, 2004). A click then counts 1 / (chance of a look) (Joachims et al.,
"Unbiased Learning-to-Rank with Biased Feedback", WSDM 2017).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.records import Json

PRIOR_CLICKS: Final = 1.0
"""What the assumed curve counts for between two neighbouring positions: as much as one click."""

MAX_WEIGHT: Final = 10.0
"""A click counts at most so much. Without a bound, one click far down would outweigh all others."""

ITERATIONS: Final = 2000
CONVERGED: Final = 1e-9


class Impression(NamedTuple):
    """A list that was shown for a query, and the positions from 0 that were chosen."""

    query: str
    shown: Sequence[str]
    chosen: frozenset[int]


@dataclass(frozen=True, slots=True)
class ExaminationCurve:
    """The chance that a result is looked at, relative to the first position."""

    chances: tuple[float, ...]
    moved: int
    """Results that were seen at two positions; 0 if the curve is only assumed."""

    def weight(self, position: int) -> float:
        """Return what a click at a position from 0 counts."""
        chance = self.chances[min(position, len(self.chances) - 1)] if self.chances else 1.0
        return min(1.0 / chance, MAX_WEIGHT)

    def to_dict(self) -> dict[str, Json]:
        return {
            "method": "intervention harvesting" if self.moved else "assumed: 1 / position",
            "moved_results": self.moved,
            "chances": [round(chance, 6) for chance in self.chances],
        }


def estimate_examination(impressions: Iterable[Impression]) -> ExaminationCurve:
    """Estimate the curve. Where no result was moved to or from a position, it is as assumed: 1 / position."""
    clicks: dict[tuple[str, str], dict[int, list[float]]] = defaultdict(
        lambda: defaultdict(lambda: [0.0, 0.0])
    )
    deepest = 0
    for query, shown, chosen in impressions:
        deepest = max(deepest, len(shown))
        for position, name in enumerate(shown):
            seen = clicks[query, name][position]
            seen[0] += 1
            seen[1] += position in chosen
    if not deepest:
        return ExaminationCurve((), 0)
    assumed = 1.0 / np.arange(1, deepest + 1)
    wins = np.zeros((deepest, deepest))
    for at in range(deepest - 1):
        share = assumed[at] / (assumed[at] + assumed[at + 1])
        wins[at, at + 1] += PRIOR_CLICKS * share
        wins[at + 1, at] += PRIOR_CLICKS * (1 - share)
    moved = 0
    for positions in clicks.values():
        if len(positions) < 2:
            continue
        moved += 1
        rates = {at: clicked / times for at, (times, clicked) in positions.items()}
        for first in positions:
            for second in positions:
                if first != second:
                    # A pair counts by the rarer of its positions, which is what its ratio is known from.
                    weight = min(positions[first][0], positions[second][0])
                    wins[first, second] += weight * rates[first]
    return ExaminationCurve(tuple(_bradley_terry(wins, assumed).tolist()), moved)


def _bradley_terry(wins: NDArray[np.float64], start: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return strengths so that each pair's share of wins is its share of strength; the first position has 1."""
    strengths = start.copy()
    games = wins + wins.T
    won = wins.sum(axis=1)
    for _ in range(ITERATIONS):
        new = won / np.maximum((games / (strengths[:, None] + strengths[None, :])).sum(axis=1), 1e-12)
        new = np.maximum(new / max(new[0], 1e-12), 1e-6)
        change = float(np.abs(new - strengths).max())
        strengths = new
        if change < CONVERGED:
            break
    return strengths
