"""Dot products, and faiss containers for vectors as 16-bit floats and 8-bit integers."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.stores.embedded.faiss_import import faiss, faiss_is_loaded
from sennit.stores.embedded.selection import Selection

Vectors = NDArray[np.float32]
Half = NDArray[np.float16]

MANTISSA_SHIFT: Final = 13
"""Bits that the mantissa of a float32 has more than that of a float16."""

SIGN_EXTENSION_MASK: Final = np.int32(-0x7000_0001)
"""Clears the three copies of the sign bit that widening an int16 leaves between sign and exponent."""

EXPONENT_SCALE: Final = np.float32(2.0**112)
"""Makes up for the different exponent biases of float32 and float16."""

SCAN_MAX_VECTORS: Final = 20_000
SCANS_WITHOUT_FAISS: Final = 2
"""A process that has not imported faiss scans so many vectors with numpy instead, so many times: it takes a few
milliseconds, and the import takes longer than all else that one search on the command line does."""


def fast_dot_products(vectors: Vectors, query: Vectors) -> NDArray[np.float32]:
    """Dot products for choosing candidates, in one thread; rounding may differ from `stable_dot_products`."""
    if len(vectors) <= SCAN_MAX_VECTORS and not faiss_is_loaded():
        return stable_dot_products(vectors, query)
    out = np.empty(len(vectors), np.float32)
    faiss.fvec_inner_products_ny(
        faiss.swig_ptr(out), faiss.swig_ptr(query), faiss.swig_ptr(vectors), vectors.shape[1], len(vectors)
    )
    return out


def stable_dot_products(vectors: Vectors, query: Vectors) -> NDArray[np.float32]:
    """Dot products for scores: the order of summation does not depend on the number of vectors."""
    out: NDArray[np.float32] = np.einsum("ij,j->i", vectors, query)
    return out


def to_float32(half: Half) -> Vectors:
    """Finite numbers as float32, bit for bit what `astype` returns, in half its time.

    The sign, exponent and mantissa bits move to their places in a float32; EXPONENT_SCALE corrects the exponent.
    """
    bits = half.view(np.int16).astype(np.int32)
    bits <<= MANTISSA_SHIFT
    bits &= SIGN_EXTENSION_MASK
    wide: Vectors = bits.view(np.float32)
    wide *= EXPONENT_SCALE
    return wide


@contextlib.contextmanager
def single_thread() -> Iterator[None]:
    """Run faiss in one thread: for work of microseconds, a thread per core is slow on a busy machine."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def search_faiss(
    index: Any, dimensions: int, query: Vectors, k: int, parameters: Any = None
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """Search a faiss index for one query: positions and scores of k results or fewer, nearest first.

    It runs in one thread and calls the C++ method directly. The Python wrapper's preparation of any kind of input takes
    as long as searching a list.
    """
    if query.shape != (dimensions,):
        raise ValueError(f"a query of shape {query.shape}, and vectors of {dimensions} numbers")
    found, scores = np.empty(k, np.intp), np.empty(k, np.float32)
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        index.search_c(1, faiss.swig_ptr(query), k, faiss.swig_ptr(scores), faiss.swig_ptr(found), parameters)
    finally:
        faiss.omp_set_num_threads(threads)
    if k and found[-1] < 0:
        count = int(np.count_nonzero(found >= 0))
        return found[:count], scores[:count]
    return found, scores


class _BorrowedMemory:
    """Memory of another object; it keeps the object alive as long as an array over it lives."""

    def __init__(self, owner: object, interface: dict[str, Any]) -> None:
        self._owner = owner
        self.__array_interface__ = interface


