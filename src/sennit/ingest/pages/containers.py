"""Finds the end and the content of a list or a quote: CommonMark's line-by-line matching of open containers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sennit.ingest.pages.outline import Item
from sennit.ingest.pages.patterns import (
    ATX,
    FENCE,
    MARKER,
    RULE,
    UNDERLINE,
    UNTIL_BLANK,
    HtmlEnd,
    ends_html,
    html_end,
)

QUOTE: Final = -1
"""Marks a quote in the stack of containers. A list item is there as the indent of its content, in columns."""

_MARKS: Final = frozenset("#`~>-+*_=<0123456789 ") | {"\t", ""}
"""A line that starts with another character is text."""

_NOTHING, _PARAGRAPH, _FENCE, _HTML, _CODE = range(5)
"""The innermost open block."""


class ContainerScanner:
    """Scans one outermost list or quote to its end, line by line."""

    __slots__ = (
        "_close",
        "_code",
        "_item_is_empty",
        "_items",
        "_leaf",
        "_lines",
        "_open_at",
        "_stack",
        "_type",
    )

    def __init__(self, lines: Sequence[str], items: list[Item], code: list[tuple[int, int]]) -> None:
        self._lines = lines
        self._items = items
        self._code = code
        self._stack: list[int] = []
        self._leaf = _NOTHING
        self._item_is_empty = False
        """The innermost item has no content yet, so a blank line ends it."""
        self._close: HtmlEnd = ""
        """The end of the open fence or HTML block."""
        self._open_at = -1
        self._type = ""

    def end(self, at: int, stop: int) -> int:
        """Return the line after the container that starts at `at`, without trailing blank lines."""
        last = at + 1
        index = at
        first = self._lines[at]
        bullet = first[:2] if first[0] in "-*+" and first[1:2] == " " else "no"
        if bullet != "no":
            self._type = bullet[0]
        while index < stop:
            line = self._lines[index]
            # Fast path for most lines: continued text, or the next item of the outermost list.
            if line[:2] == bullet and (
                (third := line[2:3]) not in _MARKS or (third in "`*" and line[3:4] not in _MARKS)
            ):
                if self._leaf == _FENCE:
                    self._leave(index)
                self._stack[:] = (2,)
                self._items.append(Item(index, 1))
                self._leaf, self._item_is_empty = _PARAGRAPH, False
                index += 1
                last = index
                continue
            if "\t" in line:
                line = line.expandtabs(4)
            bare = line.lstrip(" ")
            if bare:
                if self._leaf == _PARAGRAPH and bare[0] not in _MARKS:
                    pass
                elif not self._line(line, index, outermost=index == at):
                    break
                last = index + 1
            elif not self._blank(index):
                break
            index += 1
        self._leave(last)
        return last

    def _leave(self, at: int) -> None:
        """Close the open leaf block, and record it if it is a fence."""
        if self._leaf == _FENCE:
            self._code.append((self._open_at, at))
        self._leaf = _NOTHING

    def _blank(self, index: int) -> bool:
        """Process a blank line; return False if no container stays open."""
        stack = self._stack
        kept = stack.index(QUOTE) if QUOTE in stack else len(stack)
        if kept == len(stack) and self._item_is_empty:
            kept -= 1
        if kept < len(stack):
            self._leave(index)
            del stack[kept:]
            self._item_is_empty = False
        elif self._leaf == _PARAGRAPH or (self._leaf == _HTML and self._close == UNTIL_BLANK):
            self._leaf = _NOTHING
        # A list continues after an empty item.
        return bool(stack) or bool(self._type)

    def _line(self, line: str, index: int, *, outermost: bool) -> bool:  # noqa: C901 - follows CommonMark step by step
        """Process a line that is not blank; return False if it is not part of the container."""
        stack = self._stack
        matched, place = self._match(line)
        whole = matched == len(stack)
        if whole and stack:
            if place >= len(line) or not line[place:].strip(" "):
                return self._blank_inside(index)
            if self._leaf == _FENCE:
                if self._ends_fence(line, place):
                    self._leaf = _NOTHING
                    self._code.append((self._open_at, index + 1))
                return True
            if self._leaf == _HTML:
                if self._close != UNTIL_BLANK and ends_html(line, self._close):
                    self._leaf = _NOTHING
                return True
        elif not whole and not line[place:].strip(" "):
            # The rest of the line in a quote is blank.
            self._shut(matched, index)
            return True
        opened = matched
        while True:
            start = place
            while line[start] == " ":
                start += 1
            if start - place > 3:
                break
            if line[start] == ">":
                if opened == 0 and not outermost:
                    return False
                self._open(QUOTE, opened, index)
                opened += 1
                whole = True
                place = start + 2 if line[start + 1 : start + 2] == " " else start + 1
            else:
                width = self._item(line, start, place, interrupts=whole and self._leaf == _PARAGRAPH)
                if width is None:
                    break
                if opened == 0:
                    kind = line[start] if line[start] in "-+*" else line[start + width[1] - 1]
                    if not outermost and kind != self._type:
                        return False
                    self._type = kind
                self._open(width[0], opened, index)
                opened += 1
                whole = True
                self._items.append(Item(index, len(stack) - stack.count(QUOTE)))
                place += width[0]
                self._item_is_empty = not line[place:].strip(" ")
            if not line[place:].strip(" "):
                self._leaf = _NOTHING
                return True
        if opened == 0 and self._leaf != _PARAGRAPH:
            return False
        return self._content(line, index, place, start, opened, whole=whole)

    def _match(self, line: str) -> tuple[int, int]:
        """Return how many open containers the line continues, and where the rest of the line starts."""
        place = 0
        length = len(line)
        for count, width in enumerate(self._stack):
            start = place
            while start < length and line[start] == " ":
                start += 1
            if width == QUOTE:
                if start - place > 3 or start >= length or line[start] != ">":
                    return count, place
                place = start + 2 if line[start + 1 : start + 2] == " " else start + 1
            elif start >= length:
                place = min(place + width, length)
            elif start - place >= width:
                place += width
            else:
                return count, place
        return len(self._stack), place

    def _blank_inside(self, index: int) -> bool:
        """Process a line that is blank after its quote marks."""
        if self._item_is_empty:
            self._stack.pop()
            self._item_is_empty = False
        if self._leaf == _PARAGRAPH or (self._leaf == _HTML and self._close == UNTIL_BLANK):
            self._leave(index)
        return True

    def _shut(self, kept: int, index: int) -> None:
        if kept < len(self._stack):
            self._leave(index)
            del self._stack[kept:]
            self._item_is_empty = False

    def _open(self, width: int, depth: int, index: int) -> None:
        self._leave(index)
        del self._stack[depth:]
        self._stack.append(width)
        self._item_is_empty = False

    @staticmethod
    def _item(line: str, start: int, place: int, *, interrupts: bool) -> tuple[int, int] | None:
        """Return the width of an item that starts here and of its marker; None if none starts here."""
        first = line[start]
        if first not in "-+*0123456789":
            return None
        marker = MARKER.match(line, start)
        if marker is None or (first in "-*" and RULE.match(line, start)):
            return None
        size = marker.end() - start
        content = marker.end()
        while content < len(line) and line[content] == " ":
            content += 1
        empty = content >= len(line)
        if interrupts and (empty or (marker[1] is not None and int(marker[1]) != 1)):
            return None
        spaces = content - marker.end()
        if empty or spaces > 4:
            spaces = 1
        return start - place + size + spaces, size

    def _ends_fence(self, line: str, place: int) -> bool:
        rest = line[place:]
        bare = rest.strip(" ")
        close = self._close
        return (
            isinstance(close, str)
            and bare.startswith(close)
            and not bare.strip(close[0])
            and len(rest) - len(rest.lstrip(" ")) < 4
        )

    def _content(self, line: str, index: int, place: int, start: int, opened: int, *, whole: bool) -> bool:
        """Process the content of the innermost container; return False if it ends the outermost."""
        paragraph = self._leaf == _PARAGRAPH
        if start - place > 3:
            if paragraph:
                return True
            if opened == 0:
                return False
            self._shut(opened, index)
            self._leaf = _CODE
            self._item_is_empty = False
            return True
        first = line[start]
        leaf = _PARAGRAPH
        if first == "#" and ATX.match(line, start):
            leaf = _NOTHING
        elif first in "`~" and (fence := FENCE.match(line, start)):
            leaf = _FENCE
            self._note(fence[0], index, opened)
        elif (first in "=-" and paragraph and whole and UNDERLINE.match(line, start)) or (
            first in "-*_" and RULE.match(line, start)
        ):
            leaf = _NOTHING
        elif first == "<":
            end = html_end(line[start:], in_paragraph=paragraph)
            if end is not None:
                leaf = _HTML if end == UNTIL_BLANK or not ends_html(line[start:], end) else _NOTHING
                self._note(end, index, opened)
        if leaf == _PARAGRAPH and paragraph:
            # The paragraph continues at any indent, and closes no container.
            return True
        if opened == 0:
            return False
        self._shut(opened, index)
        self._leaf = leaf
        self._item_is_empty = False
        return True

    def _note(self, close: HtmlEnd, index: int, opened: int) -> None:
        if opened:
            if self._leaf == _FENCE:
                self._leave(index)
            self._close, self._open_at = close, index
