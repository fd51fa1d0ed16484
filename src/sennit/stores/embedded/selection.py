"""Which records a search may return: by row, as a filter says it, and by position, as an index needs it."""

from __future__ import annotations

import weakref
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

KEEP_FROM: Final = 2048
"""Positions of fewer rows than this are looked up anew each time, as those of a tail are."""

KEPT: Final = 16
"""Indexes whose positions are remembered for one filter."""


class Selection:
    """Some of the positions of one index, in the forms that scans and codes take."""

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self.asked = 0
        """How often it has been searched with."""
        self.sample: tuple[NDArray[np.intp], NDArray[np.float32]] | None = None
        """Some of the positions with their vectors side by side: as they lie, each costs a walk to memory."""
        self.scanned: Any = None
        """What faiss is told for a scan of these; to say it takes as long as to look at a thousand vectors."""

    @cached_property
    def count(self) -> int:
        return int(np.count_nonzero(self.mask))

    @cached_property
    def positions(self) -> NDArray[np.intp]:
        return np.flatnonzero(self.mask)

    @cached_property
    def ranks(self) -> NDArray[np.intp]:
        """By position: how many of the positions come before it."""
        ranks: NDArray[np.intp] = np.cumsum(self.mask, dtype=np.intp) - self.mask
        return ranks

    @cached_property
    def bits(self) -> NDArray[np.uint8]:
        return np.packbits(self.mask, bitorder="little")


class Passing:
    """The rows that pass a filter. It grows with the database; what it says of a row never changes."""

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._kept: dict[int, tuple[weakref.ref[Rows], weakref.ref[Mask] | None, Selection]] = {}

    def __getitem__(self, rows: Rows) -> Mask:
        found: Mask = self._mask[rows]
        return found

    def has(self, row: int) -> bool:
        """Whether one row passes."""
        return bool(self._mask[row])

    def grow(self, size: int, passing: Rows) -> None:
        """Take in the rows up to `size`, of which these pass."""
        mask = self._mask
        if size > len(mask):
            mask = np.zeros(max(size, len(mask) + len(mask) // 8), bool)
            mask[: len(self._mask)] = self._mask
        mask[passing] = True
        # Who reads meanwhile asks for older rows only, and those are in both.
        self._mask = mask

    def of(self, rows: Rows, live: Mask | None) -> Selection:
        """Which of an index's rows pass and live; remembered, because one filter is asked with many times."""
        if len(rows) < KEEP_FROM:
            return self._looked_up(rows, live)
        known = self._kept.get(id(rows))
        if known is not None and known[0]() is rows:
            same = known[1] is None if live is None else known[1] is not None and known[1]() is live
            if same:
                return known[2]
        if len(self._kept) >= KEPT:
            self._kept = {}
        chosen = self._looked_up(rows, live)
        self._kept[id(rows)] = (weakref.ref(rows), None if live is None else weakref.ref(live), chosen)
        return chosen

    def _looked_up(self, rows: Rows, live: Mask | None) -> Selection:
        return Selection(self._mask[rows] if live is None else self._mask[rows] & live)


def visible(rows: Rows, live: Mask | None, allowed: Passing | None) -> Selection | None:
    """Which of the rows live and are allowed; None when all are."""
    if allowed is not None:
        return allowed.of(rows, live)
    return None if live is None else Selection(live)
