"""Ways to find the nearest of many vectors, and what each costs: python -m benchmarks.vectors --size 100000

sennit's own lists of codes beside what was tried in their place, over the passages of benchmarks/corpus.py and one thread: a
graph (HNSW, m 24, efConstruction 128), codes without lists, lists of vectors in bytes, and codes for four numbers.
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

from benchmarks.corpus import embedder, load
from sennit.stores.embedded.coded import CLOSER, Coded, lists_for
from sennit.stores.embedded.products import Compact, Vectors, one_thread

K: Final = 50
WIDTHS: Final = (96, 160, 256)
SHARE: Final = 0.25
"""Of the lists, where their number is not measured."""

Find = Callable[[Vectors], NDArray[Any]]


def ways(vectors: Vectors) -> Iterator[tuple[str, float, Find]]:
    """Each way by name, with the seconds it took to build."""
    compact = Compact(vectors.astype(np.float16))
    count, dimensions = vectors.shape
    began = time.perf_counter()
    coded = Coded.over(compact, Event())
    assert coded is not None, "codes do not serve for these vectors"
    yield "sennit: codes in lists", time.perf_counter() - began, lambda query: coded.nearest(query, K)[0]
    graph = faiss.IndexHNSWFlat(dimensions, 24, faiss.METRIC_INNER_PRODUCT)
    graph.hnsw.efConstruction = 128
    seconds = _built(graph, vectors)
    for width in WIDTHS:
        yield f"graph, ef {width}", seconds, _finding(graph, faiss.SearchParametersHNSW(efSearch=width))
    probes = faiss.SearchParametersIVF(nprobe=round(SHARE * lists_for(count)))
    few = faiss.IndexFlatIP(dimensions), faiss.IndexFlatIP(dimensions)
    loose = faiss.IndexPQFastScan(dimensions, dimensions // 2, 4, faiss.METRIC_INNER_PRODUCT)
    coarse = faiss.IndexIVFPQFastScan(
        few[0], dimensions, lists_for(count), dimensions // 4, 4, faiss.METRIC_INNER_PRODUCT
    )
    for name, codes, inner in (
        ("codes without lists", loose, None),
        ("codes for four numbers", coarse, probes),
    ):
        seconds = _built(codes, vectors)
        closer = faiss.IndexRefineSearchParameters(k_factor=CLOSER, base_index_params=inner)
        yield name, seconds, _finding(faiss.IndexRefine(codes, compact.index), closer)
    in_bytes = faiss.IndexIVFScalarQuantizer(
        few[1],
        dimensions,
        lists_for(count),
        faiss.ScalarQuantizer.QT_8bit,
        faiss.METRIC_INNER_PRODUCT,
    )
    yield "lists of vectors in bytes", _built(in_bytes, vectors), _finding(in_bytes, probes)


def _built(index: Any, vectors: Vectors) -> float:
    began = time.perf_counter()
    index.train(vectors)
    index.add(vectors)
    return time.perf_counter() - began


def _finding(index: Any, parameters: Any) -> Find:
    def find(query: Vectors) -> NDArray[Any]:
        found: NDArray[Any] = index.search(query[None], K, params=parameters)[1][0]
        return found[found >= 0]

    return find


def measured(vectors: Vectors, questions: Vectors) -> Iterator[tuple[str, float, float, float, float]]:
    """By way: seconds to build, p50 in milliseconds, recall of the ten and of the fifty nearest."""
    scores = questions @ vectors.T
    bounds = [np.partition(scores, -k, axis=1)[:, -k] for k in (10, K)]
    with one_thread():
        for name, seconds, find in ways(vectors):
            times, hits = [], np.zeros(2)
            for row, question in zip(range(len(questions)), questions, strict=True):
                began = time.perf_counter()
                found = find(question)
                times.append((time.perf_counter() - began) * 1000)
                near = scores[row, found]
                hits += [
                    min(k, int(np.count_nonzero(near >= bound[row] - 1e-5))) / k
                    for k, bound in zip((10, K), bounds, strict=True)
                ]
            yield name, seconds, float(np.median(times)), *(hits / len(questions)).tolist()


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=300)
    options = parser.parse_args(arguments)
    corpus = load(options.size, options.questions)
    model = embedder()
    # As sennit holds them: in half precision.
    vectors = np.asarray(corpus.vectors).astype(np.float16).astype(np.float32)
    questions = np.array([model.embed_query(question) for question in corpus.queries])
    print("| | build, s | p50, ms | recall@10 | recall@50 |\n|---|---:|---:|---:|---:|")
    for name, seconds, p50, ten, fifty in measured(vectors, questions):
        print(f"| {name} | {seconds:.1f} | {p50:.2f} | {ten:.3f} | {fifty:.3f} |", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
