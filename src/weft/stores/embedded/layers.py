"""A derived index in layers: immutable segments for most of the records, a small tail for the newest.

Keyword and vector index are two kinds of this one mechanism. A write is visible as soon as the tail has it,
which is at the next search; the tail is folded into a segment when it has grown, and segments are merged so
that few remain. A search works on a `Layers` value, which later changes never touch.
"""

from __future__ import annotations

import contextlib
import logging
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from weft.stores.embedded.arrays import Arrays, Damaged
from weft.stores.embedded.database import Database
from weft.stores.embedded.segments import Entry, Segments

log = logging.getLogger("weft.store")

MERGE_RATIO: Final = 0.25
"""A segment joins the one before it when it has a quarter of its size: at most about log4(n / fold) segments
remain, and a record is rewritten about that often."""

REWRITE_DEAD: Final = 0.25
"""A segment is written anew when a quarter of it has been removed."""

FOLD_CHUNK: Final = 16_384
"""Records folded in one go: bounds the memory of a rebuild."""

Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]


class Cancelled(Exception):
    """Long work was given up because the database is being closed."""


class Segment(ABC):
    """Records of a range of changes, immutable; `rows` says which record is at which position."""

    rows: Rows

    @abstractmethod
    def arrays(self) -> Arrays:
        """What is kept of it."""

    def find(self, rows: Rows) -> NDArray[np.intp]:
        """The position of each row, -1 where it is not here."""
        order = np.argsort(self.rows, kind="stable") if not self._ascending() else None
        at = np.searchsorted(self.rows, rows, sorter=order)
        at[at == len(self.rows)] = 0
        if order is not None and len(order):
            at = order[at]
        if not len(self.rows):
            return np.full(len(rows), -1, np.intp)
        at[self.rows[at] != rows] = -1
        return at

    def _ascending(self) -> bool:
        return bool(np.all(self.rows[1:] > self.rows[:-1]))


class Tail(ABC):
    """The newest records, in memory. Only ever appended to; a reader looks at the first n."""

    rows: list[int]

    @abstractmethod
    def append(self, item: Any) -> None:
        """Take one more record."""


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
    tail_dead: frozenset[int]

    def tail_live(self) -> Mask | None:
        """Which of the tail's records live; None when all do."""
        if not self.tail_dead:
            return None
        rows = self.tail.rows
        return np.fromiter(
            (rows[i] not in self.tail_dead for i in range(self.tail_count)), bool, self.tail_count
        )


