"""Cutting text into passages on natural boundaries, with exact line numbers.

A passage is a run of whole lines, cut where the text itself pauses: before a heading, at a blank line, at the
end of a sentence, where code comes back to the margin. Only a line longer than a passage is cut inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

VERSION: Final = 1
"""Raised when the same text would be cut differently: files are then read again."""


@dataclass(frozen=True, slots=True)
class Measure:
    """How long passages are, in characters and lines."""

    target: int
    most: int
    """No passage is longer; between target and most it may run on to a better place to end."""
    least: int
    """Below this a passage ends for nothing but a heading."""
    most_lines: int
    overlap: int
    """Characters of whole lines that a passage may repeat from the one before, at most two lines."""


PROSE: Final = Measure(target=1200, most=2400, least=400, most_lines=200, overlap=200)
CODE: Final = Measure(target=1600, most=3200, least=400, most_lines=60, overlap=120)

SECTION_LEAST: Final = 200
"""A section shorter than this shares a passage with the next one."""

OVERLAP_LINES: Final = 2

HEADING, TOP, BLANK, SENTENCE, LINE, GLUED = 5.0, 4.0, 3.0, 2.0, 1.0, 0.0
"""How good a place to cut is, before a line."""


@dataclass(slots=True)
class Document:
    """Lines of text with what is known of their shape."""

    lines: Sequence[str]
    code: bool = False
    headings: dict[int, tuple[int, str]] = field(default_factory=dict)
    """By index of a line: level from 1, and text."""
    glued: set[int] = field(default_factory=set)
    """Lines that belong to the one before: the inside of a fence."""
    verbatim: list[tuple[int, int]] = field(default_factory=list)
    """The <pre> elements of a page: first line and the line after the last."""
    numbers: Sequence[int] | None = None
    """The number of each line in the file, when that is not its place in `lines`; ascending."""
    page: int | None = None
    """The page it is, when it has no lines in a file."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: its text, its first and last line (from 1, inclusive), and the headings it stands under."""

    text: str
    first: int
    last: int
    title: str = ""
    page: int | None = None


def split_lines(text: str) -> list[str]:
    """The lines as an editor and grep number them: ended by \\n or \\r\\n, or by \\r where there is no \\n."""
    if "\n" not in text:
        lines = text.split("\r")
    elif "\r" in text:
        lines = [line.removesuffix("\r") for line in text.split("\n")]
    else:
        lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def chunks(document: Document) -> Iterator[Chunk]:
    """The passages of a document, in order; every line that is not blank is in at least one."""
    measure = CODE if document.code else PROSE
    lines = document.lines
    strengths = _strengths(document)
    titles = _Titles(document.headings)
    start = 0
    sizes = [0, *accumulate(len(line) + 1 for line in lines)]
    while start < len(lines):
        if not lines[start] or lines[start].isspace():
            start += 1
            continue
        if len(lines[start]) > measure.most:
            yield from _pieces(document, start, measure, titles.at(start))
            start += 1
            continue
        end = _end(strengths, sizes, start, measure)
        begin = _with_overlap(document, strengths, start, measure, end, sizes)
        yield _whole(document, begin, end, titles.at(_content(document, start, end)))
        start = end


def _end(strengths: Sequence[float], sizes: Sequence[int], start: int, measure: Measure) -> int:
    """The line before which the passage that begins at `start` ends."""
    base = sizes[start]
    count = len(strengths)
    # A short rest is taken in rather than left as a passage of its own.
    room = 5 / 4 if sizes[count] - base <= measure.target * 5 // 4 else 1
    best, best_strength = 0, GLUED
    for at in range(start + 1, count):
        size = sizes[at] - base
        strength = strengths[at]
        if strength == HEADING and size >= SECTION_LEAST:
            return at
        line_size = sizes[at + 1] - sizes[at]
        if line_size > measure.most and size <= measure.target:
            return at
        if size + line_size > measure.most or at - start >= measure.most_lines * room:
            return best or at
        if size > measure.target * room:
            if best:
                return best
            if strength > GLUED:
                return at
        elif size >= measure.least and strength >= best_strength and strength > GLUED:
            best, best_strength = at, strength
    return count


