"""Finds the blocks of a Markdown page in one pass over its lines.

A full parser reads a megabyte a second, but chunking needs only the start and end of each block. This scanner finds
those. The tests compare it with a full parser, block by block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sennit.ingest.pages.admonitions import Admonitions, indented_end
from sennit.ingest.pages.containers import ContainerScanner
from sennit.ingest.pages.mdx import JsxScanner
from sennit.ingest.pages.outline import Block, BlockKind, Heading, Outline
from sennit.ingest.pages.patterns import (
    ATX,
    CLOSING_HASHES,
    FENCE,
    MARKER,
    REFERENCE,
    RULE,
    UNDERLINE,
    UNTIL_BLANK,
    HtmlEnd,
    ends_html,
    html_end,
    indent_of,
    is_blank,
    is_table,
)

_STARTERS: Final = frozenset("#`~>-+*_=<|:0123456789 \t!?{") | {""}
"""A line that starts with another character is text: it starts or continues a paragraph."""


MAX_DEPTH: Final = 16
"""Nested admonitions; deeper ones are text."""


def scan_markdown(
    lines: Sequence[str], *, start: int = 0, mdx: bool = False, extended: bool = True
) -> Outline:
    """Return the blocks and headings from line `start` on. `extended` adds admonitions (:::, !!!) to CommonMark."""
    scanner = _Scanner(lines, mdx=mdx, extended=extended)
    scanner.run(start, len(lines), 0)
    outline = scanner.outline
    if any(block.kind == "admonition" for block in outline.blocks):
        # An admonition is added after its content.
        outline.blocks.sort(key=lambda block: (block.first, block.depth))
        outline.code.sort()
    return outline


class _Scanner:
    __slots__ = ("_admonitions", "_extended", "_jsx", "_lines", "outline")

    def __init__(self, lines: Sequence[str], *, mdx: bool, extended: bool) -> None:
        self.outline = Outline(lines)
        self._lines = lines
        self._extended = extended
        self._jsx = JsxScanner(lines) if mdx else None
        self._admonitions = Admonitions(lines)

    def run(self, at: int, stop: int, depth: int) -> None:
        """Scan some lines as the content of a page or of an admonition."""
        lines = self._lines
        add = self.outline.blocks.append
        starters = _STARTERS
        jsx = self._jsx
        while at < stop:
            line = lines[at]
            kind: BlockKind = "paragraph"
            end = 0
            if line[:1] in starters:
                bare = line.lstrip(" \t")
                if not bare:
                    at += 1
                    continue
                end, kind = self._start(line, bare, at, stop, depth)
            elif jsx is not None and line[0] in "ie":
                if end := jsx.import_end(at, stop):
                    self.outline.metadata.append((at, end))
                    at = end
                    continue
                if end := jsx.export_end(at, stop):
                    kind = "jsx"
            if not end:
                end, kind = self._text(at, stop, depth)
            add(Block(at, end, kind, depth))
            at = end

    def _start(self, line: str, bare: str, at: int, stop: int, depth: int) -> tuple[int, BlockKind]:  # noqa: C901 - one branch per kind of block
        """Return the end and the kind of the block that starts here; end 0 if it is text."""
        first = bare[0]
        if len(bare) != len(line) and indent_of(line) > 3 and self._jsx is None:
            return self._code_end(at, stop), "code"
        if first == "#":
            if opening := ATX.match(bare):
                if depth == 0:
                    self._heading(at, at + 1, opening.end(), bare[opening.end() :])
                return at + 1, "heading"
        elif first in "`~":
            if fence := FENCE.match(bare):
                return self._fence_end(at, stop, fence[0]), "fence"
        elif first == ">":
            return self._container(at, stop), "quote"
        elif first in "-+*_0123456789":
            if first in "-*_" and RULE.match(bare):
                return at + 1, "rule"
            if first != "_" and MARKER.match(bare):
                return self._container(at, stop), "list"
        elif first == "<":
            if self._jsx is not None and (end := self._jsx.end(at, stop)):
                return end, "jsx"
            close = html_end(bare, in_paragraph=False)
            if close is not None:
                return self._html_end(at, stop, close), "html"
        elif first == "{":
            if self._jsx is not None and (end := self._jsx.end(at, stop)):
                return end, "jsx"
        elif self._extended and first in ":!?=" and (end := self._admonition(bare, at, stop, depth)):
            return end, "admonition"
        return 0, "paragraph"

    def _text(self, at: int, stop: int, depth: int) -> tuple[int, BlockKind]:
        """Return the end of a paragraph, or of the heading or table that it starts."""
        lines = self._lines
        starters = _STARTERS
        index = at + 1
        while index < stop:
            line = lines[index]
            if line[:1] in starters:
                bare = line.lstrip(" \t")
                if not bare:
                    break
                if len(bare) == len(line) or indent_of(line) < 4:
                    first = bare[0]
                    if first in "|-:" and is_table(lines[index - 1], line):
                        if index - 1 > at:
                            return index - 1, "paragraph"
                        return self._table_end(index + 1, stop), "table"
                    if first in "=-" and UNDERLINE.match(bare) and not self._is_reference(at, index):
                        if depth == 0:
                            text = "\n".join(part.strip(" \t") for part in lines[at:index])
                            self.outline.headings[at] = Heading(1 if first == "=" else 2, text, index + 1)
                        return index + 1, "heading"
                    if self._interrupts(bare, index):
                        break
            index += 1
        return index, "paragraph"

    def _interrupts(self, bare: str, at: int) -> bool:
        """Return whether a line ends the paragraph before it without a blank line."""
        first = bare[0]
        if first == "#":
            return ATX.match(bare) is not None
        if first in "`~":
            return FENCE.match(bare) is not None
        if first == ">":
            return True
        if first in "-+*_":
            if first != "+" and RULE.match(bare):
                return True
            return first != "_" and bare[1:2] in (" ", "\t") and not is_blank(bare[1:])
        if first.isdigit():
            marker = MARKER.match(bare)
            return marker is not None and int(marker[1]) == 1 and not is_blank(bare[marker.end() :])
        if first == "<":
            if self._jsx is not None and bare[1:2].isupper():
                return True
            return html_end(bare, in_paragraph=True) is not None
        if not self._extended:
            return False
        return bare.startswith(":::") and self._admonitions.is_mark(at)

    def _heading(self, at: int, end: int, level: int, rest: str) -> None:
        text = rest.strip(" \t")
        if text.endswith("#"):
            text = CLOSING_HASHES.sub("", text).rstrip(" \t")
        self.outline.headings[at] = Heading(level, text, end)

    def _is_reference(self, at: int, end: int) -> bool:
        """Return whether a paragraph consists of link definitions, which an underline does not make a heading."""
        return all(map(REFERENCE.match, self._lines[at:end]))

    def _container(self, at: int, stop: int) -> int:
        return ContainerScanner(self._lines, self.outline.items, self.outline.code).end(at, stop)

    def _fence_end(self, at: int, stop: int, mark: str) -> int:
        lines = self._lines
        char = mark[0]
        any_indent = self._jsx is not None
        for index in range(at + 1, stop):
            bare = lines[index].strip(" \t")
            if bare.startswith(mark) and not bare.strip(char) and (any_indent or indent_of(lines[index]) < 4):
                return index + 1
        return self._without_blank_end(at, stop) if stop < len(lines) else stop

    def _code_end(self, at: int, stop: int) -> int:
        last = at + 1
        for index in range(at + 1, stop):
            line = self._lines[index]
            if not is_blank(line):
                if indent_of(line) < 4:
                    break
                last = index + 1
        return last

    def _html_end(self, at: int, stop: int, close: HtmlEnd) -> int:
        lines = self._lines
        if close == UNTIL_BLANK:
            return next((index for index in range(at + 1, stop) if is_blank(lines[index])), stop)
        for index in range(at, stop):
            if ends_html(lines[index], close):
                return index + 1
        return stop

    def _table_end(self, at: int, stop: int) -> int:
        lines = self._lines
        while at < stop:
            line = lines[at]
            bare = line.lstrip(" \t")
            if not bare or (len(bare) != len(line) and indent_of(line) > 3):
                break
            if bare[0] in _STARTERS and (self._interrupts(bare, at) or MARKER.match(bare)):
                break
            at += 1
        return at

    def _without_blank_end(self, at: int, stop: int) -> int:
        while stop > at + 1 and is_blank(self._lines[stop - 1]):
            stop -= 1
        return stop

    def _admonition(self, bare: str, at: int, stop: int, depth: int) -> int:
        """Scan an admonition that starts here, and return its end; 0 if none starts here."""
        if bare.startswith(":::"):
            end = self._admonitions.end_of(at)
            if not end or end > stop or depth >= MAX_DEPTH:
                return 0
            self.run(at + 1, end - 1, depth + 1)
            return end
        end = indented_end(self._lines, at, stop)
        if end:
            self.outline.code += self._admonitions.indented_fences(at + 1, end)
        return end
