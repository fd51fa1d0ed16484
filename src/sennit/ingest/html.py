"""Converts HTML to text in one pass, and keeps the line number of every piece of text.

The parser is our own, for three reasons. It builds no tree, so deep nesting is harmless. It never goes back, so it takes
linear time. It keeps line numbers, which parsers that repair a tree lose.
"""

from __future__ import annotations

import re
from html import unescape
from typing import Final

from sennit.ingest.chunk import Document

HTML_VERSION: Final = 2
"""Increase it when the same page gives other lines than before. Files are then read again."""

_NAME: Final = re.compile(r"</?([a-zA-Z][a-zA-Z0-9]*)")
_HIDDEN_ELEMENTS: Final = frozenset({"script", "style", "template", "svg", "iframe"})
"""Elements whose content is not shown as text."""

_RAW_ELEMENTS: Final = frozenset({"script", "style", "iframe"})
"""Elements in which < does not start a tag."""

_BLOCK_ELEMENTS: Final = frozenset(
    """
    address article aside blockquote body br caption center dd details dialog div dl dt fieldset figcaption figure
    footer form h1 h2 h3 h4 h5 h6 head header hr html legend li main menu nav ol option p pre section select summary
    table tbody textarea tfoot thead title tr ul
    """.split()
)
_CELL_ELEMENTS: Final = frozenset({"td", "th"})
_PARAGRAPH_ELEMENTS: Final = _BLOCK_ELEMENTS - {"br", "li", "tr", "dt", "dd", "option"}
"""Elements that a blank line separates from the rest."""

_SPACE: Final = re.compile(r"\s+")
_HEADING_ELEMENTS: Final = frozenset({"title", "h1", "h2", "h3", "h4", "h5", "h6"})
MAX_HEADING_CHARS: Final = 200

_LINE_BREAK: Final = re.compile(r"\r\n?|\n")

MAX_TAG_CHARS: Final = 4096
"""Quotes in a tag are matched up to this length. This limits the cost of a quote that is not closed."""


