"""Scores of which only the order counts, on a scale that the engine can use: by rank."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class RankScale:
    """The scale of one search of an index with scores of its own: 1 / log2(1 + rank), from 1 for the best.

    A score that is not in the list has the rank that it would have there; equal scores have the same rank, and 0, which
    means no match, stays 0.
    """

    def __init__(self, scores: Floats) -> None:
        self._rising = np.sort(scores)

    def convert(self, scores: Floats) -> Floats:
        """The scores by rank; nan stays nan."""
        better = len(self._rising) - np.searchsorted(self._rising, scores, side="right")
        by_rank = 1.0 / np.log2(2.0 + better)
        return np.where(np.isnan(scores), np.nan, np.where(scores > 0, by_rank, 0.0))


NO_SCALE = RankScale(np.empty(0))
"""The scale of a list that was not searched: every match is the best."""
