"""Splits a section that is too long for one chunk into parts of about the same length.

It cuts between blocks, list items and table rows, where the vocabulary changes, and never inside code that fits into
a chunk. Dynamic programming finds the combination of cuts with the lowest cost.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sennit.ingest.markdown import Outline
from sennit.ingest.pages.cut_points import CutPoint, Head, find_cut_points
from sennit.ingest.pages.page import PageOptions

SPACING_DIVISOR: Final = 8
"""Of cut points that are nearer to each other than the target length divided by this, only the cheapest is kept."""


class Piece(NamedTuple):
    """A part of a section: its text, its first and last line in the outline, and its number of repeated lines."""

    text: str
    first: int
    last: int
    repeated_lines: int


def split_section(outline: Outline, first: int, last: int, options: PageOptions) -> Iterator[Piece]:
    """Yield the parts of a section, in order. `last` is the line after the section."""
    source = outline.lines[first:last]
    starts = [0]
    for text in source:
        starts.append(starts[-1] + len(text) + 1)
    whole = "\n".join(source)
    points, heads = find_cut_points(outline, first, last, starts, options)
    points = _thin_out(points, options.target_chars // SPACING_DIVISOR)
    at = 0
    for end in choose_cuts(_add_forced(whole, points, options.max_chars), options):
        piece = _make_piece(whole, starts, first, heads, at, end)
        if piece is not None:
            yield piece
        at = end


def choose_cuts(points: Sequence[CutPoint], options: PageOptions) -> list[int]:
    """Return the offsets of the cheapest combination of cuts; the last one is the end of the section.

    A part costs the square of its relative difference from the target length.
    """
    max_chars, min_chars = options.max_chars, options.min_chars
    scale = 1.0 / options.target_chars
    offsets = [0, *(point.offset for point in points)]
    scaled = [offset * scale for offset in offsets]
    totals = [0.0]
    before = [0]
    low = long_enough = 0
    for here in range(1, len(offsets)):
        end = offsets[here]
        while end - offsets[low] > max_chars and low < here - 1:
            low += 1
        while long_enough < here and end - offsets[long_enough] >= min_chars:
            long_enough += 1
        # A part shorter than the minimum is allowed only if there is no other.
        stop = long_enough if long_enough > low else here
        ideal = scaled[here] - 1.0
        costs = [
            (off := ideal - start) * off + total
            for start, total in zip(scaled[low:stop], totals[low:stop], strict=True)
        ]
        best = min(costs)
        before.append(low + costs.index(best))
        totals.append(best + points[here - 1].cost)
    chosen: list[int] = []
    here = len(offsets) - 1
    while here > 0:
        chosen.append(offsets[here])
        here = before[here]
    return chosen[::-1]


def _thin_out(points: Sequence[CutPoint], spacing: int) -> list[CutPoint]:
    """Keep only the cheapest of cut points that are nearer to each other than `spacing`."""
    kept: list[CutPoint] = []
    since = -spacing
    for point in points:
        if point.offset - since >= spacing:
            kept.append(point)
            since = point.offset
        elif point.cost < kept[-1].cost:
            kept[-1] = point
    return kept


def _add_forced(whole: str, points: Sequence[CutPoint], max_chars: int) -> list[CutPoint]:
    """Add the end, and cut points at word ends where two points are farther apart than a chunk is long."""
    out: list[CutPoint] = []
    at = 0
    for point in (*points, CutPoint(len(whole), 0.0)):
        while point.offset - at > max_chars:
            at = _word_end(whole, at + max_chars // 2, at + max_chars)
            out.append(CutPoint(at, 0.0))
        if point.offset > at:
            out.append(point)
            at = point.offset
    return out


def _word_end(text: str, low: int, high: int) -> int:
    for mark in ("\n", " ", "\t", ",", ";", ">", "}"):
        found = text.rfind(mark, low, high)
        if found >= 0:
            return found + 1
    return high


def _make_piece(
    whole: str, starts: Sequence[int], first: int, heads: Sequence[Head], at: int, end: int
) -> Piece | None:
    text = whole[at:end].rstrip()
    skipped = len(text) - len(text.lstrip())
    if skipped == len(text):
        return None
    row = bisect_right(starts, at + skipped) - 1
    # Blank lines and the spaces between two sentences are removed; the indent of a line stays.
    begin = starts[row] if starts[row] >= at else at + skipped
    text = text[begin - at :]
    last = bisect_right(starts, begin + len(text) - 1) - 1
    above = bisect_right(heads, row, key=lambda head: head.first) - 1
    if above < 0 or row > heads[above].last:
        return Piece(text, first + row, first + last, 0)
    repeated_lines = heads[above].lines
    return Piece("\n".join((*repeated_lines, text)), first + row, first + last, len(repeated_lines))
