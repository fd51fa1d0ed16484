"""An IVF-PQ index (faiss): inverted lists of vectors by direction, with a 4-bit code for each pair of numbers.

A search scores the codes of the lists nearest to the query, and reranks the best by the vectors themselves. How many
lists it must probe depends on the distribution of the vectors, so each new index is calibrated.
"""

from __future__ import annotations

from functools import lru_cache
from threading import Event
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.stores.contract import Cancelled
from sennit.stores.embedded.faiss_import import faiss
from sennit.stores.embedded.selection import Selection
from sennit.stores.embedded.vector_math import (
    Float16Vectors,
    Vectors,
    borrow_array,
    faiss_selector,
    search_faiss,
    single_thread,
)

KMEANS_ITERATIONS: Final = 6
SAMPLES_PER_LIST: Final = 32
SAMPLES_PER_CODE: Final = 128
"""Training: the iterations of k-means, and the vectors that it samples for each list and for each code."""

ADD_CHUNK_VECTORS: Final = 16_384
"""Vectors added between two checks for cancellation."""

RERANK_FACTOR: Final = 4
MIN_RERANKED: Final = 200
"""For k results, four times k candidates are reranked, and at least 200."""

MAX_PROBE_MARGIN: Final = 2.0
"""A margin that probes every list. A search probes the lists whose centroids are at most the margin less similar to the
query than the nearest centroid is. A query far from everything has many such lists, and needs them."""

CALIBRATION_QUERIES: Final = 512
CALIBRATION_NEIGHBOURS: Final = 20
CALIBRATION_QUANTILE: Final = 0.99
CALIBRATION_SLACK: Final = 1.25
"""The probe margin is what 99% of the twenty nearest neighbours of sampled vectors need, and a quarter more: a query has
fewer words than a text, and lies farther from its answers."""

RECALL_QUERIES: Final = 64
RECALL_NEIGHBOURS: Final = 50
MIN_RECALL: Final = 0.8
"""An index is not used if even a search of all lists finds less than 80% of the fifty nearest neighbours of sampled vectors."""

RECALIBRATE_GROWTH: Final = 1.2
"""An index that is extended is calibrated again when it holds this many times as many vectors."""

FILTER_MARGIN_EXPONENT: Final = 0.1
"""With a filter, the results lie farther out: the margin is divided by the passing share to this power."""


def list_count(vectors: int) -> int:
    """The number of inverted lists for so many vectors: the power of two nearest to 1.6 times their square root."""
    return int(2 ** round(np.log2(1.6 * np.sqrt(vectors))))