class LayeredIndex(ABC, Generic[SegmentT, TailT]):
    """One derived index of one database, as this process sees it."""

    name: str

    def __init__(self, segments: Segments, report: Callable[[str], None]) -> None:
        self._store = segments
        self._report = report
        self._lock = threading.RLock()
        self._stamp = (0, 0)
        self._known: dict[str, SegmentT] = {}
        self.stopping = threading.Event()
        """Set when the database is closed: long work gives up, to be done another time."""
        self._state: Layers[SegmentT, TailT] | None = None

    # What a kind of index defines.

    @abstractmethod
    def new_tail(self) -> TailT: ...

    @abstractmethod
    def load(self, connection: sqlite3.Connection, low: int, high: int) -> Iterable[Any]:
        """The live records of the changes low < n <= high, from the truth."""

    @abstractmethod
    def build(self, items: Iterable[Any]) -> SegmentT:
        """A segment of records as `load` gives them."""

    @abstractmethod
    def merge(self, layers: Sequence[Layer[SegmentT]]) -> SegmentT:
        """One segment with what lives of several, in their order."""

    @abstractmethod
    def revive(self, arrays: Arrays) -> SegmentT:
        """A segment from its arrays."""

    # Reading.

    def at(
        self, connection: sqlite3.Connection, seq: int, purged: int, *, refresh: bool = False
    ) -> Layers[SegmentT, TailT]:
        """The index with everything up to change `seq`, which is what the connection's transaction sees."""
        state = self._state
        if state is not None and state.seq == seq and not refresh:
            return state
        with self._lock:
            state = self._state
            if state is None or state.seq < purged or self._store.stamp() != self._stamp:
                state = self._opened(connection, seq)
            elif state.seq < seq:
                state = self._caught_up(connection, state, seq)
            self._state = state
            return state

    @property
    def tail_count(self) -> int:
        """How many records wait to be folded, as far as this process has looked."""
        return self._state.tail_count if self._state else 0

    def _caught_up(
        self, connection: sqlite3.Connection, state: Layers[SegmentT, TailT], seq: int
    ) -> Layers[SegmentT, TailT]:
        for item in self.load(connection, state.seq, seq):
            state.tail.append(item)
        removed = _removed(connection, state.seq, seq)
        return Layers(
            seq,
            tuple(layer.without(removed) for layer in state.layers) if len(removed) else state.layers,
            state.tail,
            len(state.tail.rows),
            state.tail_dead.union(removed.tolist()),
        )

    def _current(self, connection: sqlite3.Connection, seq: int, purged: int) -> Sequence[Layer[SegmentT]]:
        """The segments as published, without looking at what they do not cover."""
        with self._lock:
            state = self._state
            if state is not None and state.seq >= purged and self._store.stamp() == self._stamp:
                return state.layers
            layers = self._published(connection, seq)
            # The state still stands on the older list; the next search takes the newer.
            self._stamp = (-1, -1)
            return layers

    def _opened(self, connection: sqlite3.Connection, seq: int) -> Layers[SegmentT, TailT]:
        layers = self._published(connection, seq)
        tail = self.new_tail()
        for low, high in gaps([layer.entry for layer in layers], seq):
            for item in self.load(connection, low, high):
                tail.append(item)
        return Layers(seq, layers, tail, len(tail.rows), frozenset())

    def _published(self, connection: sqlite3.Connection, seq: int) -> tuple[Layer[SegmentT], ...]:
        self._stamp = self._store.stamp()
        removed = _removed(connection, 0, seq)
        entries = self._entries()
        layers = []
        for entry in entries:
            if entry.high > seq:
                # Published after this transaction began: its records are read as tail, this once.
                self._stamp = (-1, -1)
                continue
            segment = self._known.get(entry.file)
            if segment is None:
                try:
                    segment = self.revive(self._store.read(entry))
                except Damaged as damage:
                    self._report(f"part of the {self.name} index is rebuilt from the records: {damage}")
                    continue
            layers.append(Layer(segment, entry).without(removed))
            self._known[entry.file] = segment
        listed = {entry.file for entry in entries}
        self._known = {file: segment for file, segment in self._known.items() if file in listed}
        return tuple(layers)

    def _entries(self) -> tuple[Entry, ...]:
        try:
            return self._store.entries()
        except Damaged as damage:
            self._report(f"the {self.name} index is rebuilt from the records: {damage}")
            return ()

    # Folding and merging.

    def fold(self, database: Database, *, at_least: int = 1, wait: bool = False) -> bool:
        """Turn what no segment covers into segments, when that is enough records; False when not done."""
        with self._store.exclusive("fold", wait=wait) as mine:
            if not mine:
                return False
            with database.read() as connection:
                seq, purged = moment(connection)
                entries = [layer.entry for layer in self._current(connection, seq, purged)]
                if _count(connection, gaps(entries, seq)) < at_least:
                    return False
                for low, high in gaps(entries, seq):
                    for start, stop in _chunks(connection, low, high):
                        segment = self.build(self.load(connection, start, stop))
                        if len(segment.rows):
                            entries.append(self._kept(segment, start, stop, seq))
            self._store.publish(sorted(entries, key=lambda entry: entry.low))
        self._reopen(database)
        return True

    def settle(self, database: Database, *, whole: bool = False, wait: bool = False) -> bool:
        """Merge segments until few are left (one, when `whole`); False when there was nothing to do."""
        with self._store.exclusive("merge", wait=wait) as mine:
            if not mine:
                return False
            with database.read() as connection:
                seq, purged = moment(connection)
                state = self.at(connection, seq, purged, refresh=True)
            runs = plan_merges(state.layers, whole=whole)
            for run in runs:
                entries = [layer.entry for layer in run]
                merged = self._kept(self.merge(run), entries[0].low, entries[-1].high, seq)
                self._replace(entries, merged)
                log.debug("merged %d segments of the %s index: %d records", len(run), self.name, merged.count)
        if runs:
            self._reopen(database)
        return bool(runs)

    def _kept(self, segment: SegmentT, low: int, high: int, clean: int) -> Entry:
        entry = self._store.write(segment.arrays(), low=low, high=high, clean=clean, count=len(segment.rows))
        with self._lock:
            self._known[entry.file] = segment
        return entry

    def _replace(self, old: Sequence[Entry], new: Entry) -> None:
        with self._store.exclusive("fold", wait=True):
            entries = self._entries()
            if all(entry in entries for entry in old):
                kept = [entry for entry in entries if entry not in old]
                kept += [new] if new.count else []
                self._store.publish(sorted(kept, key=lambda entry: entry.low))

    def _reopen(self, database: Database) -> None:
        with database.read() as connection, self._lock:
            seq, purged = moment(connection)
            self.at(connection, seq, purged, refresh=True)

    @contextlib.contextmanager
    def quiet(self) -> Iterator[bool]:
        """While true, nobody folds or merges; False at once when somebody does."""
        with self._store.exclusive("fold") as folding, self._store.exclusive("merge") as merging:
            yield folding and merging

    def covered(self) -> tuple[Entry, ...]:
        """The segments as published."""
        return self._entries()