def borrow_array(owner: object, pointer: Any, dtype: type[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The memory of a faiss object as an array that keeps the object alive, which faiss's own view does not."""
    if not np.prod(shape):
        return np.empty(shape, dtype)
    first = faiss.rev_swig_ptr(pointer, 1)
    address, _ = first.__array_interface__["data"]
    interface = {"version": 3, "data": (address, True), "typestr": np.dtype(dtype).str, "shape": shape}
    return np.asarray(_BorrowedMemory(owner, interface))


def top_k_with_ties(scores: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Positions of the k best scores and of all that tie with the last, in no order."""
    if len(scores) <= k:
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])


class Float16Vectors:
    """Vectors as 16-bit floats, for exact scans and for reranking."""

    def __init__(self, half: Half) -> None:
        self.half: Half = np.array(half) if len(half) <= SCAN_MAX_VECTORS else half
        """The vectors. With an index it is a view of faiss's memory, so that they are in memory once."""
        self._scans_left = SCANS_WITHOUT_FAISS
        if len(half) > SCAN_MAX_VECTORS or faiss_is_loaded():
            _ = self.index

    @cached_property
    def index(self) -> Any:
        """The faiss index of the vectors, which is built on first use."""
        index = faiss.IndexScalarQuantizer(
            self.half.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )
        index.is_trained = True
        index.add_sa_codes(np.ascontiguousarray(self.half).view(np.uint8))
        self.half = borrow_array(index, index.codes.data(), np.float16, self.half.shape)
        return index

    def __len__(self) -> int:
        return len(self.half)

    def at(self, positions: NDArray[np.intp]) -> Vectors:
        """The vectors at some positions, as float32."""
        return to_float32(self.half.take(positions, axis=0))

    def decode(self, half: Half) -> Vectors:
        """The same numbers as float32; faiss takes half the time of numpy."""
        out = np.empty(half.shape, np.float32)
        if len(half):
            self.index.sa_decode(np.ascontiguousarray(half).view(np.uint8), x=out)
        return out

    def nearest(self, query: Vectors, k: int, allowed: Selection | None = None) -> NDArray[np.intp]:
        """Positions of the k nearest and of all that tie with the last, in no order."""
        if self._scans_left and not faiss_is_loaded():
            self._scans_left -= 1
            return self._scan(query, k, allowed)
        if allowed is not None and allowed.scan_parameters is None:
            allowed.scan_parameters = faiss.SearchParameters(sel=faiss_selector(allowed))
        parameters = None if allowed is None else allowed.scan_parameters
        found, scores = search_faiss(self.index, self.half.shape[1], query, min(k + 1, len(self)), parameters)
        if len(found) <= k or scores[k - 1] > scores[k]:
            return found[:k]
        # Others tie with the last one. The caller breaks ties by id, not by position, so return them all.
        return self._scan(query, k, allowed)

    def _scan(self, query: Vectors, k: int, allowed: Selection | None) -> NDArray[np.intp]:
        """The same by computing every score."""
        candidates = np.arange(len(self)) if allowed is None else allowed.positions
        return candidates[top_k_with_ties(fast_dot_products(self.at(candidates), query), k)]


class Int8Vectors:
    """Vectors as 8-bit integers, half as much memory to read as 16-bit floats: for choosing candidates."""

    def __init__(self, half: Half) -> None:
        self._dimensions = half.shape[1]
        self.index = faiss.IndexScalarQuantizer(
            half.shape[1], faiss.ScalarQuantizer.QT_8bit_direct_signed, faiss.METRIC_INNER_PRODUCT
        )
        self.index.is_trained = True
        # faiss stores signed bytes with an offset of 128.
        self.index.add_sa_codes((_quantize(half.astype(np.float32)) + 128).astype(np.uint8))

    def __len__(self) -> int:
        return int(self.index.ntotal)

    def nearest(self, query: Vectors, k: int) -> NDArray[np.intp]:
        """Positions of approximately the k nearest, in no order."""
        # Quantize the query as well, because integer dot products are the fastest.
        found, _ = search_faiss(self.index, self._dimensions, _quantize(query), min(k, len(self)))
        return found


def _quantize(vectors: Vectors) -> Vectors:
    """Scale vectors by one factor to whole numbers from -127 to 127, which about keeps the order of dot products."""
    maximum = float(np.abs(vectors).max())
    scaled: Vectors = np.rint(vectors * np.float32(127 / maximum if maximum else 1))
    return scaled


def faiss_selector(allowed: Selection) -> Any:
    """The selected positions in the form that faiss takes."""
    return faiss.IDSelectorBitmap(allowed.bits)
