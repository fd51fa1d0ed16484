"""The vectors of one segment: a graph (faiss HNSW) where they are many, scans where they or the allowed are few."""

from __future__ import annotations

from collections import OrderedDict
from threading import Event, Lock
from typing import Any, Final

import faiss
import numpy as np
from numpy.typing import NDArray

from weft.stores.embedded.arrays import Arrays
from weft.stores.embedded.layer import Segment
from weft.stores.embedded.layers import Cancelled
from weft.stores.embedded.products import Half, Vectors, compact, held, one_thread, products, revived, top
from weft.stores.embedded.selection import Mask, Rows, Selection

GRAPH_FROM: Final = 8192
"""Below this many vectors a scan is as fast as the graph, and exact."""

NEIGHBOURS: Final = 24
BUILD_EFFORT: Final = 128
"""M and efConstruction: recall@10 of .98 at 100,000 passages; see docs/benchmarks.md."""

SCAN_BELOW: Final = 0.05
"""When fewer than this share of records pass the filter, scanning those is faster and exact."""

MOST: Final = 0.4
MARGIN: Final = 1.3
"""Where this share passes or more, a walk without the filter finds enough that pass, with a margin for luck."""

COPIED: Final = 16_384
COPY_AT: Final = 2
COPIES: Final = 65_536
"""Where a filter lets so few pass, they are copied side by side when it comes the second time: a scan of the copy is
exact, and faster than a walk. All copies of a segment together hold 65,536 vectors at most, 32 MB at 256 dimensions."""

SAMPLE: Final = 256
MISSED: Final = 3
MISSED_SHARE: Final = 0.2
"""A filtered search in the graph is judged by a sample of what passes the filter: it has lost its way when of those
that are nearer than the last one found, so many and so great a share were not found."""

BUILD_CHUNK: Final = 4096
"""Vectors added to a graph between two looks at whether the work should be given up."""


def effort(k: int, share: float) -> int:
    """How wide the graph search is: wider for more results, and where the filter lets few pass."""
    return max(256 if share > 0.4 else 352, 2 * k)


