"""Vectors are kept in half precision, and compared in full."""

from __future__ import annotations

import numpy as np

from sennit.stores.embedded.products import full


def test_every_finite_number_is_widened_as_numpy_does_it() -> None:
    """Zeros of both signs and numbers below the least exponent among them."""
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    half = every[np.isfinite(every)].reshape(-1, 2)

    wide = full(half)

    assert wide.dtype == np.float32
    assert wide.tobytes() == half.astype(np.float32).tobytes()
