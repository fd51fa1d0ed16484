"""HTML to text, in one pass, with every piece of text on the line where it stands in the file.

A parser of our own, and small: it needs no tree, so nothing nests too deep; it never looks back, so nothing
takes longer than the file is long; and it knows line numbers, which parsers that repair a tree do not keep.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from sennit.ingest.chunk import Document

VERSION: Final = 2
"""Raised when the same page would have other lines: files are then read again."""

_NAME: Final = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)")
_HIDDEN: Final = frozenset({"script", "style", "template", "svg", "iframe"})
"""Elements whose content is not shown as text."""

_RAW: Final = frozenset({"script", "style", "iframe"})
"""Elements inside which < begins no tag."""

_BLOCK: Final = frozenset(
    """
    address article aside blockquote body br caption center dd details dialog div dl dt fieldset figcaption figure
    footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main menu nav ol option p pre section select summary
    table tbody textarea tfoot thead title tr ul
    """.split()
)
_CELL: Final = frozenset({"td", "th"})
_PARAGRAPH: Final = _BLOCK - {"br", "li", "tr", "dt", "dd", "option"}
"""Elements that stand apart: a blank line is between them and the rest."""

_SPACE: Final = re.compile(r"\s+")
_HEADINGS: Final = frozenset({"title", "h1", "h2", "h3", "h4", "h5", "h6"})
MAX_HEADING: Final = 200

_BREAK: Final = re.compile(r"\r\n?|\n")

MAX_TAG: Final = 4096
"""Characters of a tag in which quotes are respected: a bound on what one unclosed quote can cost."""


class _Page:
    """The text so far: lines of output, each with the line of the file it begins on."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.numbers: list[int] = []
        self.headings: dict[int, tuple[int, str]] = {}
        self.verbatim: list[tuple[int, int]] = []
        self.pre = 0
        """How many <pre> are open; in them every line is kept as it is."""
        self._row: list[str] = []
        self._row_number = 1
        self._heading: tuple[str, int, list[str]] | None = None

    def text(self, raw: str, number: int) -> None:
        """Add text that begins on a line of the file."""
        if self.pre:
            raw = raw.replace("\r\n", "\n")
        for offset, part in enumerate(raw.split("\n")):
            if offset:
                self.break_line(number + offset - 1)
            shown = unescape(part)
            if not self.pre:
                shown = _SPACE.sub(" ", shown)
                if not self._row:
                    shown = shown.lstrip()
            if shown:
                if not self._row:
                    self._row_number = number + offset
                self._row.append(shown)
            if self._heading is not None and shown.strip():
                self._heading[2].append(shown.strip())

    def gap(self) -> None:
        """Keep apart what stands beside each other on a line."""
        if self._row:
            self._row.append(" ")

    def break_line(self, number: int) -> None:
        """End the line at a line break; in a <pre>, a line with nothing on it is one too."""
        if self.pre and not self._row:
            self.lines.append("")
            self.numbers.append(number)
        self.end_line()

    def end_line(self) -> None:
        """End the line, when there is something on it."""
        line = "".join(self._row)
        self._row.clear()
        if not self.pre:
            line = line.rstrip()
        if line:
            # A character reference may stand for a line break of its own.
            for part in _BREAK.split(line):
                self.lines.append(part)
                self.numbers.append(self._row_number)

    def apart(self, number: int) -> None:
        """End the paragraph."""
        self.end_line()
        if self.lines and self.lines[-1].strip():
            self.lines.append("")
            self.numbers.append(max(number, self.numbers[-1]))

    def open_heading(self, name: str) -> None:
        self._heading = (name, len(self.lines), [])

    def close_heading(self, name: str) -> None:
        self.end_line()
        if self._heading is None or self._heading[0] != name:
            return
        _, at, words = self._heading
        self._heading = None
        if words and at < len(self.lines):
            # The page's title is above its h1 as a book's is above its chapters.
            level = 1 if name == "title" else int(name[1]) + 1
            self.headings[at] = (level, " ".join(words)[:MAX_HEADING])

    def close_verbatim(self, begun: int) -> None:
        """Note the lines since then as one thing; blank ones at its ends left out."""
        end = len(self.lines)
        while end > begun and not self.lines[end - 1].strip():
            end -= 1
        while begun < end and not self.lines[begun].strip():
            begun += 1
        if end > begun:
            self.verbatim.append((begun, end))