class VectorSegment(Segment):
    """Vectors by position, with a graph over them when they are many."""

    def __init__(
        self, rows: Rows, half: Half, graph: NDArray[np.uint8] | None, index: Any | None = None
    ) -> None:
        """`index` is the graph in memory, when it is at hand; else it is made from its bytes."""
        self.rows = rows
        self._copies: OrderedDict[Selection, Any] = OrderedDict()
        self._lock = Lock()
        self._half = half
        self._graph = graph
        self._index = revived(half, graph) if index is None and graph is not None else index
        self._flat = None if self._index is None else faiss.downcast_index(self._index.storage)
        self.vectors: Vectors = (
            half.astype(np.float32) if self._flat is None else held(self._flat, half.shape)
        )

    @classmethod
    def over(cls, rows: Rows, half: Half, stopping: Event, index: Any | None = None) -> VectorSegment:
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

    def grown(self, rows: Rows, half: Half, stopping: Event) -> VectorSegment:
        """A segment with more vectors after those of this one, whose graph is reused."""
        index = revived(self._half, self._graph) if self._graph is not None else None
        return VectorSegment.over(
            np.concatenate([self.rows, rows]), np.concatenate([self._half, half]), stopping, index
        )

    def part(self, live: Mask | None) -> tuple[Rows, Half]:
        """What lives of it."""
        return (self.rows, self._half) if live is None else (self.rows[live], self._half[live])

    def near(self, query: Vectors, k: int, allowed: Selection | None) -> NDArray[np.intp]:
        """Positions of about the k nearest vectors among the allowed, in no order."""
        count = len(self.rows)
        passing = count if allowed is None else allowed.count
        if not passing:
            return np.empty(0, np.intp)
        if allowed is None or passing == count:
            if self._index is None:
                return top(products(self.vectors, query), k)
            return self._walked(query, k, effort(k, 1.0))[0]
        if self._index is None:
            return self._scanned(query, k, allowed)
        if passing >= MOST * count:
            # Among so many more as few are left out, k pass; what is left out is looked at after the walk.
            wanted = int(MARGIN * k * count / passing)
            found, _ = self._walked(query, wanted, effort(wanted, 1.0))
            found = found[allowed.mask[found]]
            if len(found) >= k:
                return found[:k]
        elif passing <= COPIED and (copy := self._copy(allowed)) is not None:
            return self._copied(query, k, allowed, copy)
        elif passing < max(SCAN_BELOW * count, 4 * k):
            return self._scanned(query, k, allowed)
        found, farthest = self._walked(query, k, effort(k, passing / count), allowed)
        if len(found) < k or self._missed(found, farthest, query, allowed):
            return self._scanned(query, k, allowed)
        return found

    def _walked(
        self, query: Vectors, k: int, width: int, allowed: Selection | None = None
    ) -> tuple[NDArray[np.intp], np.float32]:
        """The nearest that a walk through the graph finds, nearest first, and the score of the last asked for."""
        parameters = faiss.SearchParametersHNSW(efSearch=width)
        if allowed is not None:
            parameters.sel = faiss.IDSelectorBitmap(allowed.bits)
        assert self._index is not None
        scores, found = self._index.search(query[None], k, params=parameters)
        return found[0][found[0] >= 0], scores[0][k - 1]

    def _copy(self, allowed: Selection) -> Any | None:
        """The allowed vectors side by side; made when a filter comes again, and kept while there is room."""
        with self._lock:
            copy = self._copies.get(allowed)
            if copy is not None:
                self._copies.move_to_end(allowed)
                return copy
            allowed.asked += 1
            if allowed.asked < COPY_AT:
                return None
        copy = compact(self._half[allowed.positions])
        with self._lock:
            self._copies[allowed] = copy
            while sum(kept.ntotal for kept in self._copies.values()) > COPIES:
                self._copies.popitem(last=False)
        return copy

    def _copied(self, query: Vectors, k: int, allowed: Selection, copy: Any) -> NDArray[np.intp]:
        """The k nearest of a copy."""
        wanted = min(k + 1, allowed.count)
        with one_thread():
            scores, found = copy.search(query[None], wanted)
        if wanted > k and scores[0][k - 1] == scores[0][k]:
            # More are as near as the last: which of them stays is not for the order in the copy to say.
            return self._scanned(query, k, allowed)
        at: NDArray[np.intp] = found[0][:k]
        return allowed.positions[at]

    def _scanned(self, query: Vectors, k: int, allowed: Selection) -> NDArray[np.intp]:
        return allowed.positions[top(self._products_at(query, allowed.positions), k)]

    def _missed(
        self, found: NDArray[np.intp], farthest: np.float32, query: Vectors, allowed: Selection
    ) -> bool:
        """Whether the graph has lost its way, as it does where all that passes the filter is far from the query.

        A sample of what passes shows it: what is nearer than the last one found must itself be found."""
        step = max(1, allowed.count // SAMPLE)
        if allowed.sample is None:
            positions = allowed.positions[::step]
            allowed.sample = (positions, self.vectors[positions])
        sample, vectors = allowed.sample
        nearer = sample[products(vectors, query) > farthest]
        missed = np.count_nonzero(~np.isin(nearer, found))
        return bool(missed if step == 1 else missed >= max(MISSED, MISSED_SHARE * len(nearer)))

    def _products_at(self, query: Vectors, positions: NDArray[np.intp]) -> NDArray[np.float32]:
        if self._flat is None:
            return products(self.vectors[positions], query)
        out = np.empty(len(positions), np.float32)
        places = np.ascontiguousarray(positions, np.int64)
        # In place: a copy of the vectors at these positions would take longer than the products.
        with one_thread():
            self._flat.compute_distance_subset(
                1, faiss.swig_ptr(query), len(places), faiss.swig_ptr(out), faiss.swig_ptr(places)
            )
        return out
