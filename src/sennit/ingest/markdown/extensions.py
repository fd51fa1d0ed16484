"""Finds what is not part of CommonMark: admonitions, and the imports and JSX of MDX.

Each line of such syntax is replaced by a thematic break or a blank line before the page is parsed, so that the parser
sees separate blocks before and after it. The lines of the body of an indented admonition lose their indent, and are
parsed as ordinary Markdown. The number of lines stays the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from sennit.ingest.markdown.mdx import JsxScanner
from sennit.ingest.markdown.outline import BlockKind

MAX_DEPTH: Final = 16
"""Nested admonitions; deeper ones are text."""

_BREAK: Final = "***"
"""A thematic break that cannot be the underline of a heading. It ends every block before it."""

_FENCE: Final = re.compile(r"`{3,}(?=[^`]*\Z)|~{3,}")
_MARKER: Final = re.compile(r"(?:[-+*]|[0-9]{1,9}[.)])(?=[ \t]|\Z)")
_HEADING: Final = re.compile(r"#{1,6}(?=[ \t]|\Z)")
_COLONS: Final = re.compile(r"(:{3,})[ \t]*(.*)\Z")
_INDENTED: Final = re.compile(r"(?:!!!|\?\?\?\+?)[ \t]+[\"'\w]|===[!+]?[ \t]+[\"']")
_MARKS: Final = (":::", "!!!", "???", "===")
_ADMONITIONS: Final = re.compile(r"^[ \t]*(?::::|!!![ \t]|\?\?\?[+ \t]|===[!+ \t])", re.M)


class Replaced(NamedTuple):
    """What a thematic break stands for: the line after it, and the kind of block; None for no block."""

    last: int
    kind: BlockKind | None


@dataclass(slots=True)
class Extensions:
    """The lines for the parser, and what stands where it finds a thematic break."""

    lines: Sequence[str]
    replaced: dict[int, Replaced] = field(default_factory=dict)
    """By the line of the thematic break."""
    imports: list[tuple[int, int]] = field(default_factory=list)


def find_extensions(lines: Sequence[str], *, mdx: bool) -> Extensions:
    """Find admonitions, and with `mdx` also imports and JSX."""
    if not mdx:
        text = "\n".join(lines)
        # The search for a substring is many times faster than the expression, and almost always enough.
        if not any(mark in text for mark in _MARKS) or not _ADMONITIONS.search(text):
            return Extensions(lines)
    return _Scanner(lines, mdx=mdx).run()


def indent_of(line: str) -> int:
    """Return the columns of white space before the text. A tab ends at a multiple of four."""
    lead = line[: len(line) - len(line.lstrip(" \t"))]
    return len(lead) if "\t" not in lead else len(lead.expandtabs(4))


class _Scanner:
    """Scans the lines of a page once. It keeps track of fences, in which nothing is an extension."""

    __slots__ = ("_bodies", "_found", "_in_list", "_jsx", "_lines", "_open_marks")

    def __init__(self, lines: Sequence[str], *, mdx: bool) -> None:
        self._lines = list(lines)
        self._jsx = JsxScanner(self._lines) if mdx else None
        self._found = Extensions(self._lines)
        self._in_list = False
        self._open_marks: list[tuple[int, int]] = []
        """The `:::` lines that are not closed yet, with their numbers of colons."""
        self._bodies: list[tuple[int, int]] = []
        """The ends of the indented admonitions around this line, and how many `:::` were open before each."""

    def run(self) -> Extensions:
        lines = self._lines
        at = 0
        fresh = True
        """A block can start here without interrupting a paragraph."""
        while at < len(lines):
            while self._bodies and at >= self._bodies[-1][0]:
                del self._open_marks[self._bodies.pop()[1] :]
            bare = lines[at].lstrip(" \t")
            if not bare:
                fresh = True
                at += 1
                continue
            indent = indent_of(lines[at])
            if self._jsx is not None:
                indent = self._dedent(at, bare, indent)
            end = 0
            if bare[0] in "`~" and (fence := _FENCE.match(bare)):
                end = self._fence_end(at, fence[0], indent)
            elif bare[0] in ":!?=":
                end = self._admonition(at, bare, indent, fresh=fresh)
            elif self._jsx is not None and bare[0] in "<{ie":
                end = self._component(at, bare, indent, fresh=fresh)
            fresh = bool(end) or (bare[0] == "#" and _HEADING.match(bare) is not None)
            at = end or at + 1
        return self._found

    def _replace(self, first: int, last: int, kind: BlockKind | None) -> None:
        """Replace some lines by a thematic break and blank lines."""
        indent = indent_of(self._lines[first])
        self._lines[first] = " " * indent + _BREAK
        self._lines[first + 1 : last] = [""] * (last - first - 1)
        self._found.replaced[first] = Replaced(last, kind)

    def _dedent(self, at: int, bare: str, indent: int) -> int:
        """Remove the indent of a line in MDX, where four spaces do not make code; return the new indent."""
        if indent < 4 and _MARKER.match(bare):
            self._in_list = True
        elif indent < 2:
            self._in_list = False
        if indent < 4 or self._in_list:
            return indent
        self._lines[at] = bare
        return 0

    def _fence_end(self, at: int, mark: str, indent: int) -> int:
        """Return the line after a fence, and remove its indent if that of the opening line was removed."""
        lines = self._lines
        inside = range(at + 1, self._bodies[-1][0] if self._bodies else len(lines))
        dedent = self._jsx is not None and not indent
        for index in inside:
            bare = lines[index].strip(" \t")
            if bare.startswith(mark) and not bare.strip(mark[0]):
                if dedent:
                    lines[index] = bare
                return index + 1
        return len(inside) + at + 1

    def _component(self, at: int, bare: str, indent: int, *, fresh: bool) -> int:
        """Replace JSX, an import or an export; return the line after it, 0 if none starts here."""
        jsx, stop = self._jsx, self._bodies[-1][0] if self._bodies else len(self._lines)
        assert jsx is not None
        kind: BlockKind | None = "jsx"
        end = 0
        if bare[0] == "<":
            if fresh or bare[1:2].isupper() or bare[1:2] == ">":
                end = jsx.end(at, stop)
        elif not fresh:
            return 0
        elif bare[0] == "{":
            end = jsx.end(at, stop)
        elif not indent:
            end = jsx.export_end(at, stop)
            if not end and (end := jsx.import_end(at, stop)):
                self._found.imports.append((at, end))
                kind = None
        if end:
            self._replace(at, end, kind)
        return end

    def _admonition(self, at: int, bare: str, indent: int, *, fresh: bool) -> int:
        """Process a line that may open or close an admonition; return the line after it, 0 if it does not."""
        if indent > 3:
            return 0
        if bare[0] == ":":
            return at + 1 if self._colons(at, bare.rstrip(" \t")) else 0
        if not fresh or len(self._bodies) >= MAX_DEPTH or not _INDENTED.match(bare):
            return 0
        end = self._body_end(at, indent + 4)
        self._replace(at, at + 1, None)
        self._found.replaced[at] = Replaced(end, "admonition")
        for index in range(at + 1, end):
            self._lines[index] = _without_indent(self._lines[index], indent + 4)
        self._bodies.append((end, len(self._open_marks)))
        return at + 1

    def _body_end(self, at: int, inside: int) -> int:
        """Return the line after the body of an indented admonition, without trailing blank lines."""
        last = at + 1
        for index in range(at + 1, self._bodies[-1][0] if self._bodies else len(self._lines)):
            if self._lines[index].strip(" \t"):
                if indent_of(self._lines[index]) < inside:
                    break
                last = index + 1
        return last

    def _colons(self, at: int, bare: str) -> bool:
        """Process a line of colons. Only when an admonition is closed are its two lines replaced."""
        mark = _COLONS.match(bare)
        if mark is None:
            return False
        size = len(mark[1])
        if mark[2].strip(" \t:"):
            self._open_marks.append((at, size))
            return False
        # It closes the innermost opening line with at most as many colons. Lines opened inside stay unclosed.
        outer = self._bodies[-1][1] if self._bodies else 0
        for place in range(len(self._open_marks) - 1, max(outer - 1, len(self._open_marks) - 9), -1):
            first, colons = self._open_marks[place]
            if colons <= size:
                self._replace(first, first + 1, None)
                self._replace(at, at + 1, None)
                self._found.replaced[first] = Replaced(at + 1, "admonition")
                del self._open_marks[place:]
                return True
        return False


def _without_indent(line: str, columns: int) -> str:
    """Remove up to this many columns of white space."""
    if "\t" in line[:columns]:
        line = line.expandtabs(4)
    return line[min(columns, len(line) - len(line.lstrip(" "))) :]
