"""Merges candidates of different sources that overlap in one file into one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Keys = NDArray[np.int64]
Floats = NDArray[np.float64]
CandidateList = tuple[Keys, Floats]


class LineRange(NamedTuple):
    """Lines of a file."""

    path: str
    first: int
    last: int

    def overlap(self, other: LineRange) -> int:
        """Return how many lines two ranges of one file have in common."""
        return min(self.last, other.last) - max(self.first, other.first) + 1


def merge_overlaps(
    lists: Sequence[CandidateList], read_ranges: Callable[[Keys], Sequence[LineRange | None]]
) -> tuple[list[CandidateList], dict[int, int]]:
    """Return the lists with overlapping candidates under one key, and which key was merged into which.

    A candidate takes the key of the candidate of an earlier list that it shares most lines with. Candidates of
    one list are never merged with each other: overlapping chunks would chain a whole file together.
    """
    heads: dict[str, list[tuple[LineRange, int]]] = defaultdict(list)
    out: list[CandidateList] = []
    merged_into: dict[int, int] = {}
    for keys, scores in lists:
        ranges = read_ranges(keys)
        merged: dict[int, float] = {}
        unmerged: list[tuple[LineRange, int]] = []
        for key, score, lines in zip(keys.tolist(), scores.tolist(), ranges, strict=True):
            head = key if lines is None else _best_overlap(heads[lines.path], lines, key)
            if head != key:
                merged_into[key] = head
            elif lines is not None:
                unmerged.append((lines, key))
            # The list is in descending order, so the first of several that become one has the best rank and score.
            merged.setdefault(head, score)
        for lines, key in unmerged:
            heads[lines.path].append((lines, key))
        out.append((np.fromiter(merged, np.int64, len(merged)), np.fromiter(merged.values(), np.float64)))
    return out, merged_into


def _best_overlap(heads: Sequence[tuple[LineRange, int]], lines: LineRange, key: int) -> int:
    """Return the key of the range with most lines in common; `key` itself if none overlaps."""
    shared, _, head = max(
        ((lines.overlap(other), -other.first, head) for other, head in heads), default=(0, 0, key)
    )
    return head if shared > 0 else key
