"""Splitting text into chunks on natural boundaries, with exact line numbers.

A chunk is a run of whole lines. It ends before a heading, at a blank line, at the end of a sentence, or where the
indentation of code decreases. Only a line longer than a chunk is split inside.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

VERSION: Final = 1
"""Increase when the same text would be split differently. Files of an older version are indexed again."""


@dataclass(frozen=True, slots=True)
class ChunkLimits:
    """The length of chunks, in characters and lines."""

    target: int
    maximum: int
    """No chunk is longer. A chunk may exceed the target to end at a better boundary."""
    minimum: int
    """A shorter chunk ends only before a heading."""
    max_lines: int
    overlap: int
    """Up to this many characters, in whole lines, are repeated from the chunk before."""


PROSE_LIMITS: Final = ChunkLimits(target=1200, maximum=2400, minimum=400, max_lines=200, overlap=200)
CODE_LIMITS: Final = ChunkLimits(target=1600, maximum=3200, minimum=400, max_lines=60, overlap=120)

MIN_SECTION_CHARACTERS: Final = 200
"""A shorter section shares a chunk with the next one."""

MAX_OVERLAP_LINES: Final = 2

HEADING, TOP_LEVEL, BLANK, SENTENCE, LINE, NO_BREAK = 5.0, 4.0, 3.0, 2.0, 1.0, 0.0
"""The strength of the boundary before a line; a chunk ends at the strongest one."""


@dataclass(slots=True)
class Document:
    """Lines of text with their headings and blocks."""

    lines: Sequence[str]
    code: bool = False
    headings: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Level (from 1) and text of a heading, by line index."""
    no_break_before: set[int] = field(default_factory=set)
    """Line indexes before which no chunk may end, such as those inside a code fence."""
    verbatim: list[tuple[int, int]] = field(default_factory=list)
    """The <pre> elements of an HTML page: first line, and the line after the last."""
    numbers: Sequence[int] | None = None
    """The line number of each line in the file, ascending, if it differs from the index in `lines`."""
    page: int | None = None
    """The page number, for a format without lines."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage: its text, its first and last line (from 1, inclusive), and the headings above it."""

    text: str
    first: int
    last: int
    title: str = ""
    page: int | None = None


def split_lines(text: str) -> list[str]:
    """Split into lines as editors and grep do: at \\n or \\r\\n, or at \\r if there is no \\n."""
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
    """Split a document into chunks, in order; every line that is not blank is in at least one."""
    limits = CODE_LIMITS if document.code else PROSE_LIMITS
    lines = document.lines
    strengths = _boundary_strengths(document)
    titles = _Titles(document.headings)
    start = 0
    sizes = [0, *accumulate(len(line) + 1 for line in lines)]
    while start < len(lines):
        if not lines[start] or lines[start].isspace():
            start += 1
            continue
        if len(lines[start]) > limits.maximum:
            yield from _split_line(document, start, limits, titles.at(start))
            start += 1
            continue
        end = _find_end(strengths, sizes, start, limits)
        begin = _overlap_start(document, strengths, start, limits, end, sizes)
        yield _make_chunk(document, begin, end, titles.at(_first_content_line(document, start, end)))
        start = end


def _find_end(strengths: Sequence[float], sizes: Sequence[int], start: int, limits: ChunkLimits) -> int:
    """The line before which the chunk that begins at `start` ends."""
    base = sizes[start]
    count = len(strengths)
    # A chunk may take in a short remainder, so that it does not become a chunk of its own.
    tolerance = 5 / 4 if sizes[count] - base <= limits.target * 5 // 4 else 1
    best, best_strength = 0, NO_BREAK
    for at in range(start + 1, count):
        size = sizes[at] - base
        strength = strengths[at]
        if strength == HEADING and size >= MIN_SECTION_CHARACTERS:
            return at
        line_size = sizes[at + 1] - sizes[at]
        if line_size > limits.maximum and size <= limits.target:
            return at
        if size + line_size > limits.maximum or at - start >= limits.max_lines * tolerance:
            return best or at
        if size > limits.target * tolerance:
            if best:
                return best
            if strength > NO_BREAK:
                return at
        elif size >= limits.minimum and strength >= best_strength and strength > NO_BREAK:
            best, best_strength = at, strength
    return count