def visible(rows: Rows, live: Mask | None, allowed: Callable[[Rows], Mask] | None) -> Mask | None:
    """Which of the rows live and are allowed; None when all are."""
    if allowed is None:
        return live
    return allowed(rows) if live is None else allowed(rows) & live


def moment(connection: sqlite3.Connection) -> tuple[int, int]:
    """The last change number, and the one up to which removals have been forgotten."""
    (seq,), (purged,) = connection.execute(
        "SELECT value FROM state WHERE key IN ('seq', 'purged') ORDER BY key = 'purged'"
    ).fetchall()
    return seq, purged


def gaps(entries: Sequence[Entry], seq: int) -> list[tuple[int, int]]:
    """The ranges low < n <= high up to `seq` that no segment covers."""
    holes = []
    reached = 0
    for entry in sorted(entries, key=lambda entry: entry.low):
        if entry.low > reached:
            holes.append((reached, min(entry.low, seq)))
        reached = max(reached, entry.high)
    if reached < seq:
        holes.append((reached, seq))
    return holes


def plan_merges(layers: Sequence[Layer[Any]], *, whole: bool = False) -> list[list[Layer[Any]]]:
    """Runs of neighbours to be written as one segment each."""
    if whole:
        worn = any(layer.live is not None for layer in layers)
        return [list(layers)] if len(layers) > 1 or worn else []
    runs: list[list[Layer[Any]]] = []
    for layer in layers:
        runs.append([layer])
        while len(runs) > 1 and _size(runs[-1]) >= MERGE_RATIO * _size(runs[-2]):
            last = runs.pop()
            runs[-1].extend(last)
    return [run for run in runs if len(run) > 1 or _worn(run[0])]


def _size(run: Sequence[Layer[Any]]) -> int:
    return sum(layer.live_count for layer in run)


def _worn(layer: Layer[Any]) -> bool:
    return layer.live_count < (1 - REWRITE_DEAD) * len(layer.segment.rows)


def _removed(connection: sqlite3.Connection, low: int, high: int) -> Rows:
    found = connection.execute("SELECT row FROM removals WHERE seq > ? AND seq <= ?", (low, high))
    return np.fromiter((row for (row,) in found), np.int64)


def _count(connection: sqlite3.Connection, ranges: Sequence[tuple[int, int]]) -> int:
    counts = (
        connection.execute("SELECT count(*) FROM records WHERE row > ? AND row <= ?", bounds).fetchone()[0]
        for bounds in ranges
    )
    return sum(counts)


def _chunks(connection: sqlite3.Connection, low: int, high: int) -> Iterator[tuple[int, int]]:
    """The range in pieces of at most FOLD_CHUNK records."""
    while True:
        found = connection.execute(
            "SELECT row FROM records WHERE row > ? AND row < ? ORDER BY row LIMIT 1 OFFSET ?",
            (low, high, FOLD_CHUNK - 1),
        ).fetchone()
        if found is None:
            yield low, high
            return
        yield low, found[0]
        low = found[0]
