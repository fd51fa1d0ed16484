"""The vector index: codes in lists (faiss) over most vectors, plain scans where there are few.

Candidates come from the codes or a scan; one function scores them all, so that a record's score does not
depend on where it lives.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.stores.embedded.arrays import Arrays, Growing
from sennit.stores.embedded.layer import Layer, Layers, Tail
from sennit.stores.embedded.layers import LayeredIndex
from sennit.stores.embedded.products import Vectors, products, similarity, top
from sennit.stores.embedded.segments import Segments
from sennit.stores.embedded.selection import Passing, Rows, visible
from sennit.stores.embedded.vector_segment import VectorSegment

FORMAT: Final = "vector-3"

LOAD: Final = """
    SELECT r.row, v.vector FROM records r CROSS JOIN vectors v ON v.model = ?1 AND v.hash = r.embedding
    WHERE r.row > ?2 AND r.row <= ?3
    UNION ALL
    SELECT r.row, v.vector FROM arrivals a JOIN records r ON r.row = a.row
    JOIN vectors v ON v.model = ?1 AND v.hash = r.embedding
    WHERE a.model = ?1 AND a.seq > ?2 AND a.seq <= ?3 AND a.row <= ?2
"""
"""Records written in a range, and older ones whose vector came in it. CROSS keeps the order of the join: the
planner would rather look at every vector there is, at each search after a write."""


ROUNDING: Final = 1e-5
"""More than two ways to sum the product of two unit vectors can differ by."""


class Embedded(NamedTuple):
    """A record's row and its vector as it is stored."""

    row: int
    vector: bytes


class VectorTail(Tail):
    """The newest vectors, in one growing matrix."""

    def __init__(self, dimensions: int) -> None:
        super().__init__()
        self.dimensions = dimensions
        self._vectors = Growing(np.float32, dimensions)

    @property
    def vectors(self) -> Vectors:
        return self._vectors.first(len(self._vectors))

    def append(self, item: Embedded) -> None:
        self._vectors.append(np.frombuffer(item.vector, np.float16))
        self._place(item.row)


class VectorIndex(LayeredIndex[VectorSegment, VectorTail]):
    """Finds records by the direction of their vectors, for one embedding model."""

    def __init__(
        self, segments: Segments, report: Callable[[str], None], model: int, dimensions: int
    ) -> None:
        super().__init__(segments, report)
        self.name = "vector"
        self.model = model
        self.dimensions = dimensions

    def new_tail(self) -> VectorTail:
        return VectorTail(self.dimensions)

    def load(self, connection: sqlite3.Connection, low: int, high: int) -> Iterable[Embedded]:
        found = connection.execute(LOAD, (self.model, low, high))
        # A text without meaning has no direction: its zero vector is not an answer to anything.
        return (Embedded(row, vector) for row, vector in found if vector.strip(b"\0"))

    def waiting(self, connection: sqlite3.Connection, low: int, high: int) -> int:
        late = connection.execute(
            "SELECT count(*) FROM arrivals WHERE model = ? AND seq > ? AND seq <= ? AND row <= ?",
            (self.model, low, high, low),
        )
        return super().waiting(connection, low, high) + int(late.fetchone()[0])

    def novel(
        self, items: Iterable[Embedded], since: int, segments: Iterable[VectorSegment], tail: Container[int]
    ) -> Iterable[Embedded]:
        # A range that is built after a late vector came has it, and so has the range in which it came.
        found = list(items)
        late = [item.row for item in found if item.row <= since]
        if not late:
            return found
        rows = np.array(late, np.int64)
        known: set[int] = set()
        for segment in segments:
            known.update(rows[segment.find(rows) >= 0].tolist())
        return [item for item in found if item.row not in known and item.row not in tail]

    def build(self, items: Iterable[Embedded]) -> VectorSegment:
        embedded = list(items)
        rows = np.array([item.row for item in embedded], np.int64)
        joined = b"".join(item.vector for item in embedded)
        half = np.frombuffer(joined, np.float16).reshape(len(rows), self.dimensions)
        return VectorSegment.over(rows, half, self.stopping)

    def merge(self, layers: Sequence[Layer[VectorSegment]]) -> VectorSegment:
        parts = [layer.segment.part(layer.live) for layer in layers]
        rows = np.concatenate([rows for rows, _ in parts])
        half = np.concatenate([half for _, half in parts])
        # The oldest is the largest: while it is whole, the others are added to a copy of its lists.
        first = layers[0]
        like = first.segment if first.live is None else None
        return VectorSegment.over(rows, half, self.stopping, like, passing=first.entry.low > 0)

    def revive(self, arrays: Arrays) -> VectorSegment:
        return VectorSegment.revived(arrays)


def nearest(
    layers: Layers[VectorSegment, VectorTail],
    query: Vectors,
    k: int,
    allowed: Passing | None,
    *,
    exact: bool = False,
) -> tuple[Rows, NDArray[np.float32]]:
    """The k nearest records and all that tie with the last; `allowed` says which rows may be seen."""
    found: list[tuple[Rows, NDArray[np.float32]]] = []
    for layer in layers.layers:
        rows = layer.segment.rows
        at, scores = layer.segment.near(query, k, visible(rows, layer.live, allowed), exact=exact)
        found.append((rows[at], scores))
    if layers.tail_count:
        rows, vectors = layers.tail_rows, layers.tail.vectors[: layers.tail_count]
        chosen = visible(rows, layers.tail_live, allowed)
        if chosen is not None:
            rows, vectors = rows[chosen.positions], vectors[chosen.positions]
        about = products(vectors, query)
        reached = max((scores.min() for _, scores in found if len(scores) >= k), default=None)
        # What is farther than all of a segment's is not among the nearest: most of a tail, at most questions.
        at = top(about, k) if reached is None else np.flatnonzero(about >= reached - ROUNDING)
        if len(at):
            found.append((rows[at], similarity(vectors[at], query)))
    if len(found) == 1:
        return found[0]
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    return np.concatenate([rows for rows, _ in found]), np.concatenate([scores for _, scores in found])
