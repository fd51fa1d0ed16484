"""faiss, imported when it is first used: who writes a record needs none of it, and it takes a fifth of a second."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

CORE: Final = "OPENBLAS_CORETYPE"
KERNELS: Final = (
    ("X86_V4", "SkylakeX"),
    ("AVX512_SKX", "SkylakeX"),
    ("X86_V3", "Haswell"),
    ("AVX2", "Haswell"),
)
"""By what numpy finds in a processor, old and new names, what faiss's OpenBLAS may use there. Of processors that are newer
than itself it knows nothing, and treats them as one of 2004: codes then take nearly twice the time to make."""


class _Library:
    """Stands for the library; what was used of it once is its own."""

    def __getattr__(self, name: str) -> Any:
        with _told_the_processor():
            import faiss as library
        found = getattr(library, name)
        setattr(self, name, found)
        return found


@contextlib.contextmanager
def _told_the_processor() -> Iterator[None]:
    """OpenBLAS looks at its environment when it is loaded; whoever has set it himself knows better."""
    known = set(np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", ()))
    best = next((kernel for feature, kernel in KERNELS if feature in known), None)
    if best is None or CORE in os.environ:
        yield
        return
    os.environ[CORE] = best
    try:
        yield
    finally:
        os.environ.pop(CORE, None)


faiss: Final[Any] = _Library()