class IvfPqIndex:
    """The inverted lists over some vectors, which the caller holds."""

    def __init__(
        self,
        lists: Any,
        vectors: Float16Vectors,
        probe_margin: float = MAX_PROBE_MARGIN,
        calibrated_count: int = 0,
    ) -> None:
        """`probe_margin` was calibrated when the index held `calibrated_count` vectors."""
        self._lists = lists
        self.probe_margin = probe_margin
        self.calibrated_count = calibrated_count
        self._vectors = vectors
        self._refined = faiss.IndexRefine(lists, vectors.index)
        self._centroids = _centroids_of(lists)
        # Cached, because creating them takes as long as searching a list.
        self._parameters = lru_cache(maxsize=256)(_search_parameters)

    @classmethod
    def build(
        cls, vectors: Float16Vectors, stop_requested: Event, base: IvfPqIndex | None = None
    ) -> IvfPqIndex | None:
        """Build an index; None if codes cannot tell these vectors apart.

        `base` is an index that already holds the first of the vectors; the rest is added to a copy of it.
        """
        # In one thread: the other cores serve concurrent writes and searches.
        with single_thread():
            if base is not None and base._lists.nlist == list_count(len(vectors)):
                lists = faiss.clone_index(base._lists)
            else:
                lists, base = _train(vectors), None
            while lists.ntotal < len(vectors):
                if stop_requested.is_set():
                    raise Cancelled
                lists.add(vectors.decode(vectors.half[lists.ntotal : lists.ntotal + ADD_CHUNK_VECTORS]))
            if base is not None and len(vectors) < RECALIBRATE_GROWTH * base.calibrated_count:
                return cls(lists, vectors, base.probe_margin, base.calibrated_count)
            return _calibrate(cls(lists, vectors))

    @classmethod
    def from_bytes(
        cls, codes: NDArray[np.uint8], probe_margin: float, calibrated_count: int, vectors: Float16Vectors
    ) -> IvfPqIndex:
        """Open an index from the bytes of `to_bytes`."""
        lists = faiss.deserialize_index(np.array(codes))
        if lists.ntotal != len(vectors):
            raise ValueError(f"the index holds codes of {lists.ntotal} vectors instead of {len(vectors)}")
        return cls(lists, vectors, probe_margin, calibrated_count)

    def to_bytes(self) -> NDArray[np.uint8]:
        """The inverted lists as bytes."""
        out: NDArray[np.uint8] = faiss.serialize_index(self._lists)
        return out

    def nearest(
        self,
        query: Vectors,
        k: int,
        allowed: Selection | None = None,
        *,
        probe_margin: float | None = None,
        rerank_factor: float = RERANK_FACTOR,
    ) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
        """Positions and scores of approximately the k nearest, nearest first."""
        if probe_margin is None:
            probe_margin = self.probe_margin
        if allowed is not None:
            probe_margin /= (allowed.count / len(self._vectors)) ** FILTER_MARGIN_EXPONENT
        similarities = self._centroids @ query
        probes = int(np.count_nonzero(similarities >= np.maximum.reduce(similarities) - probe_margin))
        if allowed is None:
            # Rounded up to a multiple of eight, so that the cached parameters are shared.
            parameters = self._parameters(-(-probes // 8) * 8, k, rerank_factor)
        else:
            parameters = _search_parameters(probes, k, rerank_factor, allowed)
        return search_faiss(self._refined, self._centroids.shape[1], query, k, parameters)

    def required_margins(self, queries: Vectors, k: int) -> NDArray[np.float32]:
        """The probe margin at which each of the k nearest neighbours of each query would be found."""
        found = [self.nearest(query, k, probe_margin=MAX_PROBE_MARGIN)[0] for query in queries]
        _, lists = self._lists.quantizer.search(self._vectors.at(np.concatenate(found)), 1)
        query_of = np.repeat(np.arange(len(queries)), [len(positions) for positions in found])
        similarities = queries @ self._centroids.T
        out: NDArray[np.float32] = similarities.max(axis=1)[query_of] - similarities[query_of, lists[:, 0]]
        return out


def _train(vectors: Float16Vectors) -> Any:
    """Train empty inverted lists on a sample of the vectors."""
    count, dimensions = vectors.half.shape
    list_number = list_count(count)
    # One code for two numbers, or one for each where the dimensions are odd.
    code_number = dimensions if dimensions % 2 else dimensions // 2
    centroids = faiss.IndexFlatIP(dimensions)
    lists = faiss.IndexIVFPQFastScan(
        centroids, dimensions, list_number, code_number, 4, faiss.METRIC_INNER_PRODUCT
    )
    lists.own_fields = True
    centroids.this.disown()
    lists.by_residual = True
    lists.cp.niter = KMEANS_ITERATIONS
    lists.cp.spherical = True
    lists.cp.min_points_per_centroid = 1
    lists.cp.max_points_per_centroid = SAMPLES_PER_LIST
    lists.pq.cp.min_points_per_centroid = 1
    lists.pq.cp.max_points_per_centroid = SAMPLES_PER_CODE
    lists.pq.cp.niter = KMEANS_ITERATIONS
    lists.train(vectors.decode(vectors.half[:: max(1, count // (SAMPLES_PER_LIST * list_number))]))
    return lists


def _search_parameters(probes: int, k: int, rerank_factor: float, allowed: Selection | None = None) -> Any:
    """The faiss parameters for so many probed lists, and for reranking `rerank_factor` times k candidates."""
    inner = faiss.SearchParametersIVF(nprobe=probes)
    if allowed is not None:
        inner.sel = faiss_selector(allowed)
    k_factor = max(rerank_factor, MIN_RERANKED / k)
    return faiss.IndexRefineSearchParameters(k_factor=k_factor, base_index_params=inner)


def _centroids_of(lists: Any) -> Vectors:
    """The centroids of the lists, in faiss's own memory."""
    flat = faiss.downcast_index(lists.quantizer)
    return borrow_array(lists, flat.get_xb(), np.float32, (lists.nlist, lists.d))


def _calibrate(index: IvfPqIndex) -> IvfPqIndex | None:
    """Measure the probe margin that the vectors need; None if the recall of the codes is too low."""
    vectors = index._vectors
    chance = np.random.default_rng(len(vectors))
    sampled = vectors.at(chance.integers(0, len(vectors), RECALL_QUERIES))
    exact, _ = vectors.index.search(sampled, RECALL_NEIGHBOURS)
    found = (index.nearest(query, RECALL_NEIGHBOURS, probe_margin=MAX_PROBE_MARGIN)[1] for query in sampled)
    hits = sum(np.count_nonzero(scores >= last) for scores, last in zip(found, exact[:, -1], strict=True))
    if hits < MIN_RECALL * exact.size:
        return None
    queries = vectors.at(chance.integers(0, len(vectors), CALIBRATION_QUERIES))
    margins = index.required_margins(queries, CALIBRATION_NEIGHBOURS)
    required = float(np.quantile(margins, CALIBRATION_QUANTILE))
    index.probe_margin = min(CALIBRATION_SLACK * required, MAX_PROBE_MARGIN)
    index.calibrated_count = len(vectors)
    return index
