"""One place, one result: answers of different sources that overlap in one file are the same document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
Floats = NDArray[np.float64]
Answer = tuple[Keys, Floats]


class Place(NamedTuple):
    """Lines of a file."""

    path: str
    first: int
    last: int

    def overlap(self, other: Place) -> int:
        """How many lines two places of one file share."""
        return min(self.last, other.last) - max(self.first, other.first) + 1


def join(
    lists: Sequence[Answer], place_of: Callable[[Keys], Sequence[Place | None]]
) -> tuple[list[Answer], dict[int, int]]:
    """The lists with one key per place, and which key gave way to which.

    A candidate takes the key of the candidate of an earlier list that it shares most lines with. Candidates of
    one list are never joined by themselves: chunks that overlap their neighbours would chain a file together.
    """
    heads: dict[str, list[tuple[Place, int]]] = defaultdict(list)
    out: list[Answer] = []
    gave_way: dict[int, int] = {}
    for keys, scores in lists:
        places = place_of(keys)
        joined: dict[int, float] = {}
        fresh: list[tuple[Place, int]] = []
        for key, score, place in zip(keys.tolist(), scores.tolist(), places, strict=True):
            head = key if place is None else _head(heads[place.path], place, key)
            if head != key:
                gave_way[key] = head
            elif place is not None:
                fresh.append((place, key))
            # The list falls: the first of several that become one has the best rank and score.
            joined.setdefault(head, score)
        for place, key in fresh:
            heads[place.path].append((place, key))
        out.append((np.fromiter(joined, np.int64, len(joined)), np.fromiter(joined.values(), np.float64)))
    return out, gave_way


def _head(heads: Sequence[tuple[Place, int]], place: Place, key: int) -> int:
    shared, _, head = max(
        ((place.overlap(other), -other.first, taken) for other, taken in heads), default=(0, 0, key)
    )
    return head if shared > 0 else key
