"""Relevance: the calibrated chance that a record answers the query.

A logistic model of five numbers that mean the same in every recipe, database and embedding model. The coefficients
were fitted by `python -m benchmarks.relevance`; docs/design/relevance.md has the data, the figures and what was tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from sennit.ranking.stages import StageOutput
from sennit.results import Dropped


class Evidence(NamedTuple):
    """What the relevance of each record of a ranking is estimated from, in the order of the ranking.

    These are plain numbers: most answers have ten records, for which Python takes less time than numpy.
    """

    coverage: Sequence[float]
    """The share of the query's information (idf) that its text has, from 0 to 1; nan for a query without terms."""
    lift: Sequence[float]
    """How far its cosine is above the background, with `size_allowance`; nan without a vector."""
    linked: Sequence[bool]
    """Whether another record that was found mentions it; empty if no record is linked."""
    best: float
    """The best match among the first ten of the ranking: whether the question is about this database at all."""


BEST_OF: Final = 10
"""Records at the top of a ranking among which the best match is looked for."""

LIFT_WEIGHT: Final = 2.0
"""What a lift counts for in a match, beside 1 for the coverage."""

FULL_MATCH: Final = 1.2
"""A better match says no more about whether the question is about this database."""

LINK_MATCH: Final = 0.8
"""A link counts only if the best match is above this: the records around a poor match are no answers either."""


LOWEST_LOG_ODDS: Final = -700.0
"""The chance is 0 below this: `math.exp` of more than 709 is an error."""

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


def best_match(coverage: Iterable[float], lift: Iterable[float]) -> float:
    """Return how well the best of some texts matches the query by words and by meaning; an unknown part counts 0."""
    return max(
        [
            (0.0 if words != words else words) + (0.0 if meaning != meaning else LIFT_WEIGHT * meaning)
            for words, meaning in zip(coverage, lift, strict=True)
        ],
        default=0.0,
    )


@lru_cache(maxsize=64)
def _log_ranks(count: int) -> tuple[float, ...]:
    return tuple(math.log1p(rank) for rank in range(count))


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

    def log_odds(self, evidence: Evidence) -> list[float]:
        """Return the log odds of each record; nan where a part of its evidence is unknown."""
        of_words, of_meaning, of_rank = self.coverage, self.lift, self.log_rank
        best = min(evidence.best, FULL_MATCH)
        base = self.intercept + self.best * best
        odds = [
            base + of_words * coverage + of_meaning * lift + of_rank * log_rank
            for coverage, lift, log_rank in zip(
                evidence.coverage, evidence.lift, _log_ranks(len(evidence.lift)), strict=True
            )
        ]
        if evidence.linked and best > LINK_MATCH:
            gain = self.linked * (best - LINK_MATCH)
            odds = [one + gain if linked else one for one, linked in zip(odds, evidence.linked, strict=True)]
        return odds


WORDS_AND_MEANING: Final = Coefficients(-8.426, 1.795, 2.966, 5.182, -1.185, 5.686)
WORDS: Final = Coefficients(-2.229, 2.238, 0.0, 2.260, -1.494, 3.176)
"""For a search without vectors."""
MEANING: Final = Coefficients(-3.942, 0.0, 3.142, 2.634, -1.483, 5.241)
"""For a query without terms, such as a lone symbol."""


def estimate_relevance(evidence: Evidence) -> list[float]:
    """Return the chance of each record, from 0 to 1."""
    log_odds = WORDS_AND_MEANING.log_odds(evidence)
    if math.isnan(sum(log_odds)):
        log_odds = list(_log_odds_of_parts(evidence))
    return [0.0 if odds < LOWEST_LOG_ODDS else 1.0 / (1.0 + math.exp(-odds)) for odds in log_odds]


def _log_odds_of_parts(evidence: Evidence) -> Iterator[float]:
    """Yield the log odds of records of which some have only words, or only a vector, or neither."""
    known = evidence._replace(
        coverage=[0.0 if math.isnan(value) else value for value in evidence.coverage],
        lift=[0.0 if math.isnan(value) else value for value in evidence.lift],
    )
    both, words, meaning = (model.log_odds(known) for model in (WORDS_AND_MEANING, WORDS, MEANING))
    for at, (coverage, lift) in enumerate(zip(evidence.coverage, evidence.lift, strict=True)):
        if math.isnan(coverage):
            yield -math.inf if math.isnan(lift) else meaning[at]
        else:
            yield words[at] if math.isnan(lift) else both[at]


def cut_by_relevance(ranking: StageOutput, relevance: Sequence[float], lowest: float) -> StageOutput:
    """Leave out the records whose relevance is below `lowest`."""
    kept = np.array([chance >= lowest for chance in relevance], bool)
    dropped = {
        key: Dropped(
            "min_relevance", f"its relevance is {chance:.3f}, and {lowest:g} is needed", chance, lowest
        )
        for key, chance in zip(ranking.keys.tolist(), relevance, strict=True)
        if chance < lowest
    }
    return StageOutput(ranking.keys[kept], ranking.scores[kept], dropped)
