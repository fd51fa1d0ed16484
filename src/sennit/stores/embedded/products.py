"""Dot products, and vectors in half precision and in bytes as faiss keeps them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.stores.embedded.library import faiss
from sennit.stores.embedded.selection import Selection

Vectors = NDArray[np.float32]
Half = NDArray[np.float16]

FRACTION: Final = 13
"""Bits that a fraction in full precision has more than one in half precision."""

NO_COPIES: Final = np.int32(-0x7000_0001)
"""Without the copies of the sign that widening a whole number puts before it: three that are left between sign and exponent."""

EXPONENTS: Final = np.float32(2.0**112)
"""By how much the least exponent in full precision is below the least in half precision."""


def products(vectors: Vectors, query: Vectors) -> NDArray[np.float32]:
    """Dot products to choose by, in one thread."""
    out = np.empty(len(vectors), np.float32)
    faiss.fvec_inner_products_ny(
        faiss.swig_ptr(out), faiss.swig_ptr(query), faiss.swig_ptr(vectors), vectors.shape[1], len(vectors)
    )
    return out


def full(half: Half) -> Vectors:
    """Finite numbers in full precision, to the bit as `astype` gives them, in half its time.

    Sign, exponent and fraction move to where the wider form has them, and its exponents begin lower by EXPONENTS."""
    bits = half.view(np.int16).astype(np.int32)
    bits <<= FRACTION
    bits &= NO_COPIES
    wide: Vectors = bits.view(np.float32)
    wide *= EXPONENTS
    return wide


def similarity(vectors: Vectors, query: Vectors) -> NDArray[np.float32]:
    """The dot products, each summed in one fixed order whatever the number of vectors."""
    products: NDArray[np.float32] = np.einsum("ij,j->i", vectors, query)
    return products


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """For work of microseconds: a thread per core is slow on a machine that is busy."""
    threads = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def nearest(
    index: Any, dimensions: int, query: Vectors, k: int, parameters: Any = None
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """What faiss finds for one query, nearest first: positions and scores, k or fewer.

    In one thread, and without the library's own preparations for any kind of input: they take as long as a list.
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


class _Held:
    """Memory that belongs to another object, which lives as long as an array over it does."""

    def __init__(self, owner: object, interface: dict[str, Any]) -> None:
        self._owner = owner
        self.__array_interface__ = interface


def held(owner: object, pointer: Any, kind: type[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """The memory of a faiss object as an array that keeps the object alive; the library's own view does not."""
    if not np.prod(shape):
        return np.empty(shape, kind)
    first = faiss.rev_swig_ptr(pointer, 1)
    address, _ = first.__array_interface__["data"]
    interface = {"version": 3, "data": (address, True), "typestr": np.dtype(kind).str, "shape": shape}
    return np.asarray(_Held(owner, interface))


def top(scores: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """Positions of the k best scores and of all that tie with the last, in no order."""
    if len(scores) <= k:
        return np.arange(len(scores))
    return np.flatnonzero(scores >= np.partition(scores, len(scores) - k)[len(scores) - k])


class Compact:
    """Vectors in half precision, for exact scans and for a closer look at some."""

    def __init__(self, half: Half) -> None:
        self.index = faiss.IndexScalarQuantizer(
            half.shape[1], faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )
        self.index.is_trained = True
        self.index.add_sa_codes(np.ascontiguousarray(half).view(np.uint8))
        self.half: Half = held(self.index, self.index.codes.data(), np.float16, half.shape)
        """A view of what faiss holds: the vectors are in memory once."""

    def __len__(self) -> int:
        return len(self.half)

    def at(self, positions: NDArray[np.intp]) -> Vectors:
        """Some of the vectors, in full precision."""
        return full(self.half.take(positions, axis=0))

    def widened(self, half: Half) -> Vectors:
        """The same numbers in full precision; faiss does in half the time what numpy does."""
        out = np.empty(half.shape, np.float32)
        if len(half):
            self.index.sa_decode(np.ascontiguousarray(half).view(np.uint8), x=out)
        return out

    def nearest(self, query: Vectors, k: int, allowed: Selection | None = None) -> NDArray[np.intp]:
        """Positions of the k nearest and of all that tie with the last, in no order."""
        if allowed is not None and allowed.scanned is None:
            allowed.scanned = faiss.SearchParameters(sel=selector(allowed))
        parameters = None if allowed is None else allowed.scanned
        at, scores = nearest(self.index, self.half.shape[1], query, min(k + 1, len(self)), parameters)
        if len(at) <= k or scores[k - 1] > scores[k]:
            return at[:k]
        # More are as near as the last: which of them stay is not for their order here to say.
        among = np.arange(len(self)) if allowed is None else allowed.positions
        return among[top(products(self.at(among), query), k)]


class Coarse:
    """Vectors in bytes, half as much to read as in half precision: for where to look closer."""

    def __init__(self, half: Half) -> None:
        self._dimensions = half.shape[1]
        self.index = faiss.IndexScalarQuantizer(
            half.shape[1], faiss.ScalarQuantizer.QT_8bit_direct_signed, faiss.METRIC_INNER_PRODUCT
        )
        self.index.is_trained = True
        # faiss keeps a whole number with 128 added.
        self.index.add_sa_codes((_whole(half.astype(np.float32)) + 128).astype(np.uint8))

    def __len__(self) -> int:
        return int(self.index.ntotal)

    def nearest(self, query: Vectors, k: int) -> NDArray[np.intp]:
        """Positions of about the k nearest, in no order."""
        # The query becomes bytes as well: products of whole numbers are the fastest there are.
        found, _ = nearest(self.index, self._dimensions, _whole(query), min(k, len(self)))
        return found


def _whole(vectors: Vectors) -> Vectors:
    """Vectors by one scale as whole numbers from -127 to 127, so that their order by products about stays."""
    most = float(np.abs(vectors).max())
    scaled: Vectors = np.rint(vectors * np.float32(127 / most if most else 1))
    return scaled


def selector(allowed: Selection) -> Any:
    """Some positions, as faiss takes them."""
    return faiss.IDSelectorBitmap(allowed.bits)
