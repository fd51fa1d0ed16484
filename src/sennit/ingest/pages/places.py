"""Where a section may be cut, and what each place costs."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, compress
from math import sqrt
from typing import Final, NamedTuple, TypeVar

from sennit.ingest.pages.model import PageOptions
from sennit.ingest.pages.outline import Block, Outline

T = TypeVar("T", bound=tuple[object, ...])

HEADING, BLOCK, ITEM, ROW, INNER, LED_IN, SENTENCE, LINE = 0.0, 0.1, 0.15, 0.2, 0.3, 0.5, 0.2, 0.6
"""What a cut costs, before a heading, a block, an item of a list, a row of a table, something inside an item or an
aside, what a paragraph introduces, a sentence, any other line. A part of half or one and a half times the target
length costs .25."""

SEALED: Final = 9.0
"""Nothing is cut there."""

COHESION: Final = 3.0
"""What a cut between two sentences costs beside, times the share of words that go on across it. On the even questions
of chroma_chunking, sizes moved by a few hundredths, 0 covers .812 of the spans with 649 words, 1 .850 with 678, 2 .884
with 705, 3 .889 with 735; plain pieces of 800 characters .871 with 786."""

STEM: Final = 4
"""Letters of a word that are compared; shorter words say little about the subject."""

WINDOW: Final = 3
"""Sentences within which a word that comes again is said of the same thing."""

LONG_LINE: Final = 160
"""Lines longer than this may also be cut between two sentences."""

_SENTENCE_END: Final = re.compile(
    r"[.!?。！？…][\"')\]*_»”’]*(?:[ \t]+|(?<=[。！？])|(?=\\n))(?=\S)|\\n(?=\S)"
)
_LINE_ENDS: Final = tuple(".!?:;。！？…")
_SEALED_KINDS: Final = frozenset({"fence", "code", "html", "jsx"})
_LED_KINDS: Final = frozenset({"fence", "code", "list", "table", "jsx", "html"})


class Place(NamedTuple):
    """An offset in the section's text where it may be cut, and at what cost."""

    offset: int
    cost: float


class Head(NamedTuple):
    """Lines that a continuation repeats: the head of a table, the opening of a fence."""

    first: int
    """The first row whose chunk repeats it, when it begins there; `last` is the last."""
    last: int
    lines: tuple[str, ...]


def places(
    outline: Outline, first: int, last: int, starts: Sequence[int], options: PageOptions
) -> tuple[list[Place], list[Head]]:
    """The places in order, and what parts that begin inside a table or a fence repeat.

    `starts` has the offset of each line of the section in its text.
    """
    source = outline.lines[first:last]
    costs, prose, heads = _costs(outline, first, last, options)
    found: list[Place] = []
    spoken: list[int] = []
    for row, text in enumerate(source):
        if row and costs[row] < SEALED:
            if prose[row]:
                spoken.append(len(found))
            found.append(Place(starts[row], costs[row]))
        if prose[row] and len(text) > LONG_LINE:
            for end in _SENTENCE_END.finditer(text):
                spoken.append(len(found))
                found.append(Place(starts[row] + end.end(), SENTENCE))
    if spoken:
        _add_cohesion("\n".join(source), found, spoken)
    return found, heads


def _add_cohesion(whole: str, found: list[Place], spoken: Sequence[int]) -> None:
    """Make places between sentences dearer where the same words go on.

    A word that comes again within a few sentences holds together all that is between its two places.
    """
    text = whole.lower()
    bounds = [0, *(place.offset for place in found), len(whole)]
    near = bytearray(len(bounds) - 1)
    for at in spoken:
        low, high = max(0, at + 1 - WINDOW), min(len(near), at + 1 + WINDOW)
        near[low:high] = b"\x01" * (high - low)
    changes = [0] * len(bounds)
    sizes = [0] * len(near)
    latest: dict[str, int] = {}
    for unit in compress(range(len(near)), near):
        # The first letters stand for the word: "retry" and "retries" are one.
        words = {word[:STEM] for word in text[bounds[unit] : bounds[unit + 1]].split() if len(word) >= STEM}
        sizes[unit] = len(words)
        for word in words:
            before = latest.get(word, -WINDOW - 1)
            if unit - before <= WINDOW:
                changes[before + 1] += 1
                changes[unit + 1] -= 1
        latest.update(dict.fromkeys(words, unit))
    held = list(accumulate(changes))
    said = [0, *accumulate(sizes)]
    last = len(sizes)
    for at in spoken:
        here = at + 1
        if held[here]:
            left = said[here] - said[max(0, here - WINDOW)]
            right = said[min(last, here + WINDOW)] - said[here]
            same = held[here] / sqrt(left * right)
            found[at] = Place(found[at].offset, found[at].cost + COHESION * same)


