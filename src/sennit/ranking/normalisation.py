"""Score normalisation: puts the scores of different lists on one scale, so that they can be added.

Every rule takes finite scores, best first, and returns as many finite numbers. The formulas and their
degenerate cases are part of docs/ranking-contract.md. `max`, `minmax`, `sum`, `zscore` and,
across lists, Borda's are from Montague and Aslam, "Relevance score normalization for metasearch" (CIKM 2001).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sennit.ranking.calibration import NO_BACKGROUND, Background

Floats: TypeAlias = NDArray[np.float64]

# Squares and sums of some hundreds of such numbers stay finite, so a finite list gives a finite result.
MAX_MAGNITUDE = 1e100


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule. `flat` gives the value of each of n equal scores, for rules that divide by the spread of the scores."""

    apply: Callable[[Floats], Floats]
    flat: Callable[[int], float] | None = None
    needs_background: bool = False
    """Whether the scores are cosines, which are compared with the background of the search."""


def normalise(
    name: str, scores: Floats, all_equal: float | None = None, background: Background = NO_BACKGROUND
) -> Floats:
    """Return the scores by the named rule; `all_equal` overrides the value for a list of equal scores."""
    rule = find_rule(name)
    if scores.size == 0:
        return np.empty(0, dtype=np.float64)
    if rule.needs_background:
        return background.normalise(scores)
    if rule.flat is not None and scores.max() == scores.min():
        value = rule.flat(scores.size) if all_equal is None else all_equal
        return np.full(scores.size, value, dtype=np.float64)
    return rule.apply(scores)


def find_rule(name: str) -> Rule:
    """Return the rule with this name."""
    rule = NORMALISATIONS.get(name)
    if rule is None:
        raise ValueError(f"unknown normalisation {name!r}; use one of: {', '.join(NORMALISATIONS)}")
    return rule


def _max_magnitude(scores: Floats) -> float:
    return float(np.maximum.reduce(np.abs(scores)))


def _none(scores: Floats) -> Floats:
    return np.array(scores, dtype=np.float64)


def _max(scores: Floats) -> Floats:
    # The largest magnitude, not the maximum: with negative scores, dividing by the maximum would reverse the
    # order (all below 0) or overflow (maximum near 0). For scores of at least 0 the two are equal.
    largest = _max_magnitude(scores)
    return scores / largest if largest > 0 else np.zeros(scores.size)


def _minmax(scores: Floats) -> Floats:
    lowest = float(scores.min())
    return (scores - lowest) / (float(scores.max()) - lowest)


def _sum(scores: Floats) -> Floats:
    above = scores - float(scores.min())
    return above / float(above.sum())


def _l2(scores: Floats) -> Floats:
    scaled = _max(scores)  # before squaring, or tiny scores would vanish
    length = math.sqrt(np.square(scaled).sum())
    return scaled / length if length > 0 else scaled


def _deviations(scores: Floats, ddof: int) -> Floats:
    """Return distances from the mean in standard deviations: of the population for `ddof` 0, of the sample for 1."""
    from_mean = scores - float(scores.mean())
    largest = _max_magnitude(from_mean)
    if largest == 0:  # the scores differ by less than the precision of the mean
        return from_mean
    from_mean /= largest  # before squaring, or small differences would vanish
    return from_mean / math.sqrt(np.square(from_mean).sum() / (scores.size - ddof))


def _zscore(scores: Floats) -> Floats:
    return _deviations(scores, 0)


def _dbsf(scores: Floats) -> Floats:
    return _deviations(scores, 0) / 6 + 0.5


def _dbsf_sample(scores: Floats) -> Floats:
    return _deviations(scores, 1) / 6 + 0.5


def _rank(scores: Floats) -> Floats:
    return 1.0 - np.arange(scores.size) / scores.size


def _arctan(scores: Floats) -> Floats:
    return np.arctan(scores) * (2 / np.pi)


NORMALISATIONS: dict[str, Rule] = {
    "none": Rule(_none),
    "max": Rule(_max),
    "minmax": Rule(_minmax, flat=lambda _: 1.0),  # Weaviate
    "sum": Rule(_sum, flat=lambda n: 1.0 / n),  # still sums to 1
    "l2": Rule(_l2),  # OpenSearch
    "zscore": Rule(_zscore, flat=lambda _: 0.0),
    "dbsf": Rule(_dbsf, flat=lambda _: 0.5),  # Haystack, LlamaIndex: the population's deviation
    "dbsf_sample": Rule(_dbsf_sample, flat=lambda _: 0.5),  # Qdrant: the sample's deviation
    "rank": Rule(_rank),
    "arctan": Rule(_arctan),  # Milvus
    "background": Rule(NO_BACKGROUND.normalise, needs_background=True),
}
