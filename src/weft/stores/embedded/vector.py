"""The vector index: a graph (faiss HNSW) over most vectors, plain scans where there are few.

Candidates come from the graph or a scan; one function scores them all, so that a record's score does not
depend on where it lives.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from threading import Event
from typing import Any, Final, NamedTuple

import faiss
import numpy as np
from numpy.typing import NDArray

from weft.stores.embedded.arrays import Arrays
from weft.stores.embedded.layers import (
    Cancelled,
    Layer,
    LayeredIndex,
    Layers,
    Mask,
    Rows,
    Segment,
    Tail,
    visible,
)
from weft.stores.embedded.segments import Segments

FORMAT: Final = "vector-1"

GRAPH_FROM: Final = 8192
"""Below this many vectors a scan is as fast as the graph, and exact."""

NEIGHBOURS: Final = 24
BUILD_EFFORT: Final = 128
"""M and efConstruction: recall@10 of .98 at 100,000 passages; see docs/benchmarks.md."""

SCAN_BELOW: Final = 0.05
"""When fewer than this share of records pass the filter, scanning those is faster and exact."""

JUDGED: Final = 100
SAMPLE: Final = 1024
"""A filtered search in the graph is judged by its hundred best against a sample of what passes the filter."""

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

BUILD_CHUNK: Final = 4096
"""Vectors added to a graph between two looks at whether the work should be given up."""

Vectors = NDArray[np.float32]


class Embedded(NamedTuple):
    """A record's row and its vector as it is stored."""

    row: int
    vector: bytes


def effort(k: int, share: float) -> int:
    """How wide the graph search is: wider for more results, and where the filter lets few pass."""
    return max(256, 2 * k) * (1 if share > 0.4 else 2)


