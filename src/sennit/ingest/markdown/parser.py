"""Parses Markdown with pulldown-cmark, and returns the lines of its blocks.

The parser reports offsets in bytes. The blocks need lines only, because a chunk is made of whole lines.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Final

import pyromark

from sennit.ingest.markdown.extensions import Replaced, find_extensions, indent_of
from sennit.ingest.markdown.outline import Block, BlockKind, CodeBlock, Heading, Item, Outline
from sennit.ingest.markdown.titles import read_heading
from sennit.records import is_unicode

if TYPE_CHECKING:
    from pyromark.event import Event, Range

_MARKDOWN: Final = pyromark.Markdown(
    options=pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_FOOTNOTES
)
_KINDS: Final[dict[str, BlockKind]] = {
    "Paragraph": "paragraph",
    "Heading": "heading",
    "HtmlBlock": "html",
    "List": "list",
    "BlockQuote": "quote",
    "Table": "table",
    "FootnoteDefinition": "paragraph",
}
_CLOSING_FENCE: Final = re.compile(r"(?:`{3,}|~{3,})[ \t]*\Z")
_DEFINITION: Final = re.compile(r" {0,3}\[(?:[^\[\]\\]|\\.)+\]:")
_INFO: Final = re.compile(r"[ \t]*\{?[ \t]*\.?([\w+#-]*)")
_TITLE: Final = re.compile(r"\btitle\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")


def parse_markdown(lines: Sequence[str], *, start: int = 0, mdx: bool = False) -> Outline:
    """Return the blocks, headings and code from line `start` on. Line ends are not part of the lines."""
    outline = Outline(lines)
    own = lines[start:] if start else lines
    extensions = find_extensions(own, mdx=mdx)
    outline.metadata = [(start + first, start + last) for first, last in extensions.imports]
    _Reader(outline, start, extensions.lines, extensions.replaced).run()
    return outline


class _Reader:
    """Turns the events of the parser into the outline."""

    __slots__ = (
        "_admonition_ends",
        "_covered",
        "_first_line",
        "_outline",
        "_replaced",
        "_starts",
        "_text",
    )

    def __init__(
        self, outline: Outline, first_line: int, lines: Sequence[str], replaced: Mapping[int, Replaced]
    ) -> None:
        self._outline = outline
        self._first_line = first_line
        self._replaced = replaced
        text = "\n".join(lines)
        if "\r" in text:
            # A lone \r ends a line for the parser, and is white space in a line here.
            text = text.replace("\r", " ")
        if text.isascii():
            sizes = [len(line) + 1 for line in lines]
        else:
            if not is_unicode(text):
                text = text.encode(errors="replace").decode()
            sizes = [len(line.encode(errors="replace")) + 1 for line in lines]
        self._text = text
        self._starts = [0, *accumulate(sizes)]
        """The offset of each line in bytes."""
        self._covered = first_line
        """The line after the last block."""
        self._admonition_ends: list[int] = []

    def run(self) -> None:  # noqa: C901 - one branch per kind of event
        until = 0
        list_ends: list[int] = []
        starts, items = self._starts, self._outline.items
        code: list[str] | None = None
        opened = (0, 0, "")
        event: Event
        for event, span in _MARKDOWN.events_with_range(self._text, merge_text=True):
            if isinstance(event, str):
                if event == "Rule" and span["start"] >= until:
                    until = span["end"]
                    self._add_rule(self._line(span["start"]))
                continue
            if code is not None:
                if "Text" in event:
                    code.append(event["Text"])
                else:
                    self._add_code(*opened, "".join(code))
                    code = None
                continue
            if "Start" not in event:
                continue
            tag = event["Start"]
            if isinstance(tag, str):
                if tag == "Item":
                    start = span["start"]
                    while list_ends[-1] <= start:
                        list_ends.pop()
                    items.append(Item(self._first_line + bisect_right(starts, start) - 1, len(list_ends)))
                # A table reports cells that are missing in a row at its end, outside of it.
                elif span["start"] >= until and tag in _KINDS:
                    until = span["end"]
                    self._add(_KINDS[tag], span)
                continue
            start, end = span["start"], span["end"]
            if "CodeBlock" in tag:
                kind = tag["CodeBlock"]
                if kind != "Indented":
                    code, opened = [], (start, end, kind["Fenced"])
                if start >= until:
                    until = end
                    self._add("code" if kind == "Indented" else "fence", span)
                continue
            if "List" in tag:
                while list_ends and list_ends[-1] <= start:
                    list_ends.pop()
                list_ends.append(end)
            if start >= until and (name := next(iter(tag))) in _KINDS:
                until = end
                self._add(_KINDS[name], span)
                if "Heading" in tag:
                    self._add_heading(int(tag["Heading"]["level"][1]))
        self._cover(len(self._outline.lines))

    def _line(self, offset: int) -> int:
        """Return the line with this byte."""
        return self._first_line + bisect_right(self._starts, offset) - 1

    def _add(self, kind: BlockKind, span: Range) -> None:
        first, last = self._line(span["start"]), self._line(span["end"] - 1) + 1
        last = self._list_end(first, last) if kind == "list" else self._text_end(first, last)
        self._cover(first)
        self._add_block(first, last, kind)

    def _text_end(self, first: int, last: int) -> int:
        """Return the line after a block without the blank lines at its end."""
        lines = self._outline.lines
        while last > first + 1 and not lines[last - 1].strip(" \t"):
            last -= 1
        return last

    def _list_end(self, first: int, last: int) -> int:
        """Return the line after a list. For the parser, the definitions of links that follow it are part of it."""
        lines = self._outline.lines
        last = at = self._text_end(first, last)
        margin = indent_of(lines[first]) + 2
        while at > first + 1 and (
            not lines[at - 1].strip(" \t")
            or (_DEFINITION.match(lines[at - 1]) and indent_of(lines[at - 1]) < margin)
        ):
            at -= 1
        # Without a blank line before it, it is no definition, but continues the text of the last item.
        return at if at < last and not lines[at].strip(" \t") else last

    def _add_block(self, first: int, last: int, kind: BlockKind) -> None:
        while self._admonition_ends and first >= self._admonition_ends[-1]:
            self._admonition_ends.pop()
        blocks = self._outline.blocks
        if blocks and first < blocks[-1].last and not self._admonition_ends:
            # The parser counts the indent of a block as the end of the list before it.
            blocks[-1] = blocks[-1]._replace(last=self._text_end(blocks[-1].first, first))
        blocks.append(Block(first, last, kind, len(self._admonition_ends)))
        self._covered = last

    def _cover(self, stop: int) -> None:
        """Add the lines up to `stop` that no block contains as paragraphs: they define links."""
        if self._covered >= stop:
            return
        lines = self._outline.lines
        first = None
        for line in range(self._covered, stop):
            if lines[line].strip(" \t"):
                first = line if first is None else first
            elif first is not None:
                self._add_block(first, line, "paragraph")
                first = None
        if first is not None:
            self._add_block(first, stop, "paragraph")

    def _add_rule(self, line: int) -> None:
        """Add a thematic break, or what it stands for."""
        self._cover(line)
        replaced = self._replaced.get(line - self._first_line)
        if replaced is None:
            self._add_block(line, line + 1, "rule")
            return
        last = self._first_line + replaced.last
        if replaced.kind is not None:
            self._add_block(line, last, replaced.kind)
        if replaced.kind == "admonition":
            # The blocks inside it follow.
            self._admonition_ends.append(last)
            last = line + 1
        self._covered = last

    def _add_heading(self, level: int) -> None:
        """Add the text of the last block as a heading, unless it is inside an admonition."""
        first, last, _, depth = self._outline.blocks[-1]
        if depth:
            return
        lines = self._outline.lines[first:last]
        # An underlined heading has its underline as the last line.
        source = "\n".join(lines[:-1]) if len(lines) > 1 else lines[0].lstrip(" \t").lstrip("#")
        title = read_heading(source)
        self._outline.headings[first] = Heading(level, title.text, last, title.anchor)

    def _add_code(self, start: int, end: int, info: str, text: str) -> None:
        first, last = self._line(start), self._line(end - 1) + 1
        language = _INFO.match(info)
        title = _TITLE.search(info)
        self._outline.code.append(
            CodeBlock(
                first,
                last,
                language[1].lower() if language else "",
                text.removesuffix("\n"),
                (title[1] or title[2] or "") if title else "",
                last - first > 1 and _CLOSING_FENCE.search(self._outline.lines[last - 1]) is not None,
            )
        )
