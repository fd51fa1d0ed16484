"""The vector index: IVF-PQ (faiss) over large segments, scans of small segments and of the buffer.

Candidates come from an IVF-PQ index or from a scan. One function scores them all, so a record's score does not depend on
which segment holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.stores.contract import Model
from sennit.stores.embedded.arrays import Arrays, GrowingArray
from sennit.stores.embedded.index_view import Buffer, IndexView, SegmentView
from sennit.stores.embedded.segment_store import SegmentStore
from sennit.stores.embedded.segmented_index import MAX_UNSTREAMED_CHANGES, SegmentedIndex
from sennit.stores.embedded.selection import FilterBitmap, Rows, select_positions
from sennit.stores.embedded.vector_math import (
    Vectors,
    fast_dot_products,
    stable_dot_products,
    top_k_with_ties,
)
from sennit.stores.embedded.vector_segment import VectorSegment
from sennit.stores.sql.connection import Connection
from sennit.stores.sql.dialect import Dialect

FORMAT: Final = "vector-3"

ROUNDING_ERROR: Final = 1e-5
"""An upper bound for how much two orders of summing the dot product of two unit vectors can differ."""


def read_vectors(connection: Connection, model: Model, keys: Rows) -> NDArray[np.float32]:
    """The vector of each record from the database, a row of zeros for a record without one."""
    dialect = connection.dialect
    # The few records first, then the vector of each.
    found = connection.execute(
        f"SELECT r.row, v.vector FROM records r {dialect.ordered_join} vectors v "
        f"ON v.model = {model.number:d} AND v.hash = r.embedding_hash WHERE r.row {dialect.in_rows}",
        (dialect.encode_rows(keys.tolist()),),
    )
    stored = dict(found.fetchall())
    out = np.zeros((len(keys), model.dimensions), np.float32)
    for at, key in enumerate(keys.tolist()):
        if key in stored:
            out[at] = np.frombuffer(stored[key], np.float16)
    return out


def select_vectors(dialect: Dialect, model: int, low: int, high: int) -> tuple[str, tuple[int, ...]]:
    """The statement for the vectors of records written in a range, and of older ones whose vector arrived in it."""
    # The order of the join matters: the query planner of SQLite would otherwise visit every vector of the model at
    # each search after a write.
    sql = f"""
        SELECT r.row, v.vector FROM records r {dialect.ordered_join} vectors v
        ON v.model = ? AND v.hash = r.embedding_hash WHERE r.row > ? AND r.row <= ?
        UNION ALL
        SELECT r.row, v.vector FROM late_vectors a JOIN records r ON r.row = a.row
        JOIN vectors v ON v.model = ? AND v.hash = r.embedding_hash
        WHERE a.model = ? AND a.seq > ? AND a.seq <= ? AND a.row <= ?
    """
    return sql, (model, low, high, model, model, low, high, low)


class StoredVector(NamedTuple):
    """A record's row, and its vector as 16-bit floats."""

    row: int
    vector: bytes


