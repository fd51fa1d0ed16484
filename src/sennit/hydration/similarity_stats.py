"""Statistics of a model's cosines, which say what a similarity threshold means for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

MAX_SAMPLED_VECTORS: Final = 500
"""Vectors that are compared pairwise: about 125,000 pairs."""

MIN_VECTORS: Final = 10
"""Fewer vectors give no useful statistics."""


@dataclass(frozen=True, slots=True)
class SimilarityStats:
    """How the cosines of arbitrary pairs compare with a threshold."""

    threshold: float
    pairs: int
    above: float
    """The share of pairs above the threshold."""
    median: float
    percentile_99: float

    def __str__(self) -> str:
        return (
            f"{100 * self.above:.2f} % of {self.pairs:,} arbitrary pairs of code records are above a cosine of "
            f"{self.threshold:g}; half are above {self.median:.2f}, one in a hundred above {self.percentile_99:.2f}"
        )


def measure_similarity(vectors: NDArray[np.float32], threshold: float) -> SimilarityStats | None:
    """Return the statistics of a sample of vectors; None if there are too few."""
    nonzero = vectors[vectors.any(axis=1)].astype(np.float64)
    if len(nonzero) < MIN_VECTORS:
        return None
    nonzero /= np.linalg.norm(nonzero, axis=1, keepdims=True)
    cosines = (nonzero @ nonzero.T)[np.triu_indices(len(nonzero), 1)]
    return SimilarityStats(
        threshold,
        len(cosines),
        float(np.mean(cosines > threshold)),
        float(np.median(cosines)),
        float(np.quantile(cosines, 0.99)),
    )
