"""Similarity on one scale for every model: where the threshold of candidates lies.

A fixed cosine means something else for every model. The scale measures how near unrelated code of the database is to
the query, and maps the range from there to identity to the range from 0 to 1. Words count on the same scale.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MAX_BACKGROUND_RECORDS: Final = 300
"""Records that the background is measured on."""

RELATED_GAIN: Final = 0.07
"""The part of the way from the background to identity at which code counts as related. With the static model 99 % of
the right answers of the benchmarks are farther."""

RELATED_SCORE: Final = 0.7
"""The score of code at that point: the default of `hydration.semantic_threshold`."""


RELATED_COVERAGE: Final = 0.4
"""The share of the query's information in a text at which it counts as related, whatever its vector."""


def measure_background(cosines: Floats) -> float:
    """Return the cosine of unrelated code with a query: the mean of the lower half, so that related code may be half."""
    known = np.sort(cosines[~np.isnan(cosines)])
    return float(known[: (len(known) + 1) // 2].mean()) if len(known) else 0.0


def calibrate_coverage(coverage: Floats) -> Floats:
    """Return scores from 0 to 1: RELATED_SCORE at RELATED_COVERAGE, 1 where a text has all of the query's information."""
    scores: Floats = np.interp(coverage, (0.0, RELATED_COVERAGE, 1.0), (0.0, RELATED_SCORE, 1.0))
    return scores


def calibrate(cosines: Floats, background: float) -> Floats:
    """Return scores from 0 to 1: 0 at the background, RELATED_SCORE at RELATED_GAIN, 1 at identity."""
    gains = (cosines - background) / max(1.0 - background, 1e-9)
    scores: Floats = np.interp(gains, (0.0, RELATED_GAIN, 1.0), (0.0, RELATED_SCORE, 1.0))
    return scores
