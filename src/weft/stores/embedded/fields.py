"""Filters in the embedded store: for each field that a filter has named, which rows have which value.

A field is read from the database when it is first asked for, and kept up to date after that. A filter becomes
a mask over rows, which every index applies inside its search.
"""

from __future__ import annotations

import sqlite3
import threading
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.filters import And, Equal, Exists, Filter, In, Not, Or, Range, Scalar, flatten, matches
from weft.records import Record, split_id
from weft.stores.embedded.codec import read_between
from weft.stores.embedded.selection import Mask, Passing, Rows

SCANNED: Final = ("id", "title", "path", "url")
"""Fields with about as many values as records: not copied into the table of fields, but read from the records
when a filter names them."""

EVERY: Final = frozenset({"collection", "sensitivity", "scope"})
"""Fields of which every record has exactly one value, and most the same: what does not pass is soon listed."""

FEW_VALUES: Final = 64
"""Different values of such a field up to which it is looked at value by value."""

MASKS_KEPT: Final = 64

RELOAD_AFTER: Final = 4096
"""After more changes than this, reading a field again is cheaper than catching up."""

BOOL, NUMBER, TEXT = range(3)


def type_of(value: Scalar) -> int:
    """Values of different types never compare as equal or ordered."""
    if isinstance(value, str):
        return TEXT
    return BOOL if isinstance(value, bool) else NUMBER


class Column:
    """The values of one type of one field: sorted values with their rows, and what came later."""

    def __init__(self, values: Sequence[Scalar], rows: Sequence[int]) -> None:
        """The values come sorted."""
        self._values: list[Scalar] = []
        starts = []
        for at, value in enumerate(values):
            if not self._values or value != self._values[-1]:
                self._values.append(value)
                starts.append(at)
        self._starts = [*starts, len(values)]
        self._rows: Rows = np.array(rows, np.int64)
        self._newer: dict[Scalar, list[int]] = {}

    def add(self, value: Scalar, row: int) -> None:
        self._newer.setdefault(value, []).append(row)

    def equal(self, value: Scalar) -> Iterator[Rows]:
        """The rows with this value."""
        at = bisect_left(self._values, value)
        if at < len(self._values) and self._values[at] == value:
            yield self._rows[self._starts[at] : self._starts[at + 1]]
        if value in self._newer:
            yield np.array(self._newer[value], np.int64)

    def between(self, wanted: Range) -> Iterator[Rows]:
        """The rows with a value in the range."""
        values, low, high = self._values, wanted.low, wanted.high
        first, last = 0, len(values)
        if low is not None:
            first = (bisect_left if wanted.include_low else bisect_right)(values, low)
        if high is not None:
            last = (bisect_right if wanted.include_high else bisect_left)(values, high)
        if first < last:
            yield self._rows[self._starts[first] : self._starts[last]]
        for value, rows in self._newer.items():
            if _inside(value, wanted):
                yield np.array(rows, np.int64)

    def every(self) -> Iterator[Rows]:
        """The rows with any value."""
        yield self._rows
        for rows in self._newer.values():
            yield np.array(rows, np.int64)


def _inside(value: Scalar, wanted: Range) -> bool:
    low, high = wanted.low, wanted.high
    above = low is None or value > low or (wanted.include_low and value == low)  # type: ignore[operator]
    return above and (high is None or value < high or (wanted.include_high and value == high))  # type: ignore[operator]