class VectorSegment(Segment):
    """Vectors by position, with a graph over them when they are many."""

    def __init__(
        self, rows: Rows, half: NDArray[np.float16], graph: NDArray[np.uint8] | None, index: Any | None = None
    ) -> None:
        """`index` is the graph in memory, when it is at hand; else it is made from its bytes."""
        self.rows = rows
        self._half = half
        self._graph = graph
        self._index = _revived(half, graph) if index is None and graph is not None else index
        self.vectors: Vectors = (
            half.astype(np.float32) if self._index is None else _storage(self._index, half.shape)
        )

    @classmethod
    def over(
        cls, rows: Rows, half: NDArray[np.float16], stopping: Event, index: Any | None = None
    ) -> VectorSegment:
        """A new segment; `index` is a graph that already holds the first of the vectors."""
        if len(rows) < GRAPH_FROM:
            return cls(rows, half, None)
        if index is None:
            index = faiss.IndexHNSWFlat(half.shape[1], NEIGHBOURS, faiss.METRIC_INNER_PRODUCT)
        index.hnsw.efConstruction = BUILD_EFFORT
        while index.ntotal < len(half):
            if stopping.is_set():
                raise Cancelled
            index.add(half[index.ntotal : index.ntotal + BUILD_CHUNK].astype(np.float32))
        return cls(rows, half, faiss.serialize_index(index, faiss.IO_FLAG_SKIP_STORAGE), index)

    def arrays(self) -> Arrays:
        out: dict[str, NDArray[Any]] = {"rows": self.rows, "vectors": self._half}
        if self._graph is not None:
            out["graph"] = self._graph
        return out

    def grown(self, rows: Rows, half: NDArray[np.float16], stopping: Event) -> VectorSegment:
        """A segment with more vectors after those of this one, whose graph is reused."""
        index = _revived(self._half, self._graph) if self._graph is not None else None
        return VectorSegment.over(
            np.concatenate([self.rows, rows]), np.concatenate([self._half, half]), stopping, index
        )

    def part(self, live: Mask | None) -> tuple[Rows, NDArray[np.float16]]:
        """What lives of it."""
        return (self.rows, self._half) if live is None else (self.rows[live], self._half[live])

    def near(self, query: Vectors, k: int, allowed: Mask | None) -> NDArray[np.intp]:
        """Positions of about the k nearest vectors among the allowed, in no order."""
        count = len(self.rows)
        passing = count if allowed is None else int(np.count_nonzero(allowed))
        if not passing:
            return np.empty(0, np.intp)
        if self._index is None or passing < max(SCAN_BELOW * count, 4 * k):
            if allowed is None or passing == count:
                return _top(_products(self.vectors, query), k)
            return self._scanned(query, k, allowed)
        parameters = faiss.SearchParametersHNSW(efSearch=effort(k, passing / count))
        if allowed is None:
            _, found = self._index.search(query[None], k, params=parameters)
            return found[0][found[0] >= 0]  # type: ignore[no-any-return]
        bits = np.packbits(allowed, bitorder="little")
        parameters.sel = faiss.IDSelectorBitmap(bits)
        wanted = min(max(k, JUDGED), passing)
        _, found = self._index.search(query[None], wanted, params=parameters)
        at: NDArray[np.intp] = found[0][found[0] >= 0]
        if len(at) < wanted or self._missed(at, allowed, passing, query):
            return self._scanned(query, k, allowed)
        return at[:k]

    def _scanned(self, query: Vectors, k: int, allowed: Mask) -> NDArray[np.intp]:
        among = np.flatnonzero(allowed)
        return among[_top(_products(self.vectors[among], query), k)]

    def _missed(self, found: NDArray[np.intp], allowed: Mask, passing: int, query: Vectors) -> bool:
        """Whether the graph has lost its way, as it does where all that passes the filter is far from the query:
        a sample of what passes then has more that is nearer than the last one found than it should have."""
        sample = np.arange(0, len(allowed), max(1, passing // SAMPLE))
        sample = sample[allowed[sample]]
        farthest = _products(self.vectors[found], query).min()
        nearer = np.count_nonzero(_products(self.vectors[sample], query) > farthest)
        expected = len(found) * len(sample) / passing
        spread = np.sqrt(expected * (1 - len(sample) / passing))
        return bool(nearer >= max(1.0, expected + 3 * spread))


class VectorTail(Tail):
    """The newest vectors, in one growing matrix."""

    def __init__(self, dimensions: int) -> None:
        self.rows: list[int] = []
        self.places: dict[int, int] = {}
        self.vectors: Vectors = np.empty((64, dimensions), np.float32)

    def append(self, item: Embedded) -> None:
        count = len(self.rows)
        if count == len(self.vectors):
            # A new matrix: whoever reads the old one keeps it.
            grown = np.empty((2 * count, self.vectors.shape[1]), np.float32)
            grown[:count] = self.vectors
            self.vectors = grown
        self.vectors[count] = np.frombuffer(item.vector, np.float16)
        self.places[item.row] = count
        self.rows.append(item.row)


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
        self, items: Iterable[Embedded], since: int, segments: Iterable[VectorSegment], tail: Iterable[int]
    ) -> Iterable[Embedded]:
        # A range that is built after a late vector came has it, and so has the range in which it came.
        found = list(items)
        rows = np.array([item.row for item in found if item.row <= since], np.int64)
        if not len(rows):
            return found
        known = set(tail)
        for segment in segments:
            known.update(rows[segment.find(rows) >= 0].tolist())
        return [item for item in found if item.row not in known]

    def build(self, items: Iterable[Embedded]) -> VectorSegment:
        embedded = list(items)
        rows = np.array([item.row for item in embedded], np.int64)
        joined = b"".join(item.vector for item in embedded)
        half = np.frombuffer(joined, np.float16).reshape(len(rows), self.dimensions)
        return VectorSegment.over(rows, half, self.stopping)

    def merge(self, layers: Sequence[Layer[VectorSegment]]) -> VectorSegment:
        first, *rest = layers
        # The oldest is the largest: while it is whole, the others are added to a copy of its graph.
        grow = bool(rest) and first.live is None
        parts = [layer.segment.part(layer.live) for layer in (rest if grow else layers)]
        rows = np.concatenate([rows for rows, _ in parts])
        half = np.concatenate([half for _, half in parts])
        if grow:
            return first.segment.grown(rows, half, self.stopping)
        return VectorSegment.over(rows, half, self.stopping)

    def revive(self, arrays: Arrays) -> VectorSegment:
        return VectorSegment(arrays["rows"], arrays["vectors"], arrays.get("graph"))


def nearest(
    layers: Layers[VectorSegment, VectorTail], query: Vectors, k: int, allowed: Callable[[Rows], Mask] | None
) -> tuple[Rows, NDArray[np.float32]]:
    """The k nearest records and all that tie with the last; `allowed` says which rows may be seen."""
    found: list[tuple[Rows, NDArray[np.float32]]] = []
    for layer in layers.layers:
        rows = layer.segment.rows
        at = layer.segment.near(query, k, visible(rows, layer.live, allowed))
        found.append((rows[at], similarity(layer.segment.vectors[at], query)))
    if layers.tail_count:
        rows = np.array(layers.tail.rows[: layers.tail_count], np.int64)
        vectors = layers.tail.vectors[: layers.tail_count]
        mask = visible(rows, layers.tail_live(), allowed)
        if mask is not None:
            rows, vectors = rows[mask], vectors[mask]
        at = _top(_products(vectors, query), k)
        found.append((rows[at], similarity(vectors[at], query)))
    if not found:
        return np.empty(0, np.int64), np.empty(0, np.float32)
    return np.concatenate([rows for rows, _ in found]), np.concatenate([scores for _, scores in found])


def similarity(vectors: Vectors, query: Vectors) -> NDArray[np.float32]:
    """The dot products, each summed in one fixed order whatever the number of vectors."""
    products: NDArray[np.float32] = np.einsum("ij,j->i", vectors, query)
    return products


def _products(vectors: Vectors, query: Vectors) -> NDArray[np.float32]:
    """Dot products to choose by: one thread, because a thread per core is slow on a machine that is busy."""
    out = np.empty(len(vectors), np.float32)
    faiss.fvec_inner_products_ny(
        faiss.swig_ptr(out), faiss.swig_ptr(query), faiss.swig_ptr(vectors), vectors.shape[1], len(vectors)
    )
    return out


def _top(scores: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Positions of the k best scores and of all that tie with the last, in no order."""
    if len(scores) <= k:
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])


def _revived(half: NDArray[np.float16], graph: NDArray[np.uint8]) -> Any:
    """A graph from its bytes, over a copy of the vectors in full precision."""
    index = faiss.deserialize_index(np.array(graph), faiss.IO_FLAG_SKIP_STORAGE)
    flat = faiss.IndexFlat(half.shape[1], faiss.METRIC_INNER_PRODUCT)
    flat.add(half.astype(np.float32))
    index.storage = flat
    index.own_fields = True
    flat.this.disown()
    return index


def _storage(index: Any, shape: tuple[int, ...]) -> Vectors:
    """A view of the vectors that the graph holds."""
    pointer = faiss.downcast_index(index.storage).get_xb()
    return np.asarray(faiss.rev_swig_ptr(pointer, shape[0] * shape[1])).reshape(shape)