class VectorBuffer(Buffer):
    """The newest vectors, in one matrix that grows."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.dimensions = dimensions
        self._vectors = GrowingArray(np.float32, dimensions)

    @property
    def vectors(self) -> Vectors:
        return self._vectors.first(len(self._vectors))

    def append(self, item: StoredVector) -> None:
        self._vectors.append(np.frombuffer(item.vector, np.float16))
        self._append_row(item.row)


class VectorIndex(SegmentedIndex[VectorSegment, VectorBuffer]):
    """Finds records by cosine similarity, for one embedding model."""

    def __init__(
        self, segments: SegmentStore, report: Callable[[str], None], model: int, dimensions: int
    ) -> None:
        super().__init__(segments, report)
        self.name = "vector"
        self.model = model
        self.dimensions = dimensions

    def new_buffer(self) -> VectorBuffer:
        return VectorBuffer(self.dimensions)

    def load(self, connection: Connection, low: int, high: int) -> Iterable[StoredVector]:
        read = connection.execute if high - low <= MAX_UNSTREAMED_CHANGES else connection.stream
        found = read(*select_vectors(connection.dialect, self.model, low, high))
        # A text without known words has a zero vector, which is similar to nothing.
        return (StoredVector(row, vector) for row, vector in found if vector.strip(b"\0"))

    def count_unflushed(self, connection: Connection, low: int, high: int) -> int:
        late = connection.execute(
            "SELECT count(*) FROM late_vectors WHERE model = ? AND seq > ? AND seq <= ? AND row <= ?",
            (self.model, low, high, low),
        )
        return super().count_unflushed(connection, low, high) + int(late.fetchone()[0])

    def exclude_indexed(
        self,
        items: Iterable[StoredVector],
        since: int,
        segments: Iterable[VectorSegment],
        buffered: Container[int],
    ) -> Iterable[StoredVector]:
        # A late vector is in the range in which it arrived. It is also in the range of its record, if the segment of that
        # range was built after the arrival.
        found = list(items)
        late = [item.row for item in found if item.row <= since]
        if not late:
            return found
        rows = np.array(late, np.int64)
        known: set[int] = set()
        for segment in segments:
            known.update(rows[segment.find_rows(rows) >= 0].tolist())
        return [item for item in found if item.row not in known and item.row not in buffered]

    def build(self, items: Iterable[StoredVector]) -> VectorSegment:
        embedded = list(items)
        rows = np.array([item.row for item in embedded], np.int64)
        joined = b"".join(item.vector for item in embedded)
        half = np.frombuffer(joined, np.float16).reshape(len(rows), self.dimensions)
        return VectorSegment.build(rows, half, self.stop_requested)

    def merge_views(self, views: Sequence[SegmentView[VectorSegment]]) -> VectorSegment:
        parts = [view.segment.live_vectors(view.live) for view in views]
        rows = np.concatenate([rows for rows, _ in parts])
        half = np.concatenate([half for _, half in parts])
        # The oldest segment is the largest. While no record of it is deleted, the merge extends a copy of its index.
        oldest = views[0]
        base = oldest.segment if oldest.live is None else None
        return VectorSegment.build(rows, half, self.stop_requested, base, transient=oldest.info.low > 0)

    def from_arrays(self, arrays: Arrays) -> VectorSegment:
        return VectorSegment.from_arrays(arrays)


def nearest_records(
    view: IndexView[VectorSegment, VectorBuffer],
    query: Vectors,
    k: int,
    allowed: FilterBitmap | None,
    *,
    exact: bool = False,
) -> tuple[Rows, NDArray[np.float32]]:
    """The rows and scores of at least the k nearest records, with all that tie with the last, in no order.

    `allowed` says which rows may be returned.
    """
    found: list[tuple[Rows, NDArray[np.float32]]] = []
    for segment_view in view.segments:
        rows = segment_view.segment.rows
        selection = select_positions(rows, segment_view.live, allowed)
        positions, scores = segment_view.segment.nearest(query, k, selection, exact=exact)
        found.append((rows[positions], scores))
    if view.buffer_count:
        rows, vectors = view.buffer_rows, view.buffer.vectors[: view.buffer_count]
        selection = select_positions(rows, view.buffer_live, allowed)
        if selection is not None:
            rows, vectors = rows[selection.positions], vectors[selection.positions]
        products = fast_dot_products(vectors, query)
        threshold = max((scores.min() for _, scores in found if len(scores) >= k), default=None)
        # A record below the k results of a segment is not among the k nearest. For most queries, that is most of the
        # buffer.
        if threshold is None:
            positions = top_k_with_ties(products, k)
        else:
            positions = np.flatnonzero(products >= threshold - ROUNDING_ERROR)
        if len(positions):
            found.append((rows[positions], stable_dot_products(vectors[positions], query)))
    if len(found) == 1:
        return found[0]
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    return np.concatenate([rows for rows, _ in found]), np.concatenate([scores for _, scores in found])
