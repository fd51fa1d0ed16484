"""An in-memory index of the names of records, and a cache of their tokenised texts."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.graph.entity_linking import NameMatches
from sennit.graph.names import Hashes, words_of
from sennit.stores.contract import LabelledText
from sennit.stores.embedded.selection import Rows
from sennit.stores.sql.connection import Connection

MIN_RELOAD_NAMES: Final = 4096
"""After more new names than this, and more than an eighth of all, the whole table is read again. So the Bloom filter
never fills up, and names of removed records do not accumulate."""

MAX_MATCHES_PER_NAME: Final = 16_384
"""A phrase that more records have is a heading and not a name, and matches none of them."""

BLOOM_SLOTS_PER_NAME: Final = 16
"""A name occupies two slots. One in sixty phrases that are no names passes the filter, and is looked up in vain."""

MAX_CACHED_WORDS: Final = 500_000
"""Words kept of texts that were seeds before; about 15 MB."""

FETCH_ROWS: Final = 65_536


class NameIndex:
    """The names of one database, as this process knows them.

    The index may be ahead of a transaction, never behind it. A snapshot masks the rows that it must not see.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._seq = -1
        self._hashes: NDArray[np.int64] = np.empty(0, np.int64)
        self._rows: Rows = np.empty(0, np.int64)
        self._flags: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._recent: dict[int, list[tuple[int, int]]] = {}
        """Names added since the last load: row and flags by hash."""
        self._recent_count = 0
        self._bloom = np.zeros(1, bool)

    def catch_up(self, connection: Connection, seq: int) -> bool:
        """Read the names added up to `seq`; returns whether there are names at all."""
        if seq > self._seq:
            with self._lock:
                if seq > self._seq:
                    self._read_new(connection, seq)
        return len(self._hashes) > 0 or self._recent_count > 0

    def find(self, hashes: Hashes) -> NameMatches:
        """The records that have these names."""
        if not len(self._hashes) and not self._recent_count:
            return NameMatches(np.empty(0, np.intp), np.empty(0, np.int64), np.empty(0, np.uint8))
        with self._lock:
            bloom, names, rows, flags = self._bloom, self._hashes, self._rows, self._flags
            recent = self._recent
        low, high = _bloom_slots(hashes, len(bloom))
        candidates = np.flatnonzero(bloom[low])
        candidates = candidates[bloom[high[candidates]]]
        wanted = hashes[candidates].view(np.int64)
        first, last = np.searchsorted(names, wanted), np.searchsorted(names, wanted, side="right")
        count = last - first
        known = np.flatnonzero((count > 0) & (count <= MAX_MATCHES_PER_NAME))
        positions = np.repeat(first[known], count[known]) + _count_up(count[known])
        which = np.repeat(candidates[known], count[known])
        found_rows, found_flags = rows[positions], flags[positions]
        if recent:
            added = [
                (position, row, flag)
                for position, name in zip(candidates.tolist(), wanted.tolist(), strict=True)
                for row, flag in recent.get(name, ())[:MAX_MATCHES_PER_NAME]
            ]
            if added:
                added_which, added_rows, added_flags = zip(*added, strict=True)
                which = np.concatenate([which, np.array(added_which, np.intp)])
                found_rows = np.concatenate([found_rows, np.array(added_rows, np.int64)])
                found_flags = np.concatenate([found_flags, np.array(added_flags, np.uint8)])
        return NameMatches(which, found_rows, found_flags)

    def _read_new(self, connection: Connection, seq: int) -> None:
        if self._seq < 0:
            self._load_all(connection, seq)
            return
        new = connection.execute(
            "SELECT name, row, flags FROM names WHERE row > ? AND row <= ? ORDER BY row", (self._seq, seq)
        ).fetchall()
        if self._recent_count + len(new) > max(MIN_RELOAD_NAMES, len(self._hashes) // 8):
            self._load_all(connection, seq)
            return
        if new and len(self._bloom) < MIN_RELOAD_NAMES * BLOOM_SLOTS_PER_NAME:
            self._build_bloom(self._hashes, MIN_RELOAD_NAMES)
        for name, row, flags in new:
            self._recent.setdefault(name, []).append((row, flags))
        self._add_to_bloom(self._bloom, np.array([name for name, _, _ in new], np.int64))
        self._recent_count += len(new)
        self._seq = seq

    def _load_all(self, connection: Connection, seq: int) -> None:
        columns: tuple[list[NDArray[np.int64]], ...] = ([], [], [])
        cursor = connection.execute("SELECT name, row, flags FROM names WHERE row <= ?", (seq,))
        while batch := cursor.fetchmany(FETCH_ROWS):
            for column, values in zip(columns, np.array(batch, np.int64).T, strict=True):
                column.append(values)
        names, rows, flags = (np.concatenate([np.empty(0, np.int64), *column]) for column in columns)
        by_name = np.lexsort((rows, names))
        self._build_bloom(names, len(names) + max(MIN_RELOAD_NAMES, len(names) // 8) if len(names) else 0)
        self._recent, self._recent_count = {}, 0
        self._hashes, self._rows, self._flags = (
            names[by_name],
            rows[by_name],
            flags[by_name].astype(np.uint8),
        )
        self._seq = seq

    def _build_bloom(self, names: NDArray[np.int64], capacity: int) -> None:
        """A Bloom filter: most phrases of a text are no names, and it rejects nearly all of them."""
        size = 1 << (max(capacity, 1) * BLOOM_SLOTS_PER_NAME - 1).bit_length() if capacity else 1
        bloom = np.zeros(size, bool)
        self._add_to_bloom(bloom, names)
        self._add_to_bloom(bloom, np.array(list(self._recent), np.int64))
        self._bloom = bloom

    @staticmethod
    def _add_to_bloom(bloom: NDArray[np.bool_], names: NDArray[np.int64]) -> None:
        for slots in _bloom_slots(names.view(np.uint64), len(bloom)):
            bloom[slots] = True


class TextCache:
    """A cache of tokenised texts. A row is one version of one record, so an entry never goes stale."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, LabelledText] = OrderedDict()
        self._word_count = 0

    def get(
        self, rows: list[int], read: Callable[[list[int]], Iterable[tuple[int, str, str]]]
    ) -> dict[int, LabelledText]:
        """The text of each row; `read` returns row, label and text of those that are not cached."""
        with self._lock:
            out = {row: self._entries[row] for row in rows if row in self._entries}
            for row in out:
                self._entries.move_to_end(row)
        missing = [row for row in rows if row not in out]
        if missing:
            loaded = {row: LabelledText(label, words_of(text)) for row, label, text in read(missing)}
            out |= loaded
            with self._lock:
                for row, text in loaded.items():
                    if row not in self._entries:
                        self._entries[row] = text
                        self._word_count += len(text.words.hashes)
                while self._word_count > MAX_CACHED_WORDS:
                    _, evicted = self._entries.popitem(last=False)
                    self._word_count -= len(evicted.words.hashes)
        return out


def _bloom_slots(names: Hashes, size: int) -> tuple[Hashes, Hashes]:
    """Two slots of the Bloom filter for each name, one from each half of its hash."""
    mask = np.uint64(size - 1)
    return names & mask, (names >> np.uint64(32)) & mask


def _count_up(counts: NDArray[np.intp]) -> NDArray[np.intp]:
    """0, 1, 2 … for each count in turn."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