class FieldIndex:
    """The fields of one database, as this process sees them."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._seq = 0
        self._fields: dict[str, dict[int, Column]] = {}
        self._masks: OrderedDict[Filter, Passing] = OrderedDict()

    def mask(self, connection: sqlite3.Connection, wanted: Filter, seq: int) -> Passing:
        """Which rows up to `seq` pass; a row that does not exist (any more) may be either."""
        with self._lock:
            if seq < self._seq:
                # Another thread has moved on, and this transaction cannot read what the others now see.
                return FieldIndex().mask(connection, wanted, seq)
            self._catch_up(connection, seq)
            mask = self._masks.get(wanted)
            if mask is None:
                mask = self._masks[wanted] = Passing(self._evaluate(connection, wanted))
                if len(self._masks) > MASKS_KEPT:
                    self._masks.popitem(last=False)
            self._masks.move_to_end(wanted)
            return mask

    def _catch_up(self, connection: sqlite3.Connection, seq: int) -> None:
        if seq <= self._seq:
            return
        if seq - self._seq > RELOAD_AFTER:
            self._fields.clear()
            self._masks.clear()
        if self._fields or self._masks:
            self._take_in(list(read_between(connection, self._seq, seq)), seq)
        self._seq = seq

    def _take_in(self, records: Sequence[tuple[int, Record]], seq: int) -> None:
        for row, record in records:
            for name, value in flatten(record):
                columns = self._fields.get(name)
                if columns is not None:
                    columns.setdefault(type_of(value), Column((), ())).add(value, row)
        for wanted, mask in self._masks.items():
            passing = [row for row, record in records if matches(wanted, record)]
            mask.grow(seq + 1, np.array(passing, np.int64))

    def _of(self, connection: sqlite3.Connection, name: str) -> dict[int, Column]:
        columns = self._fields.get(name)
        if columns is None:
            groups: dict[int, tuple[list[Scalar], list[int]]] = {}
            for kind, value, row in _values(connection, name, self._seq):
                values, rows = groups.setdefault(kind, ([], []))
                values.append(bool(value) if kind == BOOL else value)
                rows.append(row)
            columns = {kind: Column(*group) for kind, group in groups.items()}
            self._fields[name] = columns
        return columns

    def _evaluate(self, connection: sqlite3.Connection, wanted: Filter) -> Mask:
        match wanted:
            case And(parts):
                mask = np.ones(self._seq + 1, bool)
                for part in parts:
                    mask &= self._evaluate(connection, part)
                return mask
            case Or(parts):
                mask = np.zeros(self._seq + 1, bool)
                for part in parts:
                    mask |= self._evaluate(connection, part)
                return mask
            case Not(part):
                return ~self._evaluate(connection, part)
            case Equal() | In() if wanted.field in EVERY and wanted.field not in self._fields:
                excluded = self._excluded(connection, wanted)
                if excluded is not None:
                    return ~self._rows(excluded)
        return self._rows(self._matching(self._of(connection, wanted.field), wanted))

    def _excluded(self, connection: sqlite3.Connection, wanted: Equal | In) -> list[Rows] | None:
        """The rows with another value than those wanted, if that is the quicker way."""
        named = {wanted.value} if isinstance(wanted, Equal) else set(wanted.values)
        values = _different(connection, wanted.field)
        if len(values) > FEW_VALUES:
            return None
        out = []
        for value in values:
            if value not in named:
                found = connection.execute(
                    f"SELECT row FROM fields WHERE {_NAMED} AND type = {TEXT} AND value = ? AND row <= ? LIMIT ?",
                    (wanted.field, value, self._seq, self._seq // 8 + 1),
                )
                out.append(np.fromiter((row for (row,) in found), np.int64))
        return out if sum(map(len, out)) <= self._seq // 8 else None

    def _matching(
        self, columns: dict[int, Column], wanted: Equal | In | Range | Exists
    ) -> Iterable[NDArray[np.int64]]:
        match wanted:
            case Exists():
                for column in columns.values():
                    yield from column.every()
            case Range(_, low, high):
                bound = low if low is not None else high
                if bound is not None and type_of(bound) in columns:
                    yield from columns[type_of(bound)].between(wanted)
            case Equal(_, value):
                if type_of(value) in columns:
                    yield from columns[type_of(value)].equal(value)
            case In(_, values):
                for value in values:
                    if type_of(value) in columns:
                        yield from columns[type_of(value)].equal(value)

    def _rows(self, found: Iterable[Rows]) -> Mask:
        mask = np.zeros(self._seq + 1, bool)
        for rows in found:
            mask[rows] = True
        return mask


_NAMED: Final = "field = (SELECT number FROM field_names WHERE name = ?)"


def _different(connection: sqlite3.Connection, name: str) -> list[str]:
    """The different texts that a field has, a few more than FEW_VALUES at most; each is one step in the index."""
    found = connection.execute(
        f"""
        WITH RECURSIVE one(value) AS (
            SELECT min(value) FROM fields WHERE {_NAMED} AND type = {TEXT}
            UNION ALL
            SELECT (SELECT min(value) FROM fields WHERE {_NAMED} AND type = {TEXT} AND value > one.value)
            FROM one WHERE one.value IS NOT NULL
        )
        SELECT value FROM one WHERE value IS NOT NULL LIMIT {FEW_VALUES + 1}
        """,
        (name, name),
    )
    return [value for (value,) in found]


def _values(connection: sqlite3.Connection, name: str, seq: int) -> Iterable[tuple[int, Scalar, int]]:
    """(type, value, row) of a field for the rows up to `seq`, sorted by value."""
    if name in SCANNED:
        found = connection.execute(
            f"SELECT {TEXT}, {name}, row FROM records "
            f"WHERE row <= ? AND {name} IS NOT NULL AND {name} != '' ORDER BY {name}",
            (seq,),
        )
        # An id is kept with its tenant in front.
        return (
            sorted((kind, split_id(value)[1], row) for kind, value, row in found) if name == "id" else found
        )
    return connection.execute(
        f"SELECT type, value, row FROM fields WHERE {_NAMED} AND row <= ? ORDER BY type, value",
        (name, seq),
    )
