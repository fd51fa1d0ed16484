"""Vectors that come with the records: the provider `given`, which computes nothing."""

from __future__ import annotations

from typing import Final

import numpy as np

from sennit.embedding.base import MAX_DIMENSIONS, EmbeddingSpec, Vectors
from sennit.embedding.vector_ops import normalise_rows
from sennit.errors import InvalidInput

GIVEN: Final = "given"


def given_name(dimensions: int) -> str:
    """Return the name of the model that stands for given vectors of this length; it is also its fingerprint."""
    return f"{GIVEN}/{dimensions}"


def is_given(model_name: str) -> bool:
    """Return whether the vectors of a model come with the records."""
    return model_name.startswith(f"{GIVEN}/")


def given_spec(dimensions: int) -> EmbeddingSpec:
    """Return the specification of the model that stands for given vectors of this length."""
    return EmbeddingSpec(provider=GIVEN, dimensions=dimensions)


def check_vector(value: object, what: str) -> Vectors:
    """Return a vector as a unit vector; raise InvalidInput for anything else."""
    try:
        numbers = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidInput(f"{what} must be a list or an array of numbers: {error}") from error
    if numbers.ndim != 1 or not 1 <= len(numbers) <= MAX_DIMENSIONS or isinstance(value, (str, bytes)):
        raise InvalidInput(f"{what} must be a list or an array of 1 to {MAX_DIMENSIONS:,} numbers")
    if not np.isfinite(numbers).all():
        raise InvalidInput(f"{what} has a number that is not finite")
    largest = np.abs(numbers).max()
    if largest == 0:
        raise InvalidInput(f"{what} is zero and has no direction")
    # Divided by the largest number first, so that its length neither overflows nor vanishes.
    unit: Vectors = normalise_rows((numbers / largest)[None])[0]
    return unit