def html(source: str) -> Document:
    """The shown text of a page, with headings."""
    page = _Page()
    number = 1
    at = 0
    hidden: str | None = None
    begun = 0
    last_end = source.rfind(">")
    # An element that is never closed hides nothing.
    last_closing = {name: _last(source, name) for name in _HIDDEN - _RAW}
    while at < len(source):
        opening = source.find("<", at)
        if opening < 0:
            opening = len(source)
        if opening > at:
            if hidden is None:
                page.text(source[at:opening], number)
            number += source.count("\n", at, opening)
            at = opening
        if at == len(source):
            break
        named = _NAME.match(source, at)
        end = _end_of(source, at, named is not None) if at < last_end else None
        if end is None:
            # No tag: a bare < is text.
            if hidden is None:
                page.text("<", number)
            at += 1
            continue
        number_after = number + source.count("\n", at, end)
        if named is not None:
            name = named[1].lower()
            closing = source[at + 1] == "/"
            if hidden is not None:
                if closing and name == hidden:
                    hidden = None
            elif name in _HIDDEN and not closing and source[end - 2] != "/":
                if name in _RAW:
                    end, number_after = _after_raw(source, end, name, number_after)
                elif end <= last_closing[name]:
                    hidden = name
            else:
                _tag(page, name, closing, number)
                if name == "pre" and closing:
                    if page.pre == 1:
                        page.close_verbatim(begun)
                    page.pre = max(0, page.pre - 1)
                elif name == "pre":
                    if not page.pre:
                        begun = len(page.lines)
                    page.pre += 1
                    # A line break right behind the tag belongs to the tag.
                    first = _BREAK.match(source, end)
                    if first is not None:
                        end = first.end()
                        number_after += first[0].count("\n")
        at, number = end, number_after
    page.apart(number)
    while page.lines and not page.lines[-1].strip():
        page.lines.pop()
        page.numbers.pop()
    glued = {line for first, last in page.verbatim for line in range(first + 1, last)}
    return Document(
        page.lines, headings=page.headings, glued=glued, verbatim=page.verbatim, numbers=page.numbers
    )


def _tag(page: _Page, name: str, closing: bool, number: int) -> None:
    if name in _CELL and not closing:
        page.gap()
    if name not in _BLOCK:
        return
    if closing and name in _HEADINGS:
        page.close_heading(name)
    if name == "br":
        page.break_line(number)
    elif name in _PARAGRAPH and not (page.pre and name == "div"):
        # Where code is coloured, a <div> in a <pre> is a line.
        page.apart(number)
    else:
        page.end_line()
    if not closing and name in _HEADINGS:
        page.open_heading(name)


_TAG_END: Final = re.compile(r"""[^>"']*+(?:"[^"]*+"[^>"']*+|'[^']*+'[^>"']*+)*+>""")


def _end_of(source: str, at: int, named: bool) -> int | None:
    """Where the tag, comment or declaration that begins at `at` ends; None when none begins there."""
    if source.startswith("<!--", at):
        end = source.find("-->", at + 4)
        return len(source) if end < 0 else end + 3
    if not named and not source.startswith(("<!", "<?"), at):
        return None
    # Attributes may hold a '>' between quotes. Where a quote is never closed, the next '>' is the end.
    found = _TAG_END.match(source, at, at + MAX_TAG)
    return found.end() if found else source.find(">", at) + 1


def _after_raw(source: str, at: int, name: str, number: int) -> tuple[int, int]:
    """Past the end of an element whose content is not HTML."""
    found = re.compile(rf"</{name}[^>]*>", re.IGNORECASE).search(source, at)
    end = found.end() if found else len(source)
    return end, number + source.count("\n", at, end)


def _last(source: str, name: str) -> int:
    return max(source.rfind(f"</{name}"), source.rfind(f"</{name.upper()}"))
