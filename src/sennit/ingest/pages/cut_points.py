"""The offsets at which a section may be cut, and the cost of each."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, compress
from math import sqrt
from typing import Final, NamedTuple, TypeVar

from sennit.ingest.markdown import Block, Outline
from sennit.ingest.pages.page import PageOptions

T = TypeVar("T", bound=tuple[object, ...])

HEADING, BLOCK, ITEM, ROW, INNER, LED_IN, SENTENCE, LINE = 0.0, 0.1, 0.15, 0.2, 0.3, 0.5, 0.2, 0.6
"""The cost of a cut before a heading, a block, a list item, a table row, a block inside an item or an admonition, a
block that a paragraph introduces, a sentence, any other line. For comparison: a part of half or one and a half times
the target length costs .25."""

SEALED: Final = 9.0
"""The cost of a cut that is not allowed."""

COHESION: Final = 3.0
"""The weight of cohesion: a cut between two sentences costs this times the share of words that occur on both sides. On
the even questions of chroma_chunking (with the sizes varied by a few percent), 0 covers .812 of the spans with 649 words, 1 .850 with 678, 2 .884 with 705, 3
.889 with 735; plain pieces of 800 characters .871 with 786."""

STEM_CHARS: Final = 4
"""Words are compared by this many letters. Shorter words say little about the topic."""

WINDOW_SENTENCES: Final = 3
"""A word that repeats within this many sentences links them."""

LONG_LINE_CHARS: Final = 160
"""A longer line may also be cut between two sentences."""

_SENTENCE_END: Final = re.compile(
    r"[.!?。！？…][\"')\]*_»”’]*(?:[ \t]+|(?<=[。！？])|(?=\\n))(?=\S)|\\n(?=\S)"
)
_LINE_ENDS: Final = tuple(".!?:;。！？…")
_SEALED_KINDS: Final = frozenset({"code", "html", "jsx"})
_LED_KINDS: Final = frozenset({"fence", "code", "list", "table", "jsx", "html"})


class CutPoint(NamedTuple):
    """An offset in the section's text where it may be cut, and the cost of the cut."""

    offset: int
    cost: float


class Head(NamedTuple):
    """Lines that a continuation repeats: the head of a table, the opening line of a fence."""

    first: int
    """A part that starts on a row from `first` to `last` repeats the lines."""
    last: int
    lines: tuple[str, ...]


def find_cut_points(
    outline: Outline, first: int, last: int, starts: Sequence[int], options: PageOptions
) -> tuple[list[CutPoint], list[Head]]:
    """Return the cut points in order, and the heads that parts inside a table or a fence repeat.

    `starts` has the offset of each line of the section in its text.
    """
    source = outline.lines[first:last]
    costs, prose, heads = _line_costs(outline, first, last, options)
    found: list[CutPoint] = []
    in_prose: list[int] = []
    for row, text in enumerate(source):
        if row and costs[row] < SEALED:
            if prose[row]:
                in_prose.append(len(found))
            found.append(CutPoint(starts[row], costs[row]))
        if prose[row] and len(text) > LONG_LINE_CHARS:
            for end in _SENTENCE_END.finditer(text):
                in_prose.append(len(found))
                found.append(CutPoint(starts[row] + end.end(), SENTENCE))
    if in_prose:
        _add_cohesion("\n".join(source), found, in_prose)
    return found, heads


def _add_cohesion(whole: str, found: list[CutPoint], in_prose: Sequence[int]) -> None:
    """Raise the cost of cut points between sentences that share words.

    A word that repeats within a few sentences raises the cost of every cut between its two occurrences.
    """
    text = whole.lower()
    bounds = [0, *(point.offset for point in found), len(whole)]
    near = bytearray(len(bounds) - 1)
    for at in in_prose:
        low, high = max(0, at + 1 - WINDOW_SENTENCES), min(len(near), at + 1 + WINDOW_SENTENCES)
        near[low:high] = b"\x01" * (high - low)
    changes = [0] * len(bounds)
    sizes = [0] * len(near)
    latest: dict[str, int] = {}
    for unit in compress(range(len(near)), near):
        # Words are equal if their first letters are: "retry" and "retries".
        words = {
            word[:STEM_CHARS]
            for word in text[bounds[unit] : bounds[unit + 1]].split()
            if len(word) >= STEM_CHARS
        }
        sizes[unit] = len(words)
        for word in words:
            before = latest.get(word, -WINDOW_SENTENCES - 1)
            if unit - before <= WINDOW_SENTENCES:
                changes[before + 1] += 1
                changes[unit + 1] -= 1
        latest.update(dict.fromkeys(words, unit))
    shared = list(accumulate(changes))
    totals = [0, *accumulate(sizes)]
    last = len(sizes)
    for at in in_prose:
        here = at + 1
        if shared[here]:
            left = totals[here] - totals[max(0, here - WINDOW_SENTENCES)]
            right = totals[min(last, here + WINDOW_SENTENCES)] - totals[here]
            share = shared[here] / sqrt(left * right)
            found[at] = CutPoint(found[at].offset, found[at].cost + COHESION * share)


def _line_costs(
    outline: Outline, first: int, last: int, options: PageOptions
) -> tuple[list[float], list[bool], list[Head]]:
    """Return the cost of a cut before each line, which lines are prose, and the heads that continuations repeat."""
    source = outline.lines[first:last]
    costs = _plain_costs(source)
    prose = [False] * len(source)
    heads: list[Head] = []
    sealed: list[tuple[int, int]] = []
    before: Block | None = None
    for block in _between(outline.blocks, first, last):
        begin, end = block.first - first, min(block.last, last) - 1 - first
        costs[begin] = _block_cost(before, block, outline)
        before = block
        if block.kind == "paragraph":
            prose[begin : end + 1] = [True] * (end + 1 - begin)
        elif block.kind == "table":
            for row in range(begin + 1, end + 1):
                costs[row] = ROW if row > begin + 2 else SEALED
            heads.append(Head(begin + 2, end, tuple(source[begin : begin + 2])))
        elif block.kind == "admonition":
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
    for code in _between(outline.code, first, last):
        sealed.append((code.first - first, min(code.last, last) - 1 - first))
    for begin, end in sealed:
        _seal(costs, heads, source, begin, end, options)
    heads.sort()
    return costs, prose, heads


def _plain_costs(source: Sequence[str]) -> list[float]:
    """Return the costs that do not depend on the kind of block."""
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
    """Return the elements that start on these lines. Elements of an outline are sorted by their first line."""
    return found[bisect_left(found, (first,)) : bisect_left(found, (last,))]


def _block_cost(before: Block | None, block: Block, outline: Outline) -> float:
    """Return the cost of a cut before a block."""
    if before is not None and before.kind == "heading":
        # A chunk must not end with a heading.
        return SEALED
    if block.depth:
        return INNER
    if block.kind == "heading":
        return HEADING
    if before is not None and before.kind == "paragraph" and block.kind in _LED_KINDS:
        # A paragraph that ends with a colon introduces the next block.
        return LED_IN if outline.lines[before.last - 1].rstrip().endswith((":", "：")) else BLOCK
    return BLOCK


def _seal(
    costs: list[float], heads: list[Head], source: Sequence[str], begin: int, end: int, options: PageOptions
) -> None:
    """Forbid cuts inside these lines. If they are longer than a chunk, allow cuts, preferably at blank lines."""
    fits = sum(map(len, source[begin : end + 1])) + end - begin <= options.max_chars
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
