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
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Generic

from sennit.stores.embedded.arrays import Arrays, Damaged, Gone
from sennit.stores.embedded.layer import Layer, Layers, SegmentT, TailT
from sennit.stores.embedded.ranges import chunks, gaps, is_past, moment, plan_merges, removed_between
from sennit.stores.embedded.segments import Entry, Segments
from sennit.stores.embedded.sqlite import SqlitePool

log = logging.getLogger("sennit.store")

FOLD_CHUNK: Final = 16_384
"""Records folded in one go: bounds the memory of a rebuild."""

Stamp = tuple[int, int]
NO_STAMP: Final[Stamp] = (-1, -1)
"""Of no published list: the next look takes whatever there is."""


class Cancelled(Exception):
    """Long work was given up because the database is being closed."""


class _Replaced(Exception):
    """A segment of the list that was read is gone, because another list has been published."""


class LayeredIndex(ABC, Generic[SegmentT, TailT]):
    """One derived index of one database, as this process sees it."""

    name: str

    def __init__(self, segments: Segments, report: Callable[[str], None]) -> None:
        self._store = segments
        self._report = report
        self.lock = threading.RLock()
        """Held while the state moves on; who holds it when a transaction begins is never behind the state."""
        self._stamp: Stamp = NO_STAMP
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

    def waiting(self, connection: sqlite3.Connection, low: int, high: int) -> int:
        """About how many records `load` would give."""
        found = connection.execute("SELECT count(*) FROM records WHERE row > ? AND row <= ?", (low, high))
        return int(found.fetchone()[0])

    def elsewhere(self, low: int, high: int, waiting: int) -> Entry | None:  # noqa: ARG002
        """The segment of the changes low < n <= high, built and written by another program; None if there is none.

        `waiting` is how many records are folded in all.
        """
        return None

    def novel(
        self,
        items: Iterable[Any],
        since: int,  # noqa: ARG002
        segments: Iterable[SegmentT],  # noqa: ARG002
        tail: Container[int],  # noqa: ARG002
    ) -> Iterable[Any]:
        """Those of the items that neither segments nor tail hold; as a rule all, and all after `since`."""
        return items

    # Reading.

    def at(
        self, connection: sqlite3.Connection, seq: int, purged: int, *, refresh: bool = False
    ) -> Layers[SegmentT, TailT]:
        """The index with everything up to change `seq`, which is what the connection's transaction sees."""
        state = self._state
        if state is not None and state.seq == seq and not refresh:
            return state
        with self.lock:
            while True:
                with contextlib.suppress(_Replaced):
                    return self._moved(connection, seq, purged)

    def _moved(self, connection: sqlite3.Connection, seq: int, purged: int) -> Layers[SegmentT, TailT]:
        state = self._state
        if state is not None and state.seq > seq:
            # Another thread has moved on: this transaction sees an earlier moment, read for it alone.
            return self._opened(connection, seq, purged, self._entries())
        if state is None or state.seq < purged:
            state = self._adopted(connection, seq, purged, self._store.stamp(), self._entries())
        elif (stamp := self._store.stamp()) != self._stamp and is_past(entries := self._entries(), seq):
            state = self._adopted(connection, seq, purged, stamp, entries)
        elif state.seq < seq:
            state = self._caught_up(connection, state, seq)
        self._state = state
        return state

    def _adopted(
        self, connection: sqlite3.Connection, seq: int, purged: int, stamp: Stamp, entries: Sequence[Entry]
    ) -> Layers[SegmentT, TailT]:
        """The index as published; a list that is later than this transaction is looked at again."""
        self._stamp = stamp if is_past(entries, seq) else NO_STAMP
        state = self._opened(connection, seq, purged, entries)
        self._forget_others(entries)
        return state

    def _forget_others(self, entries: Sequence[Entry]) -> None:
        """Let go of segments that are not on the list."""
        listed = {entry.file for entry in entries}
        self._known = {file: segment for file, segment in self._known.items() if file in listed}

    @property
    def is_open(self) -> bool:
        """Whether this process has looked at it."""
        return self._state is not None

    def _caught_up(
        self, connection: sqlite3.Connection, state: Layers[SegmentT, TailT], seq: int
    ) -> Layers[SegmentT, TailT]:
        held = [layer.segment for layer in state.layers]
        for item in self.novel(self.load(connection, state.seq, seq), state.seq, held, state.tail.places):
            state.tail.append(item)
        return state.after(seq, removed_between(connection, state.seq, seq))

    def _current(self, connection: sqlite3.Connection, seq: int, purged: int) -> Sequence[Layer[SegmentT]]:
        """The segments as published, without looking at what they do not cover."""
        with self.lock:
            state = self._state
            if state is not None and state.seq >= purged and self._store.stamp() == self._stamp:
                return state.layers
            return self._listed(connection, seq, purged)

    def _listed(self, connection: sqlite3.Connection, seq: int, purged: int) -> Sequence[Layer[SegmentT]]:
        while True:
            entries = self._entries()
            with contextlib.suppress(_Replaced):
                layers = self._published(connection, seq, purged, entries)
                self._forget_others(entries)
                return layers

    def _opened(
        self, connection: sqlite3.Connection, seq: int, purged: int, entries: Sequence[Entry]
    ) -> Layers[SegmentT, TailT]:
        layers = self._published(connection, seq, purged, entries)
        held = [layer.segment for layer in layers]
        since = max((layer.entry.high for layer in layers), default=0)
        tail = self.new_tail()
        for low, high in gaps([layer.entry for layer in layers], seq):
            for item in self.novel(self.load(connection, low, high), since, held, tail.places):
                tail.append(item)
        return Layers(seq, layers, tail, len(tail.rows))

    def _published(
        self, connection: sqlite3.Connection, seq: int, purged: int, entries: Sequence[Entry]
    ) -> tuple[Layer[SegmentT], ...]:
        removed = removed_between(connection, 0, seq)
        layers = []
        for entry in entries:
            if not is_past((entry,), seq):
                # Published after this transaction began: its records are read as tail, this once.
                continue
            try:
                if entry.clean < purged:
                    raise Damaged(f"{entry.file} is older than the records: what was removed is still in it")
                segment = self._known.get(entry.file)
                if segment is None:
                    segment = self._revived(entry)
            except Damaged as damage:
                if isinstance(damage, Gone) and entry not in self._entries():
                    raise _Replaced from damage
                self._report(f"part of the {self.name} index is rebuilt from the records: {damage}")
                continue
            layers.append(Layer(segment, entry).without(removed))
            self._known[entry.file] = segment
        return tuple(layers)

    def _revived(self, entry: Entry) -> SegmentT:
        arrays = self._store.read(entry)
        try:
            segment = self.revive(arrays)
        except (LookupError, TypeError, ValueError, RuntimeError) as error:
            raise Damaged(f"{entry.file} is not a segment of this index: {error!r}") from error
        if len(segment.rows) != entry.count:
            raise Damaged(f"{entry.file} holds {len(segment.rows)} records, and not {entry.count}")
        return segment

    def _entries(self) -> tuple[Entry, ...]:
        try:
            return self._store.entries()
        except Damaged as damage:
            self._report(f"the {self.name} index is rebuilt from the records: {damage}")
            return ()

    # Folding and merging.

    def fold(self, database: SqlitePool, *, at_least: int = 1, wait: bool = False) -> bool:
        """Turn what no segment covers into segments, when that is enough records; False when not done."""
        with self._store.exclusive("fold", wait=wait) as mine:
            if not mine:
                return False
            with database.read() as connection:
                seq, purged, _ = moment(connection)
                layers = self._current(connection, seq, purged)
                entries, held = [layer.entry for layer in layers], [layer.segment for layer in layers]
                holes = gaps(entries, seq)
                waiting = sum(self.waiting(connection, low, high) for low, high in holes)
                if waiting < at_least:
                    return False
                for low, high in holes:
                    for start, stop in chunks(connection, low, high, FOLD_CHUNK):
                        if (entry := self.elsewhere(start, stop, waiting)) is not None:
                            entries += [entry] if entry.count else []
                            continue
                        if self.stopping.is_set():
                            raise Cancelled
                        since = max((entry.high for entry in entries), default=0)
                        segment = self.build(self.novel(self.load(connection, start, stop), since, held, ()))
                        if len(segment.rows):
                            entries.append(self._kept(segment, start, stop, seq))
                            held.append(segment)
            self._store.publish(sorted(entries, key=lambda entry: entry.low))
        self._reopen(database)
        return True

    def settle(self, database: SqlitePool, *, whole: bool = False, most: int = 0, wait: bool = False) -> bool:
        """Merge segments until few are left (one, when `whole`); False when there was nothing to do.

        Up to `most` segments are let be.
        """
        with self._store.exclusive("merge", wait=wait) as mine:
            if not mine:
                return False
            with database.read() as connection:
                with self.lock:
                    seq, purged, _ = moment(connection)
                    if self._state is None:
                        layers = self._listed(connection, seq, purged)
                    else:
                        layers = self.at(connection, seq, purged, refresh=True).layers
                stretches = self._stretches(connection, layers)
            runs = [run for stretch in stretches for run in plan_merges(stretch, whole=whole, most=most)]
            for run in runs:
                entries = [layer.entry for layer in run]
                merged = self._kept(self.merge(run), entries[0].low, entries[-1].high, seq)
                self._replace(entries, merged)
                log.debug("merged %d segments of the %s index: %d records", len(run), self.name, merged.count)
        if runs:
            self._reopen(database)
        return bool(runs)

    def _stretches(
        self, connection: sqlite3.Connection, layers: Sequence[Layer[SegmentT]]
    ) -> list[list[Layer[SegmentT]]]:
        """The layers, parted where records between two of them are in none: one segment over both would
        claim to have those too."""
        stretches: list[list[Layer[SegmentT]]] = []
        for layer in layers:
            if stretches:
                reached = max(other.entry.high for other in stretches[-1])
                missing = self.load(connection, reached, layer.entry.low) if reached < layer.entry.low else ()
                if next(iter(missing), None) is None:
                    stretches[-1].append(layer)
                    continue
            stretches.append([layer])
        return stretches

    def _kept(self, segment: SegmentT, low: int, high: int, clean: int) -> Entry:
        entry = self._store.write(segment.arrays(), low=low, high=high, clean=clean, count=len(segment.rows))
        with self.lock:
            self._known[entry.file] = segment
        return entry

    def _replace(self, old: Sequence[Entry], new: Entry) -> None:
        with self._store.exclusive("fold", wait=True):
            entries = self._entries()
            kept = [entry for entry in entries if entry not in old]
            amid = any(entry.low < new.high and new.low < entry.high for entry in kept)
            if len(kept) + len(old) == len(entries) and not amid:
                kept += [new] if new.count else []
                self._store.publish(sorted(kept, key=lambda entry: entry.low))

    def _reopen(self, database: SqlitePool) -> None:
        if self._state is None:
            # Nobody searches here: what is not folded need not be read for that.
            return
        with database.read() as connection, self.lock:
            seq, purged, _ = moment(connection)
            self.at(connection, seq, purged, refresh=True)

    @contextlib.contextmanager
    def quiet(self) -> Iterator[bool]:
        """While true, nobody folds or merges; False at once when somebody does."""
        with self._store.exclusive("fold") as folding, self._store.exclusive("merge") as merging:
            yield folding and merging

    def covered(self) -> tuple[Entry, ...]:
        """The segments as published."""
        return self._entries()

    def give_up(self) -> None:
        """Forget all segments: what they held is read from the records."""
        with self._store.exclusive("fold", wait=True):
            self._store.publish(())

    def vouch(self, seq: int) -> None:
        """Note that every segment has applied all removals up to `seq`; only for who has the `quiet`."""
        entries = self._entries()
        if any(entry.clean < seq for entry in entries):
            self._store.publish([replace(entry, clean=max(entry.clean, seq)) for entry in entries])
