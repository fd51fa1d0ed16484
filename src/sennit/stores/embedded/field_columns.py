"""Columns of field values: for each value of a field, the rows of the records that have it."""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sennit.filters import BUILTIN_FIELDS, Pattern, Range, Scalar, field_path, metadata_values
from sennit.records import split_id
from sennit.stores.codec import decode_metadata, encode_json, to_datetime
from sennit.stores.embedded.arrays import Arrays
from sennit.stores.embedded.selection import Rows
from sennit.stores.sql.connection import Connection

BOOL, NUMBER, TEXT = range(3)


def type_of(value: Scalar) -> int:
    """The type of a value. Values of different types are never equal and have no order."""
    if isinstance(value, str):
        return TEXT
    return BOOL if isinstance(value, bool) else NUMBER


class Column:
    """The values of one type of one field: sorted values with their rows, and unsorted newer ones."""

    def __init__(
        self, values: list[Any] | None = None, starts: Rows | None = None, rows: Rows | None = None
    ) -> None:
        """The rows of the n-th value are those from `starts[n]` up to `starts[n + 1]`."""
        self.values: list[Any] = values or []
        self.starts = np.zeros(1, np.int64) if starts is None else starts
        self.rows = np.empty(0, np.int64) if rows is None else rows
        self._unsorted: dict[Scalar, list[int]] = {}
        self.unsorted_count = 0

    def add(self, value: Scalar, row: int) -> None:
        self._unsorted.setdefault(value, []).append(row)
        self.unsorted_count += 1

    def compact(self) -> Column:
        """A column with the same contents, all of them sorted."""
        values = sorted({*self.values, *self._unsorted})
        index_of = {value: index for index, value in enumerate(values)}
        counts = [*np.diff(self.starts).tolist(), *map(len, self._unsorted.values())]
        indexes = np.repeat(
            np.array([index_of[value] for value in (*self.values, *self._unsorted)], np.int64), counts
        )
        newer = [row for rows in self._unsorted.values() for row in rows]
        rows = np.concatenate([self.rows, np.array(newer, np.int64)])
        order = np.argsort(indexes, kind="stable")
        return Column(values, np.searchsorted(indexes[order], np.arange(len(values) + 1)), rows[order])

    def rows_equal(self, value: Scalar) -> Iterator[Rows]:
        """The rows with this value."""
        index = bisect_left(self.values, value)
        if index < len(self.values) and self.values[index] == value:
            yield self.rows[self.starts[index] : self.starts[index + 1]]
        if value in self._unsorted:
            yield np.array(self._unsorted[value], np.int64)

    def rows_between(self, limits: Range) -> Iterator[Rows]:
        """The rows with a value in the range."""
        values, low, high = self.values, limits.low, limits.high
        first, last = 0, len(values)
        if low is not None:
            first = (bisect_left if limits.include_low else bisect_right)(values, low)
        if high is not None:
            last = (bisect_right if limits.include_high else bisect_left)(values, high)
        if first < last:
            yield self.rows[self.starts[first] : self.starts[last]]
        for value, rows in self._unsorted.items():
            if _is_inside(value, limits):
                yield np.array(rows, np.int64)

    def rows_like(self, pattern: Pattern) -> Iterator[Rows]:
        """The rows with a text that fits the pattern, which is compared once with each distinct text."""
        values, first, last = self.values, 0, len(self.values)
        if pattern.prefix and not pattern.ignore_case:
            # The texts are sorted, so those with the prefix stand together.
            first = bisect_left(values, pattern.prefix)
            last = bisect_left(values, True, lo=first, key=lambda value: not value.startswith(pattern.prefix))
        rows = self.rows[self.starts[first] : self.starts[last]]
        if pattern.is_prefix and not pattern.ignore_case:
            yield rows
        elif len(rows):
            fitting = np.array(pattern.matches_each(values[first:last]), bool)
            yield rows[np.repeat(fitting, np.diff(self.starts[first : last + 1]))]
        for value, newer in self._unsorted.items():
            if pattern.matches(str(value)):
                yield np.array(newer, np.int64)

    def all_rows(self) -> Iterator[Rows]:
        """The rows with any value."""
        yield self.rows
        for rows in self._unsorted.values():
            yield np.array(rows, np.int64)

    def pairs(self) -> Iterator[tuple[Scalar, int]]:
        """Each sorted value with each of its rows."""
        for index, value in enumerate(self.values):
            for row in self.rows[self.starts[index] : self.starts[index + 1]].tolist():
                yield value, row


