"""What a threshold means for a model: every model has a scale of its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

SAMPLE: Final = 500
"""Records that are compared, each with each: about 125,000 pairs."""

LEAST: Final = 10
"""With fewer, nothing can be said."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How the cosines of arbitrary pairs lie to a threshold."""

    threshold: float
    pairs: int
    above: float
    """The share of pairs above the threshold."""
    median: float
    high: float
    """One pair in a hundred is above this."""

    def __str__(self) -> str:
        return (
            f"{100 * self.above:.2f} % of {self.pairs:,} arbitrary pairs of code records are above a cosine of "
            f"{self.threshold:g}; half are above {self.median:.2f}, one in a hundred above {self.high:.2f}"
        )


def measured(vectors: NDArray[np.float32], threshold: float) -> Scale | None:
    """The scale of a sample of vectors; None when there are too few."""
    known = vectors[vectors.any(axis=1)].astype(np.float64)
    if len(known) < LEAST:
        return None
    known /= np.linalg.norm(known, axis=1, keepdims=True)
    cosines = (known @ known.T)[np.triu_indices(len(known), 1)]
    return Scale(
        threshold,
        len(cosines),
        float(np.mean(cosines > threshold)),
        float(np.median(cosines)),
        float(np.quantile(cosines, 0.99)),
    )
