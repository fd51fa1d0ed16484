"""Relevance: the calibrated chance that a record answers the query.

A logistic model of five numbers that mean the same in every recipe, database and embedding model. The coefficients
were fitted by `python -m benchmarks.relevance`; docs/design/relevance.md has the data, the figures and what was tried.
"""

from __future__ import annotations

from dataclasses import dataclass
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
    """How far its cosine is above the background, 1 at most; nan without a vector."""
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


def match(coverage: Floats, lift: Floats) -> Floats:
    """Return how well texts match the query by words and by meaning; an unknown part counts 0."""
    matches: Floats = np.nan_to_num(coverage) + LIFT_WEIGHT * np.nan_to_num(lift)
    return matches


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
        columns = design_matrix(evidence)
        odds: Floats = columns @ (
            self.intercept,
            self.coverage,
            self.lift,
            self.best,
            self.log_rank,
            self.linked,
        )
        return odds


def design_matrix(evidence: Evidence) -> Floats:
    """Return what each coefficient multiplies, one row per record."""
    coverage, lift, rank, linked, best = evidence
    best = np.minimum(best, FULL_MATCH)
    links = linked * np.maximum(best - LINK_MATCH, 0.0)
    return np.stack([np.ones(len(rank)), coverage, lift, best, np.log1p(rank), links], axis=1)


WORDS_AND_MEANING: Final = Coefficients(-5.855, 1.922, 2.164, 2.905, -1.301, 3.927)
WORDS: Final = Coefficients(-2.248, 2.530, 0.0, 1.969, -1.492, 3.486)
"""For a search without vectors."""
MEANING: Final = Coefficients(-3.226, 0.0, 3.426, 1.666, -1.492, 4.872)
"""For a query without terms, such as a lone symbol."""


def estimate_relevance(evidence: Evidence) -> Floats:
    """Return the chance of each record, from 0 to 1."""
    has_words, has_meaning = ~np.isnan(evidence.coverage), ~np.isnan(evidence.lift)
    if has_words.all() and has_meaning.all():
        log_odds = WORDS_AND_MEANING.log_odds(evidence)
    else:
        known = evidence._replace(
            coverage=np.nan_to_num(evidence.coverage), lift=np.nan_to_num(evidence.lift)
        )
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