def _overlap_start(
    document: Document,
    strengths: Sequence[float],
    start: int,
    limits: ChunkLimits,
    end: int,
    sizes: Sequence[int],
) -> int:
    """The first line of the chunk, with the overlap from the chunk before."""
    strength = strengths[start]
    if start == 0 or strength == HEADING or (document.code and strength >= BLANK):
        return start
    begin = start
    taken = 0
    while begin > 0 and taken < MAX_OVERLAP_LINES:
        above = document.lines[begin - 1]
        blank = not above or above.isspace()
        if sizes[start] - sizes[begin - 1] > limits.overlap or sizes[end] - sizes[begin - 1] > limits.maximum:
            break
        if strengths[begin] == HEADING or (blank and taken):
            break
        begin -= 1
        taken += not blank
    while begin < start and not document.lines[begin].strip():
        begin += 1
    return begin


def _first_content_line(document: Document, start: int, end: int) -> int:
    """The first line of a chunk that is not a heading; the headings above it are the title of the chunk."""
    for index in range(start, end):
        if (
            index not in document.headings
            and index not in document.no_break_before
            and document.lines[index].strip()
        ):
            return index
    return start


def _make_chunk(document: Document, begin: int, end: int, title: str) -> Chunk:
    lines = document.lines
    while end > begin + 1 and not lines[end - 1].strip():
        end -= 1
    text = "\n".join(lines[begin:end])
    numbers = document.numbers
    first, last = (begin + 1, end) if numbers is None else (numbers[begin], numbers[end - 1])
    return Chunk(text, first, last, title, document.page)


_SENTENCE_END: Final = re.compile(r"[.!?。！？…][\"')\]»”’]?(?:\s+|(?<=[。！？]))")


def _split_line(document: Document, index: int, limits: ChunkLimits, title: str) -> Iterator[Chunk]:
    """Split a line that is longer than a chunk, at the end of a sentence or a word."""
    line = document.lines[index]
    number = index + 1 if document.numbers is None else document.numbers[index]
    at = 0
    while at < len(line):
        rest = len(line) - at
        if rest <= limits.target * 3 // 2:
            stop = len(line)
        else:
            stop = _find_cut(line, at + limits.target // 2, at + limits.target)
        text = line[at:stop]
        if not text.isspace():
            yield Chunk(text, number, number, title, document.page)
        at = stop


def _find_cut(line: str, low: int, high: int) -> int:
    """The best position between low and high to split a line: after a sentence, else a word, else anywhere."""
    ends = [match.end() for match in _SENTENCE_END.finditer(line, low, high)]
    if ends:
        return ends[-1]
    space = max(line.rfind(" ", low, high), line.rfind("\t", low, high))
    if space < 0:
        space = max(line.rfind(mark, low, high) for mark in ",;>}")
    return space + 1 if space >= 0 else high


_ENDS_SENTENCE: Final = tuple(".!?:;。！？…")
_CLOSERS: Final = (")", "]", "}", "else", "elif", "except", "finally", "catch", "end", "*/", "'''", '"""')


def _boundary_strengths(document: Document) -> list[float]:
    """The strength of the boundary before each line."""
    lines = document.lines
    out = [LINE] * len(lines)
    before_blank = True
    indent_before = 0
    for index, line in enumerate(lines):
        bare = line.lstrip()
        if not bare:
            # No chunk ends before a blank line, because the next chunk would begin with it.
            out[index] = NO_BREAK
            before_blank = True
            continue
        if document.code:
            indent = len(line) - len(bare)
            closing = bare.startswith(_CLOSERS)
            if before_blank:
                out[index] = TOP_LEVEL if indent == 0 else BLANK - min(indent, 40) / 50
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
    for index in document.no_break_before:
        out[index] = NO_BREAK
    for index in document.headings:
        out[index] = HEADING
    return out


class _Titles:
    """The path of headings above a line. Lines must be asked for in ascending order."""

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
