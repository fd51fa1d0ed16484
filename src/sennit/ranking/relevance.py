"""Relevance: the calibrated chance that a record answers the query.

A logistic model of five numbers that mean the same in every recipe, database and embedding model. The coefficients
were fitted by `python -m benchmarks.relevance`; docs/design/relevance.md has the data, the figures and what was tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.ranking.stages import Floats, StageOutput
from sennit.results import Dropped


class Evidence(NamedTuple):
    """What the relevance of each record is estimated from."""

    coverage: Floats
    """The share of the query's information (idf) that its text has, from 0 to 1; nan for a query without terms."""
    lift: Floats
    """How far its cosine is above the background, with `size_allowance`; nan without a vector."""
    rank: Floats
    """Its place in the ranking, from 0."""
    linked: Floats
    """1 if another record that was found mentions it, else 0."""
    best: Floats
    """The best `match` among the first ten of the ranking: whether the question is about this database at all."""

    def select(self, kept: NDArray[np.bool_]) -> Evidence:
        """Return the evidence of some of the records."""
        return Evidence(*(values[kept] for values in self))


BEST_OF: Final = 10
"""Records at the top of a ranking among which the best match is looked for."""

LIFT_WEIGHT: Final = 2.0
"""What a lift counts for in a match, beside 1 for the coverage."""

FULL_MATCH: Final = 1.4
"""A better match says no more about whether the question is about this database."""

LINK_MATCH: Final = 0.8
"""A link counts only if the best match is above this: the records around a poor match are no answers either."""


TYPICAL_RECORDS: Final = 3000
LIFT_DEVIATION: Final = 0.1
"""The standard deviation of the lift of arbitrary records; about the same for all models."""


@lru_cache(maxsize=64)
def size_allowance(records: int) -> float:
    """Return what the lift of a record gains in a database of this size.

    The best of many arbitrary records is nearer to a query than the best of a few, by about σ·√(2 ln n). So a lift says
    more in a small database than in one of TYPICAL_RECORDS, and less in a larger one.
    """
    extremes = [math.sqrt(2 * math.log(count + 1)) for count in (TYPICAL_RECORDS, records)]
    return LIFT_DEVIATION * (extremes[0] - extremes[1])


def match(coverage: Floats, lift: Floats) -> Floats:
    """Return how well texts match the query by words and by meaning; an unknown part counts 0."""
    return _known(coverage) + LIFT_WEIGHT * _known(lift)


def _known(values: Floats) -> Floats:
    """Return the values with 0 for nan."""
    return np.nan_to_num(values) if _has_unknown(values) else values


def _has_unknown(values: Floats) -> bool:
    # The sum is nan if any value is, and much cheaper than looking at each.
    return math.isnan(float(np.add.reduce(values)))


@dataclass(frozen=True, slots=True)
class Coefficients:
    """A logistic model: what each part of the evidence adds to the log odds."""

    intercept: float
    coverage: float
    lift: float
    best: float
    """For the best match, up to FULL_MATCH."""
    log_rank: float
    """For ln(1 + rank)."""
    linked: float
    """For a linked record, times the best match above LINK_MATCH."""

    def log_odds(self, evidence: Evidence) -> Floats:
        """Return the log odds of each record."""
        coverage, lift, best, log_rank, links = columns(evidence)
        # Column by column: a matrix product would give other last bits for other numbers of records.
        odds: Floats = self.intercept + self.coverage * coverage + self.lift * lift + self.best * best
        odds += self.log_rank * log_rank
        odds += self.linked * links
        return odds


def columns(evidence: Evidence) -> tuple[Floats, ...]:
    """Return what each coefficient but the intercept multiplies."""
    coverage, lift, rank, linked, best = evidence
    best = np.minimum(best, FULL_MATCH)
    links = linked * np.maximum(best - LINK_MATCH, 0.0)
    return coverage, lift, best, np.log1p(rank), links


WORDS_AND_MEANING: Final = Coefficients(-6.185, 1.918, 2.107, 3.134, -1.299, 4.005)
WORDS: Final = Coefficients(-2.248, 2.530, 0.0, 1.969, -1.492, 3.486)
"""For a search without vectors."""
MEANING: Final = Coefficients(-3.259, 0.0, 2.952, 1.835, -1.516, 4.919)
"""For a query without terms, such as a lone symbol."""


def estimate_relevance(evidence: Evidence) -> Floats:
    """Return the chance of each record, from 0 to 1."""
    if not _has_unknown(evidence.coverage) and not _has_unknown(evidence.lift):
        log_odds = WORDS_AND_MEANING.log_odds(evidence)
    else:
        has_words, has_meaning = ~np.isnan(evidence.coverage), ~np.isnan(evidence.lift)
        known = evidence._replace(coverage=_known(evidence.coverage), lift=_known(evidence.lift))
        log_odds = np.where(
            has_words & has_meaning,
            WORDS_AND_MEANING.log_odds(known),
            np.where(has_words, WORDS.log_odds(known), MEANING.log_odds(known)),
        )
        log_odds[~has_words & ~has_meaning] = -np.inf
    chance: Floats = 1.0 / (1.0 + np.exp(-log_odds))
    return chance


def cut_by_relevance(ranking: StageOutput, relevance: Floats, lowest: float) -> StageOutput:
    """Leave out the records whose relevance is below `lowest`."""
    kept = relevance >= lowest
    dropped = {
        key: Dropped(
            "min_relevance", f"its relevance is {chance:.3f}, and {lowest:g} is needed", chance, lowest
        )
        for key, chance in zip(ranking.keys[~kept].tolist(), relevance[~kept].tolist(), strict=True)
    }
    return StageOutput(ranking.keys[kept], ranking.scores[kept], dropped)
