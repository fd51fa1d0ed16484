"""How certain a measurement is: confidence intervals, and tests between two systems on the same queries.

A query is the unit: systems are compared by their difference for each query. The randomisation test asks how often random
signs of these differences give a mean as large; it assumes nothing about their distribution. For few queries it tries
every assignment of signs. The t-test is given beside it, because it is what most papers report. Both agree on all but small or skewed samples (Smucker, Allan and Carterette,
CIKM 2007; Urbano, Lima and Hanjalic, SIGIR 2019).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.evaluation.sequential import Interval

SAMPLES: Final = 10_000
"""Resamples of a bootstrap or a randomisation test: a p-value of 0.05 is then exact to about ±0.004."""

LEVEL: Final = 0.95
SEED: Final = 20_260_101
"""The same queries give the same figures in every run."""

MAX_CELLS: Final = 5_000_000
"""Numbers in memory at once."""


@dataclass(frozen=True, slots=True)
class PairedTest:
    """A system against a baseline, on the same queries."""

    queries: int
    difference: float
    """The mean of the differences: above 0 if the system is better."""
    interval: Interval
    """Of the difference."""
    p_randomisation: float
    p_t: float
    better: int
    """Queries for which the system is better; so for the next two."""
    equal: int
    worse: int


def bootstrap_interval(values: Sequence[float], level: float = LEVEL, seed: int = SEED) -> Interval:
    """Return the percentile bootstrap interval of the mean."""
    sample = np.asarray(values, np.float64)
    if not len(sample):
        return Interval(0.0, 0.0)
    rng = np.random.default_rng(seed)
    means = np.concatenate(
        [
            sample[rng.integers(0, len(sample), (count, len(sample)))].mean(axis=1)
            for count in _batches(len(sample))
        ]
    )
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(low), float(high))


def randomisation_test(differences: Sequence[float], seed: int = SEED) -> float:
    """Return the two-sided p-value of the paired randomisation test of the mean difference.

    It is exact if the signs can be assigned in no more ways than would be sampled.
    """
    sample = np.asarray(differences, np.float64)
    nonzero = sample[sample != 0]
    if not len(nonzero):
        return 1.0
    # Equal up to rounding counts as equally large.
    limit = abs(nonzero.sum()) - abs(nonzero).sum() * 1e-12
    if 2 ** len(nonzero) <= SAMPLES:
        every = np.arange(2 ** len(nonzero))[:, None] >> np.arange(len(nonzero)) & 1
        return float((abs((every * 2 - 1) @ nonzero) >= limit).mean())
    rng = np.random.default_rng(seed)
    extreme = 0
    for count in _batches(len(nonzero)):
        signs = rng.integers(0, 2, (count, len(nonzero)), dtype=np.int8) * 2 - 1
        extreme += int((abs(signs @ nonzero) >= limit).sum())
    # The observed assignment is one of those possible.
    return (extreme + 1) / (SAMPLES + 1)


def t_test(differences: Sequence[float]) -> float:
    """Return the two-sided p-value of the paired t-test; 1 if all differences are 0."""
    sample = np.asarray(differences, np.float64)
    if len(sample) < 2 or not sample.any():
        return 1.0
    spread = float(sample.std(ddof=1))
    if spread == 0:
        return 0.0
    t = float(sample.mean()) / (spread / math.sqrt(len(sample)))
    freedom = len(sample) - 1
    return _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values corrected for several tests by Holm's method, in the same order."""
    out = [0.0] * len(p_values)
    highest = 0.0
    for done, at in enumerate(sorted(range(len(p_values)), key=lambda at: p_values[at])):
        highest = max(highest, min(1.0, p_values[at] * (len(p_values) - done)))
        out[at] = highest
    return out


def compare(baseline: Sequence[float], system: Sequence[float]) -> PairedTest:
    """Compare the values of a system with those of a baseline, query by query."""
    differences: NDArray[np.float64] = np.asarray(system, np.float64) - np.asarray(baseline, np.float64)
    return PairedTest(
        queries=len(differences),
        difference=float(differences.mean()) if len(differences) else 0.0,
        interval=bootstrap_interval(differences.tolist()),
        p_randomisation=randomisation_test(differences.tolist()),
        p_t=t_test(differences.tolist()),
        better=int((differences > 0).sum()),
        equal=int((differences == 0).sum()),
        worse=int((differences < 0).sum()),
    )


def _batches(size: int) -> list[int]:
    """How many resamples to compute at once, so that the memory stays bounded."""
    most = max(1, MAX_CELLS // max(size, 1))
    return [min(most, SAMPLES - start) for start in range(0, SAMPLES, most)]


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b), by its continued fraction (Lentz's method)."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(1 - x, b, a)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    tiny = 1e-300
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1), tiny)
    fraction = d
    for step in range(1, 10_000):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d, tiny)
            c = _away_from_zero(1 + term / c, tiny)
            fraction *= c * d
        if abs(c * d - 1) < 1e-14:
            break
    return front * fraction / a


def _away_from_zero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny
