"""Approximate vector indexes compared: python -m benchmarks.vectors --size 100000

sennit's IVF-PQ index and the alternatives that were tried, over the passages of benchmarks/corpus.py, with one thread:
HNSW (m 24, efConstruction 128), PQ without inverted lists, IVF with 8-bit vectors, and IVF-PQ with one code for four
dimensions.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from threading import Event
from typing import Any, Final

import faiss
import numpy as np
from numpy.typing import NDArray

from benchmarks.corpus import load_corpus, make_embedder
from sennit.stores.embedded.ivfpq import RERANK_FACTOR, IvfPqIndex, list_count
from sennit.stores.embedded.vector_math import Float16Vectors, Vectors, single_thread

TOP_K: Final = 50
HNSW_EFFORTS: Final = (96, 160, 256)
PROBED_SHARE: Final = 0.25
"""The fraction of inverted lists that a search of the other IVF indexes probes."""

Search = Callable[[Vectors], NDArray[Any]]


def build_indexes(vectors: Vectors) -> Iterator[tuple[str, float, Search]]:
    """Each index: its name, the seconds to build it, and its search."""
    half_precision = Float16Vectors(vectors.astype(np.float16))
    count, dimensions = vectors.shape
    started = time.perf_counter()
    ivfpq = IvfPqIndex.build(half_precision, Event())
    assert ivfpq is not None, "PQ is not accurate enough for these vectors"
    yield "sennit: IVF-PQ", time.perf_counter() - started, lambda query: ivfpq.nearest(query, TOP_K)[0]
    hnsw = faiss.IndexHNSWFlat(dimensions, 24, faiss.METRIC_INNER_PRODUCT)
    hnsw.hnsw.efConstruction = 128
    seconds = _time_build(hnsw, vectors)
    for effort in HNSW_EFFORTS:
        yield f"HNSW, ef {effort}", seconds, _make_search(hnsw, faiss.SearchParametersHNSW(efSearch=effort))
    probes = faiss.SearchParametersIVF(nprobe=round(PROBED_SHARE * list_count(count)))
    quantizers = faiss.IndexFlatIP(dimensions), faiss.IndexFlatIP(dimensions)
    flat_pq = faiss.IndexPQFastScan(dimensions, dimensions // 2, 4, faiss.METRIC_INNER_PRODUCT)
    ivfpq_four = faiss.IndexIVFPQFastScan(
        quantizers[0], dimensions, list_count(count), dimensions // 4, 4, faiss.METRIC_INNER_PRODUCT
    )
    for name, codes, inner in (
        ("PQ without IVF", flat_pq, None),
        ("IVF-PQ, four dimensions per code", ivfpq_four, probes),
    ):
        seconds = _time_build(codes, vectors)
        refinement = faiss.IndexRefineSearchParameters(k_factor=RERANK_FACTOR, base_index_params=inner)
        yield name, seconds, _make_search(faiss.IndexRefine(codes, half_precision.index), refinement)
    ivf_8bit = faiss.IndexIVFScalarQuantizer(
        quantizers[1],
        dimensions,
        list_count(count),
        faiss.ScalarQuantizer.QT_8bit,
        faiss.METRIC_INNER_PRODUCT,
    )
    yield "IVF, 8-bit vectors", _time_build(ivf_8bit, vectors), _make_search(ivf_8bit, probes)


def _time_build(index: Any, vectors: Vectors) -> float:
    started = time.perf_counter()
    index.train(vectors)
    index.add(vectors)
    return time.perf_counter() - started


def _make_search(index: Any, parameters: Any) -> Search:
    def search(query: Vectors) -> NDArray[Any]:
        found: NDArray[Any] = index.search(query[None], TOP_K, params=parameters)[1][0]
        return found[found >= 0]

    return search


def measure_indexes(vectors: Vectors, queries: Vectors) -> Iterator[tuple[str, float, float, float, float]]:
    """For each index: seconds to build, p50 in milliseconds, recall@10 and recall@50."""
    scores = queries @ vectors.T
    bounds = [np.partition(scores, -k, axis=1)[:, -k] for k in (10, TOP_K)]
    with single_thread():
        for name, seconds, search in build_indexes(vectors):
            times, hits = [], np.zeros(2)
            for row, query in zip(range(len(queries)), queries, strict=True):
                started = time.perf_counter()
                found = search(query)
                times.append((time.perf_counter() - started) * 1000)
                near = scores[row, found]
                hits += [
                    min(k, int(np.count_nonzero(near >= bound[row] - 1e-5))) / k
                    for k, bound in zip((10, TOP_K), bounds, strict=True)
                ]
            yield name, seconds, float(np.median(times)), *(hits / len(queries)).tolist()


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the indexes, run the queries, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=300)
    options = parser.parse_args(arguments)
    corpus = load_corpus(options.size, options.queries)
    model = make_embedder()
    # In half precision, as sennit stores them.
    vectors = np.asarray(corpus.vectors).astype(np.float16).astype(np.float32)
    queries = np.array([model.embed_query(query) for query in corpus.queries])
    print("| | build, s | p50, ms | recall@10 | recall@50 |\n|---|---:|---:|---:|---:|")
    for name, seconds, p50, ten, fifty in measure_indexes(vectors, queries):
        print(f"| {name} | {seconds:.1f} | {p50:.2f} | {ten:.3f} | {fifty:.3f} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
