"""Arithmetic that every embedder shares: cutting vectors to a length and making them unit vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from sennit.errors import SettingsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sennit.embedding.base import Vectors


def normalised(rows: NDArray[np.float32] | NDArray[np.float64]) -> Vectors:
    """Each row divided by its length; a zero row stays zero. A row's result does not depend on the others."""
    lengths = np.sqrt(np.add.reduce(rows * rows, axis=1))
    lengths[lengths == 0] = 1
    return np.asarray(rows / lengths[:, None], dtype=np.float32)


def unit(vector: Vectors) -> Vectors:
    """The same of one vector, to the last bit, in half the steps."""
    length = np.sqrt(np.add.reduce(vector * vector))
    return vector / length if length else vector


def kept_dimensions(wanted: int | None, own: int, model: str) -> int:
    """How many of a model's `own` dimensions to keep; more than it has is an error."""
    if wanted is None:
        return own
    if wanted > own:
        raise SettingsError(
            f"embedding.dimensions: {wanted} is more than the {own} dimensions of {model}; "
            f"leave it out, or set it to {own} or less.",
            key="embedding.dimensions",
        )
    return wanted


def prefix_mark(document_prefix: str) -> str:
    """The part of a fingerprint that tells documents embedded with a prefix from those without."""
    if not document_prefix:
        return ""
    return ":prefix-" + xxhash.xxh3_64(document_prefix.encode("utf-8", "replace")).hexdigest()
