"""Ranges of change numbers: what is covered, what is not, what is removed, and which become one."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sennit.stores.embedded.segments import Entry

MERGE_RATIO: Final = 0.25
"""A segment joins the one before it when it has a quarter of its size. While records keep coming there are four or five
segments at 100,000 records, each of which a search looks at, and one when they stop. With a tenth there would be three, and
a bulk load would write each record seven times at 90,000 records, where with a half it is three times."""

REWRITE_DEAD: Final = 0.25
"""A segment is written anew when a quarter of it has been removed."""


class Worn(Protocol):
    """A segment of which some has been removed."""

    @property
    def entry(self) -> Entry: ...

    @property
    def live(self) -> object | None: ...

    @property
    def live_count(self) -> int: ...


L = TypeVar("L", bound=Worn)


class Moment(NamedTuple):
    """What a search must know of the moment that it sees."""

    seq: int
    """The last change number."""
    purged: int
    """The one up to which removals have been forgotten."""
    model: int
    """The number of the active embedding model, 0 while there is none."""


def moment(connection: sqlite3.Connection) -> Moment:
    """The moment that a connection sees."""
    # A join of three rows: SQLite makes a table of its own for a list, and another one to sort.
    return Moment._make(
        connection.execute(
            "SELECT s.value, p.value, m.value FROM state s, state p, state m "
            "WHERE s.key = 'seq' AND p.key = 'purged' AND m.key = 'model'"
        ).fetchone()
    )


def is_past(entries: Iterable[Entry], seq: int) -> bool:
    """Whether the segments hold nothing, and lack nothing, because of a change after `seq`."""
    return all(entry.high <= seq and entry.clean <= seq for entry in entries)


def is_applied(seq: int, row: int, covered: Sequence[Sequence[Entry]]) -> bool:
    """Whether no segment holds the row that the change `seq` removed."""
    return all(
        entry.clean >= seq for entries in covered for entry in entries if entry.low < row <= entry.high
    )


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


def plan_merges(layers: Sequence[L], *, whole: bool = False, most: int = 0) -> list[list[L]]:
    """Runs of neighbours to be written as one segment each; none while there are at most so many segments."""
    if len(layers) <= most:
        return []
    if whole:
        worn = any(layer.live is not None for layer in layers)
        return [list(layers)] if len(layers) > 1 or worn else []
    runs: list[list[L]] = []
    for layer in layers:
        runs.append([layer])
        while len(runs) > 1 and _size(runs[-1]) >= MERGE_RATIO * _size(runs[-2]):
            last = runs.pop()
            runs[-1].extend(last)
    return [run for run in runs if len(run) > 1 or _worn(run[0])]


def _size(run: Sequence[Worn]) -> int:
    return sum(layer.live_count for layer in run)


def _worn(layer: Worn) -> bool:
    return layer.live_count < (1 - REWRITE_DEAD) * layer.entry.count
