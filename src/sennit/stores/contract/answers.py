"""What an index answers: the keys of records, and their scores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
"""Keys of records: each is the number of the change that wrote this version of a record."""
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]


class ScoredKeys(NamedTuple):
    """The result of one index search, best first. A key identifies one version of one record."""

    keys: Keys
    scores: Floats

    @classmethod
    def empty(cls) -> ScoredKeys:
        return cls(np.empty(0, np.int64), np.empty(0, np.float64))

    def with_scores(self, scores: Floats) -> ScoredKeys:
        """The same keys with other scores."""
        return ScoredKeys(self.keys, scores)


class MatchedKeys(ScoredKeys):
    """What a server found, and which terms of the query each record has."""

    matched: Mask
    """[record, term]"""

    @classmethod
    def of(cls, found: ScoredKeys, matched: Mask) -> MatchedKeys:
        keys = cls(*found)
        keys.matched = matched
        return keys


class PartialKeys(ScoredKeys):
    """What was found although a part of the index did not answer. It is used, and `problem` is reported."""

    problem: str

    @classmethod
    def of(cls, found: ScoredKeys, problem: str) -> PartialKeys:
        partial = cls(*found)
        partial.problem = problem
        return partial

    def with_scores(self, scores: Floats) -> PartialKeys:
        """The same keys with other scores, still as a part."""
        return PartialKeys.of(ScoredKeys(self.keys, scores), self.problem)