def _costs(
    outline: Outline, first: int, last: int, options: PageOptions
) -> tuple[list[float], list[bool], list[Head]]:
    """What a cut before each line costs, which lines are prose, and what continuations repeat."""
    source = outline.lines[first:last]
    costs = _plain_costs(source)
    prose = [False] * len(source)
    heads: list[Head] = []
    sealed: list[tuple[int, int]] = []
    before: Block | None = None
    for block in _between(outline.blocks, first, last):
        begin, end = block.first - first, min(block.last, last) - 1 - first
        costs[begin] = _cost(before, block, outline)
        before = block
        if block.kind == "paragraph":
            prose[begin : end + 1] = [True] * (end + 1 - begin)
        elif block.kind == "table":
            for row in range(begin + 1, end + 1):
                costs[row] = ROW if row > begin + 2 else SEALED
            heads.append(Head(begin + 2, end, tuple(source[begin : begin + 2])))
        elif block.kind == "aside":
            costs[begin + 1 : begin + 2] = [SEALED] * len(costs[begin + 1 : begin + 2])
            if not source[end].strip(" \t:"):
                costs[end] = SEALED
        elif block.kind == "heading":
            costs[begin + 1 : end + 1] = [SEALED] * (end - begin)
        elif block.kind in _SEALED_KINDS:
            sealed.append((begin, end))
    for line, depth in _between(outline.items, first, last):
        if BLOCK < costs[line - first] < SEALED:
            costs[line - first] = min(INNER, ITEM + 0.05 * (depth - 1))
    for opened, closed in _between(outline.code, first, last):
        sealed.append((opened - first, min(closed, last) - 1 - first))
    for begin, end in sealed:
        _seal(costs, heads, source, begin, end, options)
    heads.sort()
    return costs, prose, heads


def _plain_costs(source: Sequence[str]) -> list[float]:
    """What can be said of lines without knowing what blocks they are."""
    costs: list[float] = []
    above = ""
    for text in source:
        bare = text.strip(" \t>")
        if not bare:
            costs.append(SEALED)
        elif not above:
            costs.append(INNER)
        else:
            costs.append(SENTENCE if above.endswith(_LINE_ENDS) else LINE)
        above = bare
    return costs


def _between(found: Sequence[T], first: int, last: int) -> Sequence[T]:
    """What begins on some lines; all that an outline finds is in the order of its first line."""
    return found[bisect_left(found, (first,)) : bisect_left(found, (last,))]


def _cost(before: Block | None, block: Block, outline: Outline) -> float:
    """What a cut before a block costs."""
    if before is not None and before.kind == "heading":
        # A heading is not left alone at the end of a chunk.
        return SEALED
    if block.depth:
        return INNER
    if block.kind == "heading":
        return HEADING
    if before is not None and before.kind == "paragraph" and block.kind in _LED_KINDS:
        # "Such as:" introduces what follows.
        return LED_IN if outline.lines[before.last - 1].rstrip().endswith((":", "：")) else BLOCK
    return BLOCK


def _seal(
    costs: list[float], heads: list[Head], source: Sequence[str], begin: int, end: int, options: PageOptions
) -> None:
    """Nothing is cut inside, unless all of it is longer than a chunk: then at blank lines, else at line ends."""
    fits = sum(map(len, source[begin : end + 1])) + end - begin <= options.most
    for row in range(begin + 1, end + 1):
        if fits or not source[row].strip():
            costs[row] = SEALED
        else:
            costs[row] = LINE if source[row - 1].strip() else INNER
    opening = source[begin].lstrip(" \t>-+*0123456789.)")
    if not fits and opening.startswith(("```", "~~~")):
        costs[begin + 1 : begin + 2] = [SEALED] * len(costs[begin + 1 : begin + 2])
        costs[end] = SEALED
        heads.append(Head(begin + 1, end, (source[begin],)))
