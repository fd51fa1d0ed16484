"""The pieces of a derived index: immutable segments, what was removed from each since, and the tail."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sennit.stores.embedded.arrays import Arrays, Growing
from sennit.stores.embedded.segments import Entry
from sennit.stores.embedded.selection import Mask, Rows


class Segment(ABC):
    """Records of a range of changes, immutable; `rows` says which record is at which position."""

    rows: Rows

    @abstractmethod
    def arrays(self) -> Arrays:
        """What is kept of it."""

    def find(self, rows: Rows) -> NDArray[np.intp]:
        """The position of each row, -1 where it is not here."""
        if not len(self.rows):
            return np.full(len(rows), -1, np.intp)
        at = np.minimum(self.rows.searchsorted(rows, sorter=self._order), len(self.rows) - 1)
        if self._order is not None:
            at = self._order[at]
        at[self.rows[at] != rows] = -1
        return at

    @cached_property
    def _order(self) -> NDArray[np.intp] | None:
        """What sorts the rows; None when they ascend, as all do but those with late vectors."""
        return None if (self.rows[1:] > self.rows[:-1]).all() else np.argsort(self.rows, kind="stable")


class Tail(ABC):
    """The newest records, in memory. Only ever appended to; a reader looks at the first n."""

    def __init__(self) -> None:
        self.rows = Growing(np.int64)
        self.places: dict[int, int] = {}
        """The position of each row."""

    @abstractmethod
    def append(self, item: Any) -> None:
        """Take one more record."""

    def _place(self, row: int) -> None:
        """Comes last when a record is appended: who counts the rows then finds all the rest."""
        self.places[row] = len(self.rows)
        self.rows.append(row)


SegmentT = TypeVar("SegmentT", bound=Segment)
TailT = TypeVar("TailT", bound=Tail)


@dataclass(frozen=True, slots=True)
class Layer(Generic[SegmentT]):
    """A segment with what has been removed from it since."""

    segment: SegmentT
    entry: Entry
    live: Mask | None = None
    """None while nothing has been removed."""

    @property
    def live_count(self) -> int:
        return len(self.segment.rows) if self.live is None else int(np.count_nonzero(self.live))

    def without(self, removed: Rows) -> Layer[SegmentT]:
        """The layer with these rows removed; itself when it holds none of them."""
        at = self.segment.find(removed)
        at = at[at >= 0]
        if not len(at):
            return self
        live = np.ones(len(self.segment.rows), bool) if self.live is None else self.live.copy()
        live[at] = False
        return replace(self, live=live)


@dataclass(frozen=True, slots=True)
class Layers(Generic[SegmentT, TailT]):
    """One moment of an index."""

    seq: int
    layers: tuple[Layer[SegmentT], ...]
    tail: TailT
    tail_count: int
    tail_live: Mask | None = None
    """Which of the tail's records live; None when all do."""

    @property
    def tail_rows(self) -> Rows:
        return self.tail.rows.first(self.tail_count)

    def after(self, seq: int, removed: Rows) -> Layers[SegmentT, TailT]:
        """The moment at which the tail is as long as it is now, and these rows are gone."""
        count = len(self.tail.rows)
        layers = tuple(layer.without(removed) for layer in self.layers) if len(removed) else self.layers
        gone = [self.tail.places[row] for row in removed.tolist() if row in self.tail.places]
        live = None
        if gone or self.tail_live is not None:
            live = np.ones(count, bool)
            if self.tail_live is not None:
                live[: self.tail_count] = self.tail_live
            live[gone] = False
        return Layers(seq, layers, self.tail, count, live)
