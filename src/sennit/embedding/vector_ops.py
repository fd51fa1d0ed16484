"""Helpers that every embedder uses: truncating and normalising vectors, and parts of fingerprints."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import xxhash

from sennit.errors import SettingsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from sennit.embedding.base import Vectors


def normalise_rows(rows: NDArray[np.float32] | NDArray[np.float64]) -> Vectors:
    """Divide each row by its length; a zero row stays zero. The result of a row does not depend on the others."""
    lengths = np.sqrt(np.add.reduce(rows * rows, axis=1))
    lengths[lengths == 0] = 1
    return np.asarray(rows / lengths[:, None], dtype=np.float32)


def normalise(vector: Vectors) -> Vectors:
    """Divide one vector by its length: bit for bit what `normalise_rows` returns, in half the steps."""
    length = np.sqrt(np.add.reduce(vector * vector))
    return vector / length if length else vector


def resolve_dimensions(configured: int | None, native: int, model: str) -> int:
    """Return how many of a model's native dimensions to keep; more than it has is an error."""
    if configured is None:
        return native
    if configured > native:
        raise SettingsError(
            f"embedding.dimensions: {configured} is more than the {native} dimensions of {model}; "
            f"remove the setting, or set it to {native} or less.",
            key="embedding.dimensions",
        )
    return configured


def prefix_fingerprint(document_prefix: str) -> str:
    """Return the part of a fingerprint that identifies the document prefix; empty without a prefix."""
    if not document_prefix:
        return ""
    return ":prefix-" + xxhash.xxh3_64(document_prefix.encode("utf-8", "replace")).hexdigest()
