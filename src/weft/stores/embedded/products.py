"""Dot products, and vectors as faiss keeps them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import faiss
import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Half = NDArray[np.float16]


def products(vectors: Vectors, query: Vectors) -> NDArray[np.float32]:
    """Dot products to choose by, in one thread."""
    out = np.empty(len(vectors), np.float32)
    faiss.fvec_inner_products_ny(
        faiss.swig_ptr(out), faiss.swig_ptr(query), faiss.swig_ptr(vectors), vectors.shape[1], len(vectors)
    )
    return out


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """For work of microseconds: a thread per core is slow on a machine that is busy."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def top(scores: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Positions of the k best scores and of all that tie with the last, in no order."""
    if len(scores) <= k:
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])


def revived(half: Half, graph: NDArray[np.uint8]) -> Any:
    """A graph from its bytes, over a copy of the vectors in full precision."""
    index = faiss.deserialize_index(np.array(graph), faiss.IO_FLAG_SKIP_STORAGE)
    flat = faiss.IndexFlat(half.shape[1], faiss.METRIC_INNER_PRODUCT)
    # Widened where they stay: another copy would take longer than the widening.
    flat.codes.resize(2 * half.nbytes)
    flat.ntotal = len(half)
    widen(half, held(flat, half.shape))
    index.storage = flat
    index.own_fields = True
    flat.this.disown()
    return index


def widen(half: Half, out: Vectors) -> None:
    """The same numbers in full precision; faiss does in half the time what numpy does."""
    quantizer = faiss.IndexScalarQuantizer(half.shape[1], faiss.ScalarQuantizer.QT_fp16)
    quantizer.is_trained = True
    quantizer.sa_decode(np.ascontiguousarray(half).view(np.uint8), x=out)


def held(flat: Any, shape: tuple[int, ...]) -> Vectors:
    """A view of the vectors that a graph is over."""
    return np.asarray(faiss.rev_swig_ptr(flat.get_xb(), shape[0] * shape[1])).reshape(shape)


def compact(half: Half) -> Any:
    """An index for exact scans of vectors in half precision."""
    index = faiss.IndexScalarQuantizer(
        half.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
    )
    index.is_trained = True
    index.add_sa_codes(np.ascontiguousarray(half).view(np.uint8))
    return index
