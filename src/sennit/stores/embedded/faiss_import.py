"""Imports faiss on first use: a process that only writes records does not need it, and importing it takes 0.2 seconds."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

CORETYPE_VARIABLE: Final = "OPENBLAS_CORETYPE"
OPENBLAS_KERNELS: Final = (
    ("X86_V4", "SkylakeX"),
    ("AVX512_SKX", "SkylakeX"),
    ("X86_V3", "Haswell"),
    ("AVX2", "Haswell"),
)
"""The OpenBLAS kernel for each CPU feature that numpy detects, by the old and new names of the features. The OpenBLAS
that is bundled with faiss does not know CPUs newer than itself and falls back to a kernel of 2004, with which building an
IVF-PQ index takes nearly twice the time."""


class _LazyFaiss:
    """Stands for the faiss module, and caches each attribute that was used."""

    def __getattr__(self, name: str) -> Any:
        with _openblas_coretype():
            import faiss as library
        found = getattr(library, name)
        setattr(self, name, found)
        return found


def faiss_is_loaded() -> bool:
    """Whether this process has imported faiss."""
    return "faiss" in sys.modules


@contextlib.contextmanager
def _openblas_coretype() -> Iterator[None]:
    """Set OPENBLAS_CORETYPE while OpenBLAS is loaded, which reads it once; a value set by the user stays."""
    features = set(np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", ()))
    kernel = next((kernel for feature, kernel in OPENBLAS_KERNELS if feature in features), None)
    if kernel is None or CORETYPE_VARIABLE in os.environ:
        yield
        return
    os.environ[CORETYPE_VARIABLE] = kernel
    try:
        yield
    finally:
        os.environ.pop(CORETYPE_VARIABLE, None)


faiss: Final[Any] = _LazyFaiss()
