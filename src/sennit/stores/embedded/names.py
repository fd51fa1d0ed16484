"""Names in the embedded store: which records bear which name, in memory, and kept up to date."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.graph.linking import Bearers
from sennit.graph.names import Hashes, Words, words_of
from sennit.stores.embedded.selection import Rows

RELOAD_AFTER: Final = 4096
"""After more new names than this, and an eighth of all, everything is read again: so nothing outgrows the sieve,
and names of removed records do not pile up."""

READ_MOST: Final = 16_384
"""Bearers of one name that are looked at; beyond it, it is not a name but a heading."""

SIEVE_PER_NAME: Final = 16
"""Places of the sieve per name, each of which takes two: one phrase in sixty that is no name passes, and is then
looked up in vain."""

KEPT_WORDS: Final = 500_000
"""Words of texts that were seeds before; about 15 MB."""


class NameIndex:
    """The names of one database, as this process sees them.

    It may be ahead of a transaction, never behind: what a moment does not have, its snapshot masks.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._seq = -1
        self._hashes: NDArray[np.int64] = np.empty(0, np.int64)
        self._rows: Rows = np.empty(0, np.int64)
        self._flags: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._newer: dict[int, list[tuple[int, int]]] = {}
        self._newer_count = 0
        self._sieve = np.zeros(1, bool)

    def catch_up(self, connection: sqlite3.Connection, seq: int) -> bool:
        """Take in what is new up to `seq`; whether there are names at all."""
        if seq > self._seq:
            with self._lock:
                if seq > self._seq:
                    self._read(connection, seq)
        return len(self._hashes) > 0 or self._newer_count > 0

    def find(self, hashes: Hashes) -> Bearers:
        """Who bears which of the names."""
        if not len(self._hashes) and not self._newer_count:
            return Bearers(np.empty(0, np.intp), np.empty(0, np.int64), np.empty(0, np.uint8))
        with self._lock:
            sieve, names, rows, flags = self._sieve, self._hashes, self._rows, self._flags
            newer = self._newer
        low, high = _places(hashes, len(sieve))
        passing = np.flatnonzero(sieve[low])
        passing = passing[sieve[high[passing]]]
        wanted = hashes[passing].view(np.int64)
        first, last = np.searchsorted(names, wanted), np.searchsorted(names, wanted, side="right")
        count = last - first
        known = np.flatnonzero((count > 0) & (count <= READ_MOST))
        at = np.repeat(first[known], count[known]) + _within(count[known])
        which = np.repeat(passing[known], count[known])
        found_rows, found_flags = rows[at], flags[at]
        if newer:
            late = [
                (place, row, flag)
                for place, name in zip(passing.tolist(), wanted.tolist(), strict=True)
                for row, flag in newer.get(name, ())[:READ_MOST]
            ]
            if late:
                places, late_rows, late_flags = zip(*late, strict=True)
                which = np.concatenate([which, np.array(places, np.intp)])
                found_rows = np.concatenate([found_rows, np.array(late_rows, np.int64)])
                found_flags = np.concatenate([found_flags, np.array(late_flags, np.uint8)])
        return Bearers(which, found_rows, found_flags)

    def _read(self, connection: sqlite3.Connection, seq: int) -> None:
        if self._seq < 0:
            self._load(connection, seq)
            return
        fresh = connection.execute(
            "SELECT name, row, flags FROM names WHERE row > ? AND row <= ? ORDER BY row", (self._seq, seq)
        ).fetchall()
        if self._newer_count + len(fresh) > max(RELOAD_AFTER, len(self._hashes) // 8):
            self._load(connection, seq)
            return
        if fresh and len(self._sieve) < RELOAD_AFTER * SIEVE_PER_NAME:
            self._sift(self._hashes, RELOAD_AFTER)
        for name, row, flags in fresh:
            self._newer.setdefault(name, []).append((row, flags))
        self._mark(self._sieve, np.array([name for name, _, _ in fresh], np.int64))
        self._newer_count += len(fresh)
        self._seq = seq

    def _load(self, connection: sqlite3.Connection, seq: int) -> None:
        columns: tuple[list[NDArray[np.int64]], ...] = ([], [], [])
        cursor = connection.execute("SELECT name, row, flags FROM names WHERE row <= ?", (seq,))
        while batch := cursor.fetchmany(65_536):
            for column, values in zip(columns, np.array(batch, np.int64).T, strict=True):
                column.append(values)
        names, rows, flags = (np.concatenate([np.empty(0, np.int64), *column]) for column in columns)
        by_name = np.lexsort((rows, names))
        self._sift(names, len(names) + max(RELOAD_AFTER, len(names) // 8) if len(names) else 0)
        self._newer, self._newer_count = {}, 0
        self._hashes, self._rows, self._flags = (
            names[by_name],
            rows[by_name],
            flags[by_name].astype(np.uint8),
        )
        self._seq = seq

    def _sift(self, names: NDArray[np.int64], room: int) -> None:
        """Most phrases of a text are no names: a look at one place of an array tells nearly all of them."""
        size = 1 << (max(room, 1) * SIEVE_PER_NAME - 1).bit_length() if room else 1
        sieve = np.zeros(size, bool)
        self._mark(sieve, names)
        self._mark(sieve, np.array(list(self._newer), np.int64))
        self._sieve = sieve

    @staticmethod
    def _mark(sieve: NDArray[np.bool_], names: NDArray[np.int64]) -> None:
        for places in _places(names.view(np.uint64), len(sieve)):
            sieve[places] = True


class Text(NamedTuple):
    """What a record is called, and the words of its text."""

    label: str
    words: Words


class TextCache:
    """Texts that were read before. A row is one version of one text, so none is ever out of date."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, Text] = OrderedDict()
        self._count = 0

    def of(
        self, rows: list[int], read: Callable[[list[int]], Iterable[tuple[int, str, str]]]
    ) -> dict[int, Text]:
        """Each row's text; `read` gives row, label and text of those that are not known yet."""
        with self._lock:
            out = {row: self._kept[row] for row in rows if row in self._kept}
            for row in out:
                self._kept.move_to_end(row)
        missing = [row for row in rows if row not in out]
        if missing:
            fresh = {row: Text(label, words_of(text)) for row, label, text in read(missing)}
            out |= fresh
            with self._lock:
                for row, text in fresh.items():
                    if row not in self._kept:
                        self._kept[row] = text
                        self._count += len(text.words.hashes)
                while self._count > KEPT_WORDS:
                    _, dropped = self._kept.popitem(last=False)
                    self._count -= len(dropped.words.hashes)
        return out


def _places(names: Hashes, size: int) -> tuple[Hashes, Hashes]:
    """Two places of a sieve for each name, from its two halves."""
    mask = np.uint64(size - 1)
    return names & mask, (names >> np.uint64(32)) & mask


def _within(counts: NDArray[np.intp]) -> NDArray[np.intp]:
    """0, 1, 2 … for each count in turn."""
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
