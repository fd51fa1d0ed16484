"""Relevance: the calibrated chance that a record answers the query, from what the indexes know about both."""

from __future__ import annotations

from typing import Final

import numpy as np

from sennit.ranking.stages import Floats, StageOutput
from sennit.results import Dropped

INTERCEPT: Final = -5.0
COVERAGE: Final = 4.0
SIMILARITY: Final = 8.0


def estimate_relevance(coverage: Floats, similarity: Floats) -> Floats:
    """Return the chance of each record.

    `coverage` is the share of the query's information that the text has, `similarity` the cosine above the background,
    both from 0 to 1; nan where it is unknown.
    """
    logit = INTERCEPT + COVERAGE * np.nan_to_num(coverage) + SIMILARITY * np.nan_to_num(similarity)
    chance: Floats = 1.0 / (1.0 + np.exp(-logit))
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
