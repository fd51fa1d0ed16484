"""Which records have which value of a field: read from the records, and kept as arrays."""

from __future__ import annotations

import json
import sqlite3
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sennit.filters import BUILTIN_FIELDS, Range, Scalar, segments, values_in
from sennit.records import split_id
from sennit.stores.embedded.arrays import Arrays
from sennit.stores.embedded.codec import as_moment, decode, encode
from sennit.stores.embedded.selection import Rows

BOOL, NUMBER, TEXT = range(3)


def type_of(value: Scalar) -> int:
    """Values of different types never compare as equal or ordered."""
    if isinstance(value, str):
        return TEXT
    return BOOL if isinstance(value, bool) else NUMBER


class Column:
    """The values of one type of one field: sorted values with their rows, and what came later."""

    def __init__(
        self, values: list[Any] | None = None, starts: Rows | None = None, rows: Rows | None = None
    ) -> None:
        """The rows of the n-th value are those from `starts[n]` up to `starts[n + 1]`."""
        self.values: list[Any] = values or []
        self.starts = np.zeros(1, np.int64) if starts is None else starts
        self.rows = np.empty(0, np.int64) if rows is None else rows
        self._newer: dict[Scalar, list[int]] = {}
        self.newer = 0
        """How many came later."""

    def add(self, value: Scalar, row: int) -> None:
        self._newer.setdefault(value, []).append(row)
        self.newer += 1

    def settled(self) -> Column:
        """The same with what came later in its place."""
        values = sorted({*self.values, *self._newer})
        place = {value: at for at, value in enumerate(values)}
        counts = [*np.diff(self.starts).tolist(), *map(len, self._newer.values())]
        numbers = np.repeat(
            np.array([place[value] for value in (*self.values, *self._newer)], np.int64), counts
        )
        later = [row for rows in self._newer.values() for row in rows]
        rows = np.concatenate([self.rows, np.array(later, np.int64)])
        order = np.argsort(numbers, kind="stable")
        return Column(values, np.searchsorted(numbers[order], np.arange(len(values) + 1)), rows[order])

    def equal(self, value: Scalar) -> Iterator[Rows]:
        """The rows with this value."""
        at = bisect_left(self.values, value)
        if at < len(self.values) and self.values[at] == value:
            yield self.rows[self.starts[at] : self.starts[at + 1]]
        if value in self._newer:
            yield np.array(self._newer[value], np.int64)

    def between(self, wanted: Range) -> Iterator[Rows]:
        """The rows with a value in the range."""
        values, low, high = self.values, wanted.low, wanted.high
        first, last = 0, len(values)
        if low is not None:
            first = (bisect_left if wanted.include_low else bisect_right)(values, low)
        if high is not None:
            last = (bisect_right if wanted.include_high else bisect_left)(values, high)
        if first < last:
            yield self.rows[self.starts[first] : self.starts[last]]
        for value, rows in self._newer.items():
            if _inside(value, wanted):
                yield np.array(rows, np.int64)

    def every(self) -> Iterator[Rows]:
        """The rows with any value."""
        yield self.rows
        for rows in self._newer.values():
            yield np.array(rows, np.int64)

    def pairs(self) -> Iterator[tuple[Scalar, int]]:
        """Each value with each of its rows; only of what is settled."""
        for at, value in enumerate(self.values):
            for row in self.rows[self.starts[at] : self.starts[at + 1]].tolist():
                yield value, row


Columns: TypeAlias = dict[int, Column]
"""The values of one field, by their type."""


def _inside(value: Scalar, wanted: Range) -> bool:
    low, high = wanted.low, wanted.high
    above = low is None or value > low or (wanted.include_low and value == low)  # type: ignore[operator]
    return above and (high is None or value < high or (wanted.include_high and value == high))  # type: ignore[operator]


# As arrays. Values are JSON in UTF-8: it has all three types, and gives every number and every text back as it was.


def to_arrays(columns: Columns) -> Arrays:
    """Settled columns as arrays."""
    out: dict[str, NDArray[Any]] = {}
    for kind, column in columns.items():
        out[f"values {kind}"] = np.frombuffer(json.dumps(column.values).encode(), np.uint8)
        out[f"starts {kind}"] = column.starts
        out[f"rows {kind}"] = column.rows
    return out


def from_arrays(arrays: Arrays) -> Columns:
    """Columns from their arrays; raises ValueError or LookupError where these are of something else."""
    out = {}
    for kind in (BOOL, NUMBER, TEXT):
        if f"values {kind}" in arrays:
            values = json.loads(arrays[f"values {kind}"].tobytes())
            starts, rows = arrays[f"starts {kind}"], arrays[f"rows {kind}"]
            if len(starts) != len(values) + 1 or starts[-1] != len(rows):
                raise ValueError("values and rows do not belong together")
            out[kind] = Column(values, starts, rows)
    return out


# From the truth.


def stored(connection: sqlite3.Connection, name: str, low: int, high: int) -> Iterable[tuple[Scalar, int]]:
    """Every value of a field with its row, of the records low < row <= high."""
    path = segments(name)
    within = "FROM records WHERE row > ? AND row <= ?"
    if len(path) == 1 and name in BUILTIN_FIELDS:
        column, value_of = _COLUMNS.get(name, (name, _same))
        found = connection.execute(f"SELECT row, {column} {within} AND {column} IS NOT NULL", (low, high))
        return ((value, row) for row, text in found if (value := value_of(text)) != "")
    if path[0] == "metadata":
        path = path[1:]
    # Whether the key is anywhere in the text is soon seen; what it is there, only by reading it all.
    found = connection.execute(
        f"SELECT row, metadata {within} AND instr(metadata, ?)", (low, high, encode(path[0]))
    )
    return ((value, row) for row, text in found for value in _once(values_in(decode(text), path)))


def _same(value: Scalar) -> Scalar:
    return value


def _seconds(microseconds: int) -> float:
    moment = as_moment(microseconds)
    assert moment is not None
    return moment.timestamp()


_COLUMNS: Final[Mapping[str, tuple[str, Callable[[Any], Scalar]]]] = {
    "id": ("id", lambda full: split_id(full)[1]),
    "tenant": ("id", lambda full: split_id(full)[0]),
    "timestamp": ("timestamp", _seconds),
}
"""Built-in fields that are kept otherwise than a filter names them: the column, and the value in it."""


def _once(values: Iterable[Scalar]) -> Iterable[Scalar]:
    """Each value once; True and 1 are two."""
    return {(type_of(value), value): value for value in values}.values()
