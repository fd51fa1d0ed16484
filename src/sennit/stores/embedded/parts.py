"""Segments and tail of the keyword index, in the one form that scoring takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sennit.stores.embedded.keyword import Kept, KeywordSegment, KeywordTail, Postings
from sennit.stores.embedded.layer import Layer, Layers
from sennit.stores.embedded.selection import Mask, Rows


@dataclass(frozen=True, slots=True)
class Part:
    """A segment or the tail, in the form that scoring takes."""

    rows: Rows
    lengths: NDArray[np.float32]
    """[field, position]"""
    live: Mask | None
    count: int
    sums: NDArray[np.float64]
    """Of the lengths, per field, of the dead as well."""
    postings: Callable[[int], Postings | None]
    """Where a term occurs, or None."""
    id_at: Callable[[int], bytes]
    """The id of the record at a position."""
    kept: Kept

    def totals(self) -> tuple[int, NDArray[np.float64]]:
        """How many records live, and the sums of their lengths."""
        if self.live is None:
            return self.count, self.sums
        dead = np.flatnonzero(~self.live)
        # Lengths are whole numbers: what is taken away leaves the same sum as what was never added.
        return self.count - len(dead), self.sums - self.lengths[:, dead].sum(axis=1, dtype=np.float64)

    def weighted_lengths(self, weights: tuple[float, ...]) -> NDArray[np.float32]:
        """The length of each document with its fields weighted; kept, because queries share the weights."""
        found = self.kept.lengths.get(weights)
        if found is None:
            found = self.kept.lengths[weights] = weighted(tuple(self.lengths), weights)
        return found


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
    parts = [_whole(layer) for layer in layers.layers]
    if layers.tail_count:
        tail, count = layers.tail, layers.tail_count
        parts.append(
            Part(
                layers.tail_rows,
                tail.lengths.first(count).T,
                layers.tail_live,
                count,
                tail.sums.first(count)[-1],
                partial(tail.postings, count=count),
                tail.ids.__getitem__,
                Kept(),
            )
        )
    return parts


def _whole(layer: Layer[KeywordSegment]) -> Part:
    segment = layer.segment
    return Part(
        segment.rows,
        segment.lengths,
        layer.live,
        len(segment.rows),
        segment.sums,
        segment.postings,
        segment.id_at,
        segment.kept,
    )
