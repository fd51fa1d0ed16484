"""The points of a collection: one for each record, and the marker that says how far the collection is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from qdrant_client import models

from sennit.stores.contract import Document, ScoredKeys
from sennit.stores.servers.qdrant.payload import payload_of
from sennit.stores.servers.qdrant.term_weights import count_record

KEYWORD: Final = "keyword"
VECTOR: Final = "vector"
"""The names of the roles, and of the vectors of a point."""

MARKER: Final = 0
"""The number of the point that says how far the collection is. No record has this key, because changes count from 1."""

NUMBERS_PER_REQUEST: Final = 400_000
"""About how many numbers one write holds; Qdrant refuses a request of more than 32 MB."""


@dataclass(frozen=True, slots=True)
class Marker:
    """What a collection says of itself."""

    applied: int
    average: float
    """The average length of a document, which the sparse vectors are made with."""


NO_MARKER: Final = Marker(0, 0.0)


def read_marker(payloads: Sequence[Mapping[str, Any] | None]) -> Marker:
    """The marker in the payloads of the points that were read; without one nothing was applied."""
    if not payloads or not payloads[0]:
        return NO_MARKER
    return Marker(int(payloads[0]["applied"]), float(payloads[0]["average"]))


def make_marker(marker: Marker) -> models.PointStruct:
    """The point of a marker."""
    payload = {"applied": marker.applied, "average": marker.average}
    return models.PointStruct(id=MARKER, vector={}, payload=payload)


def make_point(
    document: Document, average: float, *, has_vector: bool, has_words: bool
) -> models.PointStruct:
    """The point of a record. `average` is the average length of a document, for the weights of its terms."""
    vectors: dict[str, Any] = {}
    if has_vector and document.vector.any():
        vectors[VECTOR] = document.vector.tolist()
    if has_words:
        counted = count_record(document.record)
        if counted.frequencies:
            vectors[KEYWORD] = models.SparseVector(
                indices=list(counted.frequencies),
                values=[counted.weight(at, average) for at in counted.frequencies],
            )
    return models.PointStruct(id=document.key, vector=vectors, payload=payload_of(document.record))


def scored_keys(points: Sequence[Mapping[str, Any]]) -> ScoredKeys:
    return ScoredKeys(
        np.array([point["id"] for point in points], np.int64),
        np.array([point["score"] for point in points], np.float64),
    )


def batches(points: Iterable[models.PointStruct]) -> Iterator[list[models.PointStruct]]:
    """Points in requests of a size that the server takes."""
    batch: list[models.PointStruct] = []
    size = 0
    for point in points:
        batch.append(point)
        size += _numbers_in(point)
        if size >= NUMBERS_PER_REQUEST:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _numbers_in(point: models.PointStruct) -> int:
    """About how large a point is, as so many numbers."""
    vectors: dict[str, Any] = point.vector if isinstance(point.vector, dict) else {}
    numbers = sum(
        2 * len(one.indices) if isinstance(one, models.SparseVector) else len(one) for one in vectors.values()
    )
    return numbers + len(str(point.payload)) // 8
