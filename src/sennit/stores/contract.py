"""What the engine asks of a store: roles, and the small values that pass between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.errors import InvalidInput


class Found(NamedTuple):
    """What a search in one index found, best first; a key stands for one version of one record."""

    keys: NDArray[np.int64]
    scores: NDArray[np.float64]

    @classmethod
    def nothing(cls) -> Found:
        return cls(np.empty(0, np.int64), np.empty(0, np.float64))


@dataclass(frozen=True, slots=True)
class BM25:
    """Constants of the keyword score; see docs/ranking-contract.md."""

    k1: float = 1.2
    b: float = 0.4
    """1.2 and 0.4 are near the best on every text collection we measured; see docs/quality.md."""
    text_weight: float = 1.0
    title_weight: float = 2.0
    """A word in the title says what a text is about; 2 helps or is neutral on every collection we measured."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.k1) and self.k1 >= 0):
            raise InvalidInput(f"BM25 k1 must be a number of at least 0, not {self.k1!r}")
        if not 0 <= self.b <= 1:
            raise InvalidInput(f"BM25 b must be between 0 and 1, not {self.b!r}")
        for weight in self.field_weights:
            if not (math.isfinite(weight) and weight >= 0):
                raise InvalidInput(f"A BM25 field weight must be a number of at least 0, not {weight!r}")
        if not any(self.field_weights):
            raise InvalidInput("One BM25 field weight at least must be above 0")

    @property
    def field_weights(self) -> tuple[float, float]:
        """In the order of the index's fields."""
        return (self.text_weight, self.title_weight)
