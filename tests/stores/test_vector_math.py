"""Vectors are stored as 16-bit floats and compared as 32-bit floats."""

from __future__ import annotations

import numpy as np

from sennit.stores.embedded.vector_math import to_float32


def test_to_float32_equals_astype_for_every_finite_number() -> None:
    """Including signed zeros and subnormal numbers."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    half = every[np.isfinite(every)].reshape(-1, 2)

    wide = to_float32(half)

    assert wide.dtype == np.float32
    assert wide.tobytes() == half.astype(np.float32).tobytes()
