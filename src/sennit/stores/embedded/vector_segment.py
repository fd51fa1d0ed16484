"""The vectors of one segment: searched by an IVF-PQ index if they are many, scanned if they or the allowed ones are few."""

from __future__ import annotations

from collections import OrderedDict
from threading import Event, Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.stores.embedded.arrays import Arrays
from sennit.stores.embedded.index_view import Segment
from sennit.stores.embedded.ivfpq import IvfPqIndex
from sennit.stores.embedded.selection import Mask, Rows, Selection
from sennit.stores.embedded.vector_math import (
    Float16Vectors,
    Half,
    Int8Vectors,
    Vectors,
    fast_dot_products,
    stable_dot_products,
    top_k_with_ties,
)

IVFPQ_MIN_VECTORS: Final = 8192
IVFPQ_MIN_VECTORS_TRANSIENT: Final = 32_768
"""Below this many vectors, a scan is as fast as an IVF-PQ index, and exact. A transient segment is merged into an older one
soon, so an index for it pays off only at a larger size."""

COPY_MAX_VECTORS: Final = 16_384
COPY_AFTER_USES: Final = 2
COPY_MAX_SHARE: Final = 0.75
COPIES_MAX_VECTORS: Final = 65_536
COPY_RERANK_FACTOR: Final = 2
"""If a filter passes at most COPY_MAX_VECTORS vectors, its second use makes a contiguous copy of them in 8-bit integers. A
search scans the copy and reranks twice as many candidates as it wants by the vectors themselves. That is faster than
gathering the vectors from all over the segment, unless the filter passes nearly all of them. All copies of a segment
together hold at most COPIES_MAX_VECTORS vectors, 16 MB at 256 dimensions."""

UNFILTERED_NEIGHBOURS: Final = 256
UNFILTERED_RERANK_FACTOR: Final = 2.0
UNFILTERED_MARGIN: Final = 1.5
"""A filtered search first filters the 256 nearest of all vectors, if it can expect one and a half times as many of them to
pass as it wants. A smaller rerank factor suffices for these, because only the nearest of them are wanted."""

MAX_RESULT_SHARE: Final = 0.05
"""A search for more than this share of the allowed vectors is a scan."""

RECALL_SAMPLE: Final = 256
MIN_MISSED: Final = 3
MIN_MISSED_SHARE: Final = 0.2
"""A filtered search is checked against a sample of the allowed vectors. It has failed if, of the sampled vectors nearer than
its last result, it missed at least three and at least 20%."""


Neighbours = tuple[NDArray[np.intp], NDArray[np.float32]]
"""Positions and their scores."""


