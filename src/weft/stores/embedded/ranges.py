"""Ranges of change numbers: what is covered, what is not, and what has been removed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from weft.stores.embedded.segments import Entry


def moment(connection: sqlite3.Connection) -> tuple[int, int]:
    """The last change number, and the one up to which removals have been forgotten."""
    (seq,), (purged,) = connection.execute(
        "SELECT value FROM state WHERE key IN ('seq', 'purged') ORDER BY key = 'purged'"
    ).fetchall()
    return seq, purged


def is_past(entries: Iterable[Entry], seq: int) -> bool:
    """Whether the segments hold nothing, and lack nothing, because of a change after `seq`."""
    return all(entry.high <= seq and entry.clean <= seq for entry in entries)


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


def removed_between(connection: sqlite3.Connection, low: int, high: int) -> NDArray[np.int64]:
    """The rows removed by the changes low < n <= high."""
    found = connection.execute("SELECT row FROM removals WHERE seq > ? AND seq <= ?", (low, high))
    return np.fromiter((row for (row,) in found), np.int64)


def chunks(connection: sqlite3.Connection, low: int, high: int, size: int) -> Iterator[tuple[int, int]]:
    """The range in pieces of at most `size` records."""
    while True:
        found = connection.execute(
            "SELECT row FROM records WHERE row > ? AND row < ? ORDER BY row LIMIT 1 OFFSET ?",
            (low, high, size - 1),
        ).fetchone()
        if found is None:
            yield low, high
            return
        yield low, found[0]
        low = found[0]
