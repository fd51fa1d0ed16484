"""A uniform reader over the segments and the buffer of the keyword index, for scoring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sennit.stores.embedded.index_view import IndexView, SegmentView
from sennit.stores.embedded.keyword_index import KeywordBuffer, KeywordSegment, Postings, ScoreCache
from sennit.stores.embedded.selection import Mask, Rows


@dataclass(frozen=True, slots=True)
class SegmentReader:
    """Reads one segment, or the buffer as if it were one."""

    rows: Rows
    lengths: NDArray[np.float32]
    """[field, position]"""
    live: Mask | None
    count: int
    length_sums: NDArray[np.float64]
    """The sum of lengths per field, deleted records included."""
    postings: Callable[[int], Postings | None]
    """The posting list of a term, or None."""
    id_at: Callable[[int], bytes]
    """The id of the record at a position."""
    cache: ScoreCache
    high: int = 0
    """The last change that the segment covers; 0 for the buffer."""

    def live_totals(self) -> tuple[int, NDArray[np.float64]]:
        """The number of live records, and the sums of their lengths per field."""
        if self.live is None:
            return self.count, self.length_sums
        dead = np.flatnonzero(~self.live)
        # Lengths are whole numbers, so subtracting them is exact: the sums equal those of the live records alone.
        return self.count - len(dead), self.length_sums - self.lengths[:, dead].sum(axis=1, dtype=np.float64)

    def weighted_lengths(self, weights: tuple[float, ...]) -> NDArray[np.float32]:
        """The length of each document with weighted fields; cached, because queries share the weights."""
        found = self.cache.lengths.get(weights)
        if found is None:
            found = self.cache.lengths[weights] = weighted_sum(tuple(self.lengths), weights)
        return found


def weighted_sum(per_field: Sequence[NDArray[Any] | None], weights: tuple[float, ...]) -> NDArray[np.float32]:
    """The weighted sum over the fields, as a new array."""
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


def open_readers(view: IndexView[KeywordSegment, KeywordBuffer]) -> list[SegmentReader]:
    """A reader for each segment and for the buffer, oldest first."""
    readers = [_open_segment(segment_view) for segment_view in view.segments]
    if view.buffer_count:
        buffer, count = view.buffer, view.buffer_count
        readers.append(
            SegmentReader(
                view.buffer_rows,
                buffer.lengths.first(count).T,
                view.buffer_live,
                count,
                buffer.length_sums.first(count)[-1],
                partial(buffer.postings, count=count),
                buffer.ids.__getitem__,
                ScoreCache(),
            )
        )
    return readers


def _open_segment(view: SegmentView[KeywordSegment]) -> SegmentReader:
    segment = view.segment
    return SegmentReader(
        segment.rows,
        segment.lengths,
        view.live,
        len(segment.rows),
        segment.length_sums,
        segment.postings,
        segment.id_at,
        segment.cache,
        view.info.high,
    )
