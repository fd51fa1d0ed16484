"""The parts of a derived index: immutable segments with their deleted records, and the in-memory buffer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sennit.stores.embedded.arrays import Arrays, GrowingArray
from sennit.stores.embedded.segment_store import SegmentInfo
from sennit.stores.embedded.selection import Mask, Rows, find_ascending


class Segment(ABC):
    """The immutable records of a range of changes; `rows[n]` is the row of the record at position n."""

    rows: Rows

    @abstractmethod
    def to_arrays(self) -> Arrays:
        """The arrays that are stored."""

    def find_rows(self, rows: Rows) -> NDArray[np.intp]:
        """The position of each row, -1 where the segment does not hold it."""
        if not len(self.rows):
            return np.full(len(rows), -1, np.intp)
        if self._sorter is None:
            positions, is_found = find_ascending(self.rows, rows)
        else:
            last = len(self.rows) - 1
            positions = self._sorter[np.minimum(self.rows.searchsorted(rows, sorter=self._sorter), last)]
            is_found = self.rows[positions] == rows
        positions[~is_found] = -1
        return positions

    @cached_property
    def _sorter(self) -> NDArray[np.intp] | None:
        """The permutation that sorts the rows; None when they ascend, as they do without late vectors."""
        return None if (self.rows[1:] > self.rows[:-1]).all() else np.argsort(self.rows, kind="stable")


class Buffer(ABC):
    """The newest records, in memory. It only ever grows; each reader looks at its first n records."""

    def __init__(self) -> None:
        self.rows = GrowingArray(np.int64)
        self.positions: dict[int, int] = {}
        """The position of each row."""

    @abstractmethod
    def append(self, item: Any) -> None:
        """Add one record."""

    def _append_row(self, row: int) -> None:
        """Call this last: a reader that counts the row then finds everything else about the record in place."""
        self.positions[row] = len(self.rows)
        self.rows.append(row)


SegmentT = TypeVar("SegmentT", bound=Segment)
BufferT = TypeVar("BufferT", bound=Buffer)


@dataclass(frozen=True, slots=True)
class SegmentView(Generic[SegmentT]):
    """A segment and which of its records are live."""

    segment: SegmentT
    info: SegmentInfo
    live: Mask | None = None
    """None while no record has been deleted."""

    @property
    def live_count(self) -> int:
        return len(self.segment.rows) if self.live is None else int(np.count_nonzero(self.live))

    def without(self, deleted: Rows) -> SegmentView[SegmentT]:
        """The view without these rows; itself when it holds none of them."""
        positions = self.segment.find_rows(deleted)
        positions = positions[positions >= 0]
        if not len(positions):
            return self
        live = np.ones(len(self.segment.rows), bool) if self.live is None else self.live.copy()
        live[positions] = False
        return replace(self, live=live)


@dataclass(frozen=True, slots=True)
class IndexView(Generic[SegmentT, BufferT]):
    """An immutable snapshot of an index after the change `seq`."""

    seq: int
    segments: tuple[SegmentView[SegmentT], ...]
    buffer: BufferT
    buffer_count: int
    """How many records of the buffer belong to the snapshot."""
    buffer_live: Mask | None = None
    """Which of these records are live; None when all are."""

    @property
    def buffer_rows(self) -> Rows:
        return self.buffer.rows.first(self.buffer_count)

    def advance(self, seq: int, deleted: Rows) -> IndexView[SegmentT, BufferT]:
        """The snapshot after the change `seq`: with the buffer as long as it is now, and without these rows."""
        count = len(self.buffer.rows)
        segments = tuple(view.without(deleted) for view in self.segments) if len(deleted) else self.segments
        dead = [self.buffer.positions[row] for row in deleted.tolist() if row in self.buffer.positions]
        live = None
        if dead or self.buffer_live is not None:
            live = np.ones(count, bool)
            if self.buffer_live is not None:
                live[: self.buffer_count] = self.buffer_live
            live[dead] = False
        return IndexView(seq, segments, self.buffer, count, live)
