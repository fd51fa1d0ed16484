"""Which records a search may return: by row, as a filter decides, and by position, as a segment needs it."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

MIN_CACHED_ROWS: Final = 2048
"""For fewer rows than this, such as those of a buffer, the positions are computed each time."""

MAX_CACHED_SELECTIONS: Final = 16
"""Segments whose positions are cached for one filter."""


class Selection:
    """A set of positions in one segment, in the forms that the different searches need."""

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self.uses = 0
        """How often a search has used it."""
        self.sample: tuple[NDArray[np.intp], NDArray[np.float32]] | None = None
        """Some of the positions with a contiguous copy of their vectors, which avoids a cache miss for each."""
        self.scan_parameters: Any = None
        """The faiss parameters for a scan of these positions; creating them costs as much as a thousand vectors."""

    @cached_property
    def count(self) -> int:
        return int(np.count_nonzero(self.mask))

    @cached_property
    def positions(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.mask)

    @cached_property
    def ranks(self) -> NDArray[np.intp]:
        """For each position of the segment, how many selected positions come before it."""
        ranks: NDArray[np.intp] = np.cumsum(self.mask, dtype=np.intp) - self.mask
        return ranks

    @cached_property
    def bits(self) -> NDArray[np.uint8]:
        return np.packbits(self.mask, bitorder="little")


class FilterBitmap:
    """The rows that pass a filter. It grows with the database, and the bit of a row never changes."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._selections: dict[int, tuple[weakref.ref[Rows], weakref.ref[Mask] | None, Selection]] = {}

    def __getitem__(self, rows: Rows) -> Mask:
        found: Mask = self._mask[rows]
        return found

    def has(self, row: int) -> bool:
        """Whether one row passes."""
        return bool(self._mask[row])

    def grow(self, size: int, passing: Rows) -> None:
        """Extend the bitmap to the rows below `size`, of which these pass."""
        mask = self._mask
        if size > len(mask):
            mask = np.zeros(max(size, len(mask) + len(mask) // 8), bool)
            mask[: len(self._mask)] = self._mask
        mask[passing] = True
        # A concurrent reader asks only for older rows, which both arrays hold.
        self._mask = mask

    def select(self, rows: Rows, live: Mask | None) -> Selection:
        """The positions of a segment's rows that pass and are live; cached, because searches repeat filters."""
        if len(rows) < MIN_CACHED_ROWS:
            return self._compute_selection(rows, live)
        known = self._selections.get(id(rows))
        if known is not None and known[0]() is rows:
            same_live = known[1] is None if live is None else known[1] is not None and known[1]() is live
            if same_live:
                return known[2]
        if len(self._selections) >= MAX_CACHED_SELECTIONS:
            self._selections = {}
        selection = self._compute_selection(rows, live)
        live_ref = None if live is None else weakref.ref(live)
        self._selections[id(rows)] = (weakref.ref(rows), live_ref, selection)
        return selection

    def _compute_selection(self, rows: Rows, live: Mask | None) -> Selection:
        return Selection(self._mask[rows] if live is None else self._mask[rows] & live)


def select_positions(rows: Rows, live: Mask | None, allowed: FilterBitmap | None) -> Selection | None:
    """The positions of the rows that are live and allowed; None when all are."""
    if allowed is not None:
        return allowed.select(rows, live)
    return None if live is None else Selection(live)


def find_ascending(rows: Rows, wanted: Rows) -> tuple[NDArray[np.intp], Mask]:
    """The position of each wanted row in `rows`, which ascend and are not empty, and which of them were found.

    The position of a row that was not found means nothing.
    """
    count = len(rows)
    first = int(rows[0])
    if int(rows[-1]) - first == count - 1:
        # Rows without gaps, as a segment has them until its deletions are merged away, need no search.
        positions = wanted - first
        # A position below 0 is a huge number if read as unsigned.
        return positions, positions.view(np.uint64) < count
    positions = np.minimum(rows.searchsorted(wanted), count - 1)
    return positions, rows[positions] == wanted