Columns: TypeAlias = dict[int, Column]
"""The values of one field, by their type."""


def _is_inside(value: Scalar, limits: Range) -> bool:
    low, high = limits.low, limits.high
    above = low is None or value > low or (limits.include_low and value == low)  # type: ignore[operator]
    return above and (high is None or value < high or (limits.include_high and value == high))  # type: ignore[operator]


# Stored form. Values are JSON in UTF-8, which has all three types and restores every number and text exactly.


def columns_to_arrays(columns: Columns) -> Arrays:
    """The arrays of compacted columns."""
    out: dict[str, NDArray[Any]] = {}
    for kind, column in columns.items():
        out[f"values {kind}"] = np.frombuffer(json.dumps(column.values).encode(), np.uint8)
        out[f"starts {kind}"] = column.starts
        out[f"rows {kind}"] = column.rows
    return out


def columns_from_arrays(arrays: Arrays) -> Columns:
    """Columns from their arrays; raises ValueError or LookupError if the arrays are of something else."""
    out = {}
    for kind in (BOOL, NUMBER, TEXT):
        if f"values {kind}" in arrays:
            values = json.loads(arrays[f"values {kind}"].tobytes())
            starts, rows = arrays[f"starts {kind}"], arrays[f"rows {kind}"]
            if len(starts) != len(values) + 1 or starts[-1] != len(rows):
                raise ValueError("values and rows do not belong together")
            out[kind] = Column(values, starts, rows)
    return out


# Reading from the primary store.


def read_values(connection: Connection, name: str, low: int, high: int) -> Iterable[tuple[Scalar, int]]:
    """Each value of a field with its row, for the records low < row <= high."""
    path = field_path(name)
    within = "FROM records WHERE row > ? AND row <= ?"
    if len(path) == 1 and name in BUILTIN_FIELDS:
        column, value_of = _CONVERTED_COLUMNS.get(name, (name, _unchanged))
        found = connection.execute(f"SELECT row, {column} {within} AND {column} IS NOT NULL", (low, high))
        return ((value, row) for row, text in found if (value := value_of(text)) != "")
    if path[0] == "metadata":
        path = path[1:]
    # A substring search for the key is fast and skips most records; only the rest need their JSON parsed.
    found = connection.execute(
        f"SELECT row, metadata {within} AND {connection.dialect.substring_position}(metadata, ?) > 0",
        (low, high, encode_json(path[0])),
    )
    return (
        (value, row)
        for row, text in found
        for value in _distinct(metadata_values(decode_metadata(text), path))
    )


def _unchanged(value: Scalar) -> Scalar:
    return value


def _seconds(microseconds: int) -> float:
    timestamp = to_datetime(microseconds)
    assert timestamp is not None
    return timestamp.timestamp()


_CONVERTED_COLUMNS: Final[Mapping[str, tuple[str, Callable[[Any], Scalar]]]] = {
    "id": ("id", lambda full: split_id(full)[1]),
    "tenant": ("id", lambda full: split_id(full)[0]),
    "timestamp": ("timestamp", _seconds),
}
"""Built-in fields whose stored form differs from the value that a filter compares: the column and the conversion."""


def _distinct(values: Iterable[Scalar]) -> Iterable[Scalar]:
    """Each value once; True and 1 are different values."""
    return {(type_of(value), value): value for value in values}.values()
