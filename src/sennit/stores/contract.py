"""Values that stores and their callers share: scored keys, and the parameters of the keyword score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.errors import InvalidInput


class ScoredKeys(NamedTuple):
    """The result of one index search, best first. A key identifies one version of one record."""

    keys: NDArray[np.int64]
    scores: NDArray[np.float64]

    @classmethod
    def empty(cls) -> ScoredKeys:
        return cls(np.empty(0, np.int64), np.empty(0, np.float64))


@dataclass(frozen=True, slots=True)
class BM25:
    """The parameters of the keyword score; see docs/ranking-contract.md."""

    k1: float = 1.2
    b: float = 0.4
    """1.2 and 0.4 are near the optimum on every text collection that we measured; see docs/quality.md."""
    text_weight: float = 1.0
    title_weight: float = 2.0
    """A term in the title tells what a text is about; 2 helps or is neutral on every collection that we measured."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.k1) and self.k1 >= 0):
            raise InvalidInput(f"BM25 k1 must be a number of at least 0, not {self.k1!r}")
        if not 0 <= self.b <= 1:
            raise InvalidInput(f"BM25 b must be between 0 and 1, not {self.b!r}")
        for weight in self.field_weights:
            if not (math.isfinite(weight) and weight >= 0):
                raise InvalidInput(f"A BM25 field weight must be a number of at least 0, not {weight!r}")
        if not any(self.field_weights):
            raise InvalidInput("At least one BM25 field weight must be above 0")

    @property
    def field_weights(self) -> tuple[float, float]:
        """The weights, in the order of the keyword index's fields."""
        return (self.text_weight, self.title_weight)
