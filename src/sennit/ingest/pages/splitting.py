"""Cutting a section that is too long for one chunk into parts of about the same length.

Where the structure pauses (between blocks, items, rows), where the vocabulary changes, and never inside code that
fits into a chunk. All ways of cutting are compared, and the cheapest is taken.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from sennit.ingest.pages.model import PageOptions
from sennit.ingest.pages.outline import Outline
from sennit.ingest.pages.places import Head, Place, places

SPACING: Final = 8
"""Places to cut are compared when they are at least this part of the target length apart."""


class Piece(NamedTuple):
    """A part of a section: its text, its first and last line (as in the outline), and how many it repeats."""

    text: str
    first: int
    last: int
    carried: int


def pieces(outline: Outline, first: int, last: int, options: PageOptions) -> Iterator[Piece]:
    """The parts of a section, in order; `last` is the line after it."""
    source = outline.lines[first:last]
    starts = [0]
    for text in source:
        starts.append(starts[-1] + len(text) + 1)
    whole = "\n".join(source)
    allowed, heads = places(outline, first, last, starts, options)
    at = 0
    for end in cuts(_with_forced(whole, _thinned(allowed, options.target // SPACING), options.most), options):
        piece = _piece(whole, starts, first, heads, at, end)
        if piece is not None:
            yield piece
        at = end


def cuts(allowed: Sequence[Place], options: PageOptions) -> list[int]:
    """Where to cut: the choice of places, the last included, that costs least in all.

    A part costs the square of what it is longer or shorter than the target, as a share of it.
    """
    most, least = options.most, options.least
    scale = 1.0 / options.target
    offsets = [0, *(place.offset for place in allowed)]
    scaled = [offset * scale for offset in offsets]
    totals = [0.0]
    before = [0]
    low = enough = 0
    for here in range(1, len(offsets)):
        end = offsets[here]
        while end - offsets[low] > most and low < here - 1:
            low += 1
        while enough < here and end - offsets[enough] >= least:
            enough += 1
        # A part that is too short is made only where there is no other way.
        stop = enough if enough > low else here
        wanted = scaled[here] - 1.0
        costs = [
            (off := wanted - start) * off + total
            for start, total in zip(scaled[low:stop], totals[low:stop], strict=True)
        ]
        best = min(costs)
        before.append(low + costs.index(best))
        totals.append(best + allowed[here - 1].cost)
    chosen: list[int] = []
    here = len(offsets) - 1
    while here > 0:
        chosen.append(offsets[here])
        here = before[here]
    return chosen[::-1]


def _thinned(allowed: Sequence[Place], apart: int) -> list[Place]:
    """Of places that are nearer to each other than this, the cheapest: the length of a part can wait so far."""
    out: list[Place] = []
    since = -apart
    for place in allowed:
        if place.offset - since >= apart:
            out.append(place)
            since = place.offset
        elif place.cost < out[-1].cost:
            out[-1] = place
    return out


def _with_forced(whole: str, allowed: Sequence[Place], most: int) -> list[Place]:
    """The places, the end, and one at a word's end wherever two are further apart than a chunk is long."""
    out: list[Place] = []
    at = 0
    for place in (*allowed, Place(len(whole), 0.0)):
        while place.offset - at > most:
            at = _word_end(whole, at + most // 2, at + most)
            out.append(Place(at, 0.0))
        if place.offset > at:
            out.append(place)
            at = place.offset
    return out


def _word_end(text: str, low: int, high: int) -> int:
    for mark in ("\n", " ", "\t", ",", ";", ">", "}"):
        found = text.rfind(mark, low, high)
        if found >= 0:
            return found + 1
    return high


def _piece(
    whole: str, starts: Sequence[int], first: int, heads: Sequence[Head], at: int, end: int
) -> Piece | None:
    text = whole[at:end].rstrip()
    skipped = len(text) - len(text.lstrip())
    if skipped == len(text):
        return None
    row = bisect_right(starts, at + skipped) - 1
    # Blank lines go, and so do the spaces between two sentences; the indent of a line stays.
    begin = starts[row] if starts[row] >= at else at + skipped
    text = text[begin - at :]
    last = bisect_right(starts, begin + len(text) - 1) - 1
    above = bisect_right(heads, row, key=lambda head: head.first) - 1
    if above < 0 or row > heads[above].last:
        return Piece(text, first + row, first + last, 0)
    carried = heads[above].lines
    return Piece("\n".join((*carried, text)), first + row, first + last, len(carried))