def _with_overlap(
    document: Document,
    strengths: Sequence[float],
    start: int,
    measure: Measure,
    end: int,
    sizes: Sequence[int],
) -> int:
    """Where the passage begins when it repeats the last lines of the one before."""
    strength = strengths[start]
    if start == 0 or strength == HEADING or (document.code and strength >= BLANK):
        return start
    begin = start
    taken = 0
    while begin > 0 and taken < OVERLAP_LINES:
        above = document.lines[begin - 1]
        blank = not above or above.isspace()
        if sizes[start] - sizes[begin - 1] > measure.overlap or sizes[end] - sizes[begin - 1] > measure.most:
            break
        if strengths[begin] == HEADING or (blank and taken):
            break
        begin -= 1
        taken += not blank
    while begin < start and not document.lines[begin].strip():
        begin += 1
    return begin


def _content(document: Document, start: int, end: int) -> int:
    """The first line of a passage that is more than a heading: its headings are the passage's title."""
    for index in range(start, end):
        if index not in document.headings and index not in document.glued and document.lines[index].strip():
            return index
    return start


def _whole(document: Document, begin: int, end: int, title: str) -> Chunk:
    lines = document.lines
    while end > begin + 1 and not lines[end - 1].strip():
        end -= 1
    text = "\n".join(lines[begin:end])
    numbers = document.numbers
    first, last = (begin + 1, end) if numbers is None else (numbers[begin], numbers[end - 1])
    return Chunk(text, first, last, title, document.page)


_SENTENCE_END: Final = re.compile(r"[.!?。！？…][\"')\]»”’]?(?:\s+|(?<=[。！？]))")


def _pieces(document: Document, index: int, measure: Measure, title: str) -> Iterator[Chunk]:
    """A line longer than a passage, in parts of about the same length that end with a sentence or a word."""
    line = document.lines[index]
    number = index + 1 if document.numbers is None else document.numbers[index]
    at = 0
    while at < len(line):
        rest = len(line) - at
        if rest <= measure.target * 3 // 2:
            stop = len(line)
        else:
            stop = _cut(line, at + measure.target // 2, at + measure.target)
        text = line[at:stop]
        if not text.isspace():
            yield Chunk(text, number, number, title, document.page)
        at = stop


def _cut(line: str, low: int, high: int) -> int:
    """The best place between low and high to cut a line: after a sentence, else after a word, else anywhere."""
    ends = [match.end() for match in _SENTENCE_END.finditer(line, low, high)]
    if ends:
        return ends[-1]
    space = max(line.rfind(" ", low, high), line.rfind("\t", low, high))
    if space < 0:
        space = max(line.rfind(mark, low, high) for mark in ",;>}")
    return space + 1 if space >= 0 else high


_ENDS_SENTENCE: Final = tuple(".!?:;。！？…")
_CLOSERS: Final = (")", "]", "}", "else", "elif", "except", "finally", "catch", "end", "*/", "'''", '"""')


def _strengths(document: Document) -> list[float]:
    """How good a place to cut there is before each line."""
    lines = document.lines
    out = [LINE] * len(lines)
    before_blank = True
    indent_before = 0
    for index, line in enumerate(lines):
        bare = line.lstrip()
        if not bare:
            # Never before a blank line: it would begin the next passage.
            out[index] = GLUED
            before_blank = True
            continue
        if document.code:
            indent = len(line) - len(bare)
            closing = bare.startswith(_CLOSERS)
            if before_blank:
                out[index] = TOP if indent == 0 else BLANK - min(indent, 40) / 50
            elif indent < indent_before and not closing:
                out[index] = SENTENCE - min(indent, 40) / 50
            elif closing:
                out[index] = LINE / 2
            indent_before = indent
        elif before_blank:
            out[index] = BLANK
        elif lines[index - 1].endswith(_ENDS_SENTENCE):
            out[index] = SENTENCE
        before_blank = False
    for index in document.glued:
        out[index] = GLUED
    for index in document.headings:
        out[index] = HEADING
    return out


class _Titles:
    """The path of headings above a line; asked for ascending lines."""

    def __init__(self, headings: dict[int, tuple[int, str]]) -> None:
        self._ahead = sorted(headings.items(), reverse=True)
        self._path: list[tuple[int, str]] = []

    def at(self, index: int) -> str:
        while self._ahead and self._ahead[-1][0] <= index:
            _, (level, text) = self._ahead.pop()
            while self._path and self._path[-1][0] >= level:
                self._path.pop()
            self._path.append((level, text))
        return " > ".join(text for _, text in self._path if text)
