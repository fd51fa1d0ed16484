"""Segments and tail of the keyword index, in the one form that scoring takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from weft.stores.embedded.keyword import Kept, KeywordSegment, KeywordTail, Postings
from weft.stores.embedded.layer import Layers
from weft.stores.embedded.selection import Mask, Rows


@dataclass(frozen=True, slots=True)
class Part:
    """A segment or the tail, in the form that scoring takes."""

    rows: Rows
    lengths: NDArray[np.float32]
    """[field, position]"""
    live: Mask | None
    source: KeywordSegment | KeywordTail
    count: int
    kept: Kept

    def postings(self, term: int) -> Postings | None:
        if isinstance(self.source, KeywordTail):
            return self.source.postings(term, self.count)
        return self.source.postings(term)

    def totals(self) -> tuple[int, NDArray[np.float64]]:
        """How many records live, and the sums of their lengths."""
        if isinstance(self.source, KeywordTail):
            sums = self.source.sums.first(self.count)[-1]
        else:
            sums = self.source.sums
        if self.live is None:
            return self.count, sums
        dead = np.flatnonzero(~self.live)
        # Lengths are whole numbers: what is taken away leaves the same sum as what was never added.
        return self.count - len(dead), sums - self.lengths[:, dead].sum(axis=1, dtype=np.float64)

    def weighted_lengths(self, weights: tuple[float, ...]) -> NDArray[np.float32]:
        """The length of each document with its fields weighted; kept, because queries share the weights."""
        found = self.kept.lengths.get(weights)
        if found is None:
            found = self.kept.lengths[weights] = weighted(tuple(self.lengths), weights)
        return found

    def id_at(self, position: int) -> bytes:
        if isinstance(self.source, KeywordTail):
            return self.source.ids[position]
        return self.source.id_at(position)


def weighted(per_field: Sequence[NDArray[Any] | None], weights: tuple[float, ...]) -> NDArray[np.float32]:
    """The weighted sum over the fields; a new array."""
    out: NDArray[np.float32] | None = None
    for weight, values in zip(weights, per_field, strict=True):
        if values is None or not weight:
            continue
        term = values.astype(np.float32)
        if weight != 1.0:
            term *= np.float32(weight)
        if out is None:
            out = term
        else:
            out += term
    if out is None:
        size = next(len(values) for values in per_field if values is not None)
        return np.zeros(size, np.float32)
    return out


def parts_of(layers: Layers[KeywordSegment, KeywordTail]) -> list[Part]:
    """Everything there is to search, oldest first."""
    parts = []
    for layer in layers.layers:
        segment = layer.segment
        parts.append(
            Part(segment.rows, segment.lengths, layer.live, segment, len(segment.rows), segment.kept)
        )
    if layers.tail_count:
        tail, count = layers.tail, layers.tail_count
        parts.append(
            Part(layers.tail_rows, tail.lengths.first(count).T, layers.tail_live, tail, count, Kept())
        )
    return parts
