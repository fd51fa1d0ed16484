"""Whether what is derived holds what the records say: it is derived again, and nothing may differ."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from sennit.filters import Scalar, flatten
from sennit.records import Record
from sennit.stores.embedded.columns import Columns, type_of
from sennit.stores.embedded.keyword import Document, KeywordIndex, KeywordSegment
from sennit.stores.embedded.layer import Layer
from sennit.stores.embedded.models import Model
from sennit.stores.embedded.segments import Entry
from sennit.stores.embedded.selection import Rows
from sennit.stores.embedded.vector_segment import VectorSegment

Compare = Callable[[Layer[Any], Rows], bool]
"""Whether a layer agrees with the records about these rows, all of which it holds."""


def agree_keyword(
    index: KeywordIndex, connection: sqlite3.Connection, layer: Layer[KeywordSegment], rows: Rows
) -> bool:
    """Ids, lengths, terms and counts; two segments of the same documents are the same arrays."""
    found = for_rows(connection, "SELECT row, id, text, title FROM records WHERE row", rows)
    wanted = index.build(map(Document._make, found)).arrays()
    try:
        held = index.merge([_only(layer, rows)]).arrays()
    except (IndexError, ValueError):
        # The checksum says that the file is as it was written; what was written made no sense.
        return False
    return wanted.keys() == held.keys() and all(np.array_equal(wanted[name], held[name]) for name in wanted)


def agree_vector(
    connection: sqlite3.Connection, model: Model, layer: Layer[VectorSegment], rows: Rows
) -> bool:
    """Vectors, bit by bit as the database has them."""
    query = (
        # A cross join keeps this order: the few records first, then the vector of each.
        f"SELECT r.row, v.vector FROM records r CROSS JOIN vectors v ON v.model = {model.number:d} "
        "AND v.hash = r.embedding WHERE r.row"
    )
    stored = dict(for_rows(connection, query, rows, order="").fetchall())
    held_rows, half = layer.segment.part(_only(layer, rows).live)
    wanted = b"".join(stored.get(row, b"") for row in held_rows.tolist())
    return half.tobytes() == wanted


def first_wrong(rows: Rows, agree: Callable[[Rows], bool]) -> int:
    """The first row of those that do not agree, found by halving."""
    while len(rows) > 1:
        half = rows[: len(rows) // 2]
        rows = rows[len(rows) // 2 :] if agree(half) else half
    return int(rows[0])


class FieldMarks:
    """One number per field and record that stands for all its values, in whatever order they come."""

    def __init__(self, kept: Iterable[Entry]) -> None:
        """Of the fields that are kept, up to the change that each is kept up to."""
        self._kept = {entry.of: entry.high for entry in kept}
        self._expected: dict[str, dict[int, int]] = {name: {} for name in self._kept}

    def expect(self, row: int, record: Record) -> None:
        """Take in a record."""
        for name, value in flatten(record):
            if row <= self._kept.get(name, 0):
                _mark(self._expected[name], type_of(value), value, row)

    def agree(self, name: str, columns: Columns, rows: set[int]) -> bool:
        """Whether these are the values of a field, as far as these rows have them."""
        actual: dict[int, int] = {}
        for kind, column in columns.items():
            for value, row in column.pairs():
                if row in rows:
                    _mark(actual, kind, value, row)
        return actual == self._expected[name]


def _mark(marks: dict[int, int], kind: int, value: Scalar, row: int) -> None:
    marks[row] = marks.get(row, 0) ^ hash((kind, value))


def for_rows(
    connection: sqlite3.Connection, query: str, rows: Rows, *, order: str = "ORDER BY row"
) -> sqlite3.Cursor:
    """What a statement that ends with a column of rows does for these rows."""
    return connection.execute(
        f"{query} IN (SELECT value FROM json_each(?)) {order}", (json.dumps(rows.tolist()),)
    )


def _only(layer: Layer[Any], rows: Rows) -> Layer[Any]:
    """The layer with nothing alive but these rows."""
    return Layer(layer.segment, layer.entry, np.isin(layer.segment.rows, rows))
