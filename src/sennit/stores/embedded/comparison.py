"""Compares derived data with the records: derives it again from the records and requires that nothing differs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from sennit.filters import Scalar, flatten
from sennit.records import Record
from sennit.stores.contract import Model
from sennit.stores.embedded.field_columns import Columns, type_of
from sennit.stores.embedded.index_view import SegmentView
from sennit.stores.embedded.keyword_index import IndexDocument, KeywordIndex, KeywordSegment
from sennit.stores.embedded.segment_store import SegmentInfo
from sennit.stores.embedded.selection import Rows
from sennit.stores.embedded.vector_segment import VectorSegment
from sennit.stores.sql.connection import Connection, Cursor

BATCH_RECORDS: Final = 4096
"""Records compared at once. This bounds the memory; progress is reported after every batch."""

Compare = Callable[[SegmentView[Any], Rows], bool]
"""Whether a segment agrees with the records about these rows, all of which it holds."""


def keyword_segment_matches(
    index: KeywordIndex, connection: Connection, view: SegmentView[KeywordSegment], rows: Rows
) -> bool:
    """Compare ids, lengths, terms and term frequencies. Segments of the same documents have the same arrays."""
    found = select_rows(connection, f"SELECT {index.columns} FROM records WHERE row", rows)
    expected = index.build(map(IndexDocument._make, found)).to_arrays()
    try:
        actual = index.merge_views([_restrict(view, rows)]).to_arrays()
    except (IndexError, ValueError):
        # The checksum matches, so the file is what was written, but its contents are not a valid segment.
        return False
    return expected.keys() == actual.keys() and all(
        np.array_equal(expected[name], actual[name]) for name in expected
    )


def vector_segment_matches(
    connection: Connection, model: Model, view: SegmentView[VectorSegment], rows: Rows
) -> bool:
    """Compare vectors bit by bit with the database."""
    query = (
        # The few records first, then the vector of each.
        f"SELECT r.row, v.vector FROM records r {connection.dialect.ordered_join} vectors v ON v.model = {model.number:d} "
        "AND v.hash = r.embedding_hash WHERE r.row"
    )
    stored = dict(select_rows(connection, query, rows, order="").fetchall())
    segment_rows, vectors = view.segment.live_vectors(_restrict(view, rows).live)
    expected = b"".join(stored.get(row, b"") for row in segment_rows.tolist())
    return vectors.tobytes() == expected


def find_first_mismatch(rows: Rows, matches: Callable[[Rows], bool]) -> int:
    """The first row that does not match, found by bisection."""
    while len(rows) > 1:
        first_half = rows[: len(rows) // 2]
        rows = rows[len(rows) // 2 :] if matches(first_half) else first_half
    return int(rows[0])


class FieldDigests:
    """One number per field and record that stands for all its values, in any order."""

    def __init__(self, stored: Iterable[SegmentInfo]) -> None:
        """Covers the stored fields, each up to the last change that it covers."""
        self._covered = {info.field: info.high for info in stored}
        self._expected: dict[str, dict[int, int]] = {name: {} for name in self._covered}

    def add(self, row: int, record: Record) -> None:
        """Add the values of a record."""
        for name, value in flatten(record):
            if row <= self._covered.get(name, 0):
                _update_digest(self._expected[name], type_of(value), value, row)

    def match(self, name: str, columns: Columns, rows: set[int]) -> bool:
        """Whether the columns hold exactly the values of a field, as far as these rows have them."""
        actual: dict[int, int] = {}
        for kind, column in columns.items():
            for value, row in column.pairs():
                if row in rows:
                    _update_digest(actual, kind, value, row)
        return actual == self._expected[name]


def _update_digest(digests: dict[int, int], kind: int, value: Scalar, row: int) -> None:
    digests[row] = digests.get(row, 0) ^ hash((kind, value))


def select_rows(connection: Connection, query: str, rows: Rows, *, order: str = "ORDER BY row") -> Cursor:
    """Run a statement that ends with a row column, restricted to these rows."""
    dialect = connection.dialect
    return connection.execute(f"{query} {dialect.in_rows} {order}", (dialect.encode_rows(rows.tolist()),))


def batches(rows: Rows) -> Iterator[tuple[int, Rows]]:
    """Parts of the rows, each with how many came before it."""
    return ((start, rows[start : start + BATCH_RECORDS]) for start in range(0, len(rows), BATCH_RECORDS))


def summarise_ids(ids: Sequence[str]) -> str:
    """The first of the records, and how many more there are."""
    more = f" and {len(ids) - 1:,} more" if len(ids) > 1 else ""
    return f"the record {ids[0]!r}{more}"


def _restrict(view: SegmentView[Any], rows: Rows) -> SegmentView[Any]:
    """The segment with only these rows live."""
    return SegmentView(view.segment, view.info, np.isin(view.segment.rows, rows))