class _TextBuilder:
    """Collects lines of text, each with the number of the line in the file where it starts."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.numbers: list[int] = []
        self.headings: dict[int, tuple[int, str]] = {}
        self.verbatim: list[tuple[int, int]] = []
        self.pre_depth = 0
        """The number of open <pre> elements. In them, every line stays as it is."""
        self._pre_start = 0
        self._row: list[str] = []
        self._row_number = 1
        self._heading: tuple[str, int, list[str]] | None = None

    def add_text(self, raw: str, number: int) -> None:
        """Add text that starts on this line of the file."""
        if self.pre_depth:
            raw = raw.replace("\r\n", "\n")
        for offset, part in enumerate(raw.split("\n")):
            if offset:
                self.break_line(number + offset - 1)
            shown = unescape(part)
            if not self.pre_depth:
                shown = _SPACE.sub(" ", shown)
                if not self._row:
                    shown = shown.lstrip()
            if shown:
                if not self._row:
                    self._row_number = number + offset
                self._row.append(shown)
            if self._heading is not None and shown.strip():
                self._heading[2].append(shown.strip())

    def add_gap(self) -> None:
        """Add a space between two cells of a row."""
        if self._row:
            self._row.append(" ")

    def break_line(self, number: int) -> None:
        """End the line at a line break. In a <pre>, an empty line counts as well."""
        if self.pre_depth and not self._row:
            self.lines.append("")
            self.numbers.append(number)
        self.end_line()

    def end_line(self) -> None:
        """End the line if it is not empty."""
        line = "".join(self._row)
        self._row.clear()
        if not self.pre_depth:
            line = line.rstrip()
        if line:
            # A character reference may be a line break.
            for part in _LINE_BREAK.split(line):
                self.lines.append(part)
                self.numbers.append(self._row_number)

    def end_paragraph(self, number: int) -> None:
        """End the line, and add a blank line if there is none."""
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
            # The <title> is one level above the h1.
            level = 1 if name == "title" else int(name[1]) + 1
            self.headings[at] = (level, " ".join(words)[:MAX_HEADING_CHARS])

    def open_pre(self) -> None:
        if not self.pre_depth:
            self._pre_start = len(self.lines)
        self.pre_depth += 1

    def close_pre(self) -> None:
        if self.pre_depth == 1:
            self._add_verbatim(self._pre_start)
        self.pre_depth = max(0, self.pre_depth - 1)

    def _add_verbatim(self, start: int) -> None:
        """Record the lines from `start` on as one verbatim block, without blank lines at its ends."""
        end = len(self.lines)
        while end > start and not self.lines[end - 1].strip():
            end -= 1
        while start < end and not self.lines[start].strip():
            start += 1
        if end > start:
            self.verbatim.append((start, end))

    def finish(self, number: int) -> Document:
        """End the text, and return it without trailing blank lines."""
        self.end_paragraph(number)
        while self.lines and not self.lines[-1].strip():
            self.lines.pop()
            self.numbers.pop()
        inside_pre = {line for first, last in self.verbatim for line in range(first + 1, last)}
        return Document(
            self.lines,
            headings=self.headings,
            no_break_before=inside_pre,
            verbatim=self.verbatim,
            numbers=self.numbers,
        )


def parse_html(source: str) -> Document:
    """Return the visible text of a page, with its headings."""
    page = _TextBuilder()
    number = 1
    at = 0
    hidden: str | None = None
    last_end = source.rfind(">")
    # An element that is not closed hides nothing.
    last_closing = {name: _find_last_closing(source, name) for name in _HIDDEN_ELEMENTS - _RAW_ELEMENTS}
    while at < len(source):
        opening = source.find("<", at)
        if opening < 0:
            opening = len(source)
        if opening > at:
            if hidden is None:
                page.add_text(source[at:opening], number)
            number += source.count("\n", at, opening)
            at = opening
        if at == len(source):
            break
        tag = _NAME.match(source, at)
        end = _find_end(source, at, tag is not None) if at < last_end else None
        if end is None:
            # A < that does not start a tag is text.
            if hidden is None:
                page.add_text("<", number)
            at += 1
            continue
        number_after = number + source.count("\n", at, end)
        if tag is not None:
            name = tag[1].lower()
            closing = source[at + 1] == "/"
            if hidden is not None:
                if closing and name == hidden:
                    hidden = None
            elif name in _HIDDEN_ELEMENTS and not closing and source[end - 2] != "/":
                if name in _RAW_ELEMENTS:
                    end, number_after = _skip_raw(source, end, name, number_after)
                elif end <= last_closing[name]:
                    hidden = name
            else:
                _handle_tag(page, name, closing, number)
                if name == "pre" and not closing:
                    end, number_after = _skip_line_break(source, end, number_after)
        at, number = end, number_after
    return page.finish(number)


def _handle_tag(page: _TextBuilder, name: str, closing: bool, number: int) -> None:
    if name in _CELL_ELEMENTS and not closing:
        page.add_gap()
    if name not in _BLOCK_ELEMENTS:
        return
    if closing and name in _HEADING_ELEMENTS:
        page.close_heading(name)
    if name == "br":
        page.break_line(number)
    elif name in _PARAGRAPH_ELEMENTS and not (page.pre_depth and name == "div"):
        # Syntax highlighters put each line of a <pre> into a <div>.
        page.end_paragraph(number)
    else:
        page.end_line()
    if not closing and name in _HEADING_ELEMENTS:
        page.open_heading(name)
    elif name == "pre":
        if closing:
            page.close_pre()
        else:
            page.open_pre()


_TAG_END: Final = re.compile(r"""[^>"']*+(?:"[^"]*+"[^>"']*+|'[^']*+'[^>"']*+)*>""")


def _find_end(source: str, at: int, is_tag: bool) -> int | None:
    """Return the end of the tag, comment or declaration that starts at `at`; None if none starts there."""
    if source.startswith("<!--", at):
        end = source.find("-->", at + 4)
        return len(source) if end < 0 else end + 3
    if not is_tag and not source.startswith(("<!", "<?"), at):
        return None
    # An attribute may contain '>' in quotes. If a quote is not closed, the next '>' is the end.
    found = _TAG_END.match(source, at, at + MAX_TAG_CHARS)
    return found.end() if found else source.find(">", at) + 1


def _skip_line_break(source: str, at: int, number: int) -> tuple[int, int]:
    """Skip a line break directly after a <pre>, which belongs to the tag."""
    found = _LINE_BREAK.match(source, at)
    return (found.end(), number + found[0].count("\n")) if found else (at, number)


def _skip_raw(source: str, at: int, name: str, number: int) -> tuple[int, int]:
    """Return the position and line number after an element whose content is not HTML."""
    found = re.compile(rf"</{name}[^>]*>", re.IGNORECASE).search(source, at)
    end = found.end() if found else len(source)
    return end, number + source.count("\n", at, end)


def _find_last_closing(source: str, name: str) -> int:
    return max(source.rfind(f"</{name}"), source.rfind(f"</{name.upper()}"))