class VectorSegment(Segment):
    """Vectors by position, with an IVF-PQ index when they are many."""

    def __init__(self, rows: Rows, vectors: Float16Vectors, ivfpq: IvfPqIndex | None) -> None:
        self.rows = rows
        self._vectors = vectors
        self._ivfpq = ivfpq
        self._copies: OrderedDict[Selection, Int8Vectors] = OrderedDict()
        self._lock = Lock()
        self._unfiltered: tuple[bytes, NDArray[np.intp]] = (b"", np.empty(0, np.intp))

    @classmethod
    def build(
        cls,
        rows: Rows,
        half: Half,
        stop_requested: Event,
        base: VectorSegment | None = None,
        *,
        transient: bool = False,
    ) -> VectorSegment:
        """Build a segment; `base` is one that holds the first of the vectors, whose index is extended.

        A `transient` segment will soon be merged into an older one.
        """
        vectors = Float16Vectors(half)
        if len(rows) < (IVFPQ_MIN_VECTORS_TRANSIENT if transient else IVFPQ_MIN_VECTORS):
            return cls(rows, vectors, None)
        base_index = base._ivfpq if base is not None else None
        return cls(rows, vectors, IvfPqIndex.build(vectors, stop_requested, base_index))

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> VectorSegment:
        """Open a segment from its stored arrays."""
        # Copy everything, so that the mapped file need not stay in memory as well.
        rows, vectors = np.array(arrays["rows"]), Float16Vectors(arrays["vectors"])
        if "codes" not in arrays:
            return cls(rows, vectors, None)
        probe_margin, count = arrays["calibration"].tolist()
        return cls(rows, vectors, IvfPqIndex.from_bytes(arrays["codes"], probe_margin, int(count), vectors))

    def to_arrays(self) -> Arrays:
        out: dict[str, NDArray[Any]] = {"rows": self.rows, "vectors": self._vectors.half}
        if self._ivfpq is not None:
            out["codes"] = self._ivfpq.to_bytes()
            out["calibration"] = np.array([self._ivfpq.probe_margin, self._ivfpq.calibrated_count])
        return out

    def live_vectors(self, live: Mask | None) -> tuple[Rows, Half]:
        """The rows and vectors of the live records."""
        half = self._vectors.half
        return (self.rows, half) if live is None else (self.rows[live], half[live])

    def vectors_at(self, positions: NDArray[np.intp]) -> Vectors:
        """The vectors at some positions."""
        return self._vectors.at(positions)

    def nearest(
        self, query: Vectors, k: int, allowed: Selection | None, *, exact: bool = False
    ) -> Neighbours:
        """The k nearest of the allowed vectors, approximately unless `exact`, in no order."""
        if allowed is not None and allowed.count == len(self.rows):
            allowed = None
        if allowed is not None and 0 < allowed.count <= COPY_MAX_VECTORS and not exact:
            found_in_copy = self._search_copy(query, k, allowed)
            if found_in_copy is not None:
                return found_in_copy
        found = self._nearest_positions(query, k, allowed, exact=exact)
        return found, stable_dot_products(self.vectors_at(found), query)

    def _nearest_positions(
        self, query: Vectors, k: int, allowed: Selection | None, *, exact: bool
    ) -> NDArray[np.intp]:
        allowed_count = len(self.rows) if allowed is None else allowed.count
        if not allowed_count:
            return np.empty(0, np.intp)
        if self._ivfpq is None or exact or k > MAX_RESULT_SHARE * allowed_count:
            return self._vectors.nearest(query, k, allowed)
        if allowed is None:
            found, _ = self._ivfpq.nearest(query, k)
            return found if len(found) == k else self._vectors.nearest(query, k)
        filtered = self._filter_unfiltered(query, k, allowed)
        if filtered is not None:
            return filtered
        found, scores = self._ivfpq.nearest(query, k, allowed)
        if len(found) < k or self._has_missed(found, scores[-1], query, allowed):
            return self._vectors.nearest(query, k, allowed)
        return found

    def _filter_unfiltered(self, query: Vectors, k: int, allowed: Selection) -> NDArray[np.intp] | None:
        """The k nearest of the allowed, if they are among the nearest of all vectors.

        The nearest of all are cached: a search of several collections applies a filter for each to the same query.
        """
        if UNFILTERED_MARGIN * k * len(self.rows) > UNFILTERED_NEIGHBOURS * allowed.count:
            return None
        assert self._ivfpq is not None
        cached_query, found = self._unfiltered
        if cached_query != (key := query.tobytes()):
            found, _ = self._ivfpq.nearest(
                query, UNFILTERED_NEIGHBOURS, rerank_factor=UNFILTERED_RERANK_FACTOR
            )
            self._unfiltered = (key, found)
        passing = found[allowed.mask[found]]
        return passing[:k] if len(passing) >= k else None

    def _search_copy(self, query: Vectors, k: int, allowed: Selection) -> Neighbours | None:
        """The k nearest of the allowed and all that tie with the last, if there is a copy of the allowed vectors."""
        copy = self._copy_of(allowed)
        if copy is None:
            return None
        positions = allowed.positions
        if COPY_RERANK_FACTOR * k < len(positions):
            positions = positions[copy.nearest(query, COPY_RERANK_FACTOR * k)]
        scores = stable_dot_products(self.vectors_at(positions), query)
        best = top_k_with_ties(scores, k)
        # If all candidates tie, other vectors may tie as well.
        if len(best) == len(positions) < allowed.count:
            return None
        return positions[best], scores[best]

    def _copy_of(self, allowed: Selection) -> Int8Vectors | None:
        """The contiguous copy of the allowed vectors, made when a filter is used again; None without one."""
        with self._lock:
            copy = self._copies.get(allowed)
            if copy is not None:
                self._copies.move_to_end(allowed)
                return copy
            allowed.uses += 1
            if allowed.uses < COPY_AFTER_USES or allowed.count > COPY_MAX_SHARE * len(self.rows):
                return None
        copy = Int8Vectors(self._vectors.half[allowed.positions])
        with self._lock:
            self._copies[allowed] = copy
            while sum(map(len, self._copies.values())) > COPIES_MAX_VECTORS:
                self._copies.popitem(last=False)
        return copy

    def _has_missed(
        self, found: NDArray[np.intp], last_score: np.float32, query: Vectors, allowed: Selection
    ) -> bool:
        """Whether the search has missed too much, as it does when all allowed vectors are far from the query.

        A sample of the allowed vectors shows it: those nearer than the last result must be among the results.
        """
        if allowed.sample is None:
            positions = allowed.positions[:: max(1, allowed.count // RECALL_SAMPLE)]
            allowed.sample = (positions, self.vectors_at(positions))
        sample, vectors = allowed.sample
        nearer = sample[fast_dot_products(vectors, query) > last_score]
        missed = np.count_nonzero(~np.isin(nearer, found))
        return bool(missed >= max(MIN_MISSED, MIN_MISSED_SHARE * len(nearer)))
