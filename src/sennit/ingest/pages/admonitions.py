"""Scans admonitions, which are not part of CommonMark: `:::note` … `:::`, and `!!! note` with an indented body."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sennit.ingest.pages.patterns import FENCE, indent_of, is_blank

_COLONS: Final = re.compile(r"(:{3,})[ \t]*(.*)\Z")
_INDENTED: Final = re.compile(r"(?:!!!|\?\?\?\+?|===[!+]?)[ \t]+[\"'\w]")


def indented_end(lines: Sequence[str], at: int, stop: int) -> int:
    """Return the line after a MkDocs admonition (`!!! note`, `??? tip`, `=== "Tab"`); 0 if none starts here."""
    if not _INDENTED.match(lines[at].lstrip(" \t")):
        return 0
    inside = indent_of(lines[at]) + 4
    last = at + 1
    for index in range(at + 1, stop):
        if not is_blank(lines[index]):
            if indent_of(lines[index]) < inside:
                break
            last = index + 1
    return last


class Admonitions:
    """Pairs the opening and closing lines of `:::` admonitions, for the whole page at the first use."""

    __slots__ = ("_ends", "_lines", "_marks")

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._ends: dict[int, int] | None = None
        self._marks: set[int] = set()

    def end_of(self, at: int) -> int:
        """Return the line after the admonition that starts here; 0 if it is not closed."""
        return self._pairs().get(at, 0)

    def is_mark(self, at: int) -> bool:
        """Return whether this line opens or closes an admonition."""
        self._pairs()
        return at in self._marks

    def _pairs(self) -> dict[int, int]:
        if self._ends is not None:
            return self._ends
        ends: dict[int, int] = {}
        open_marks: list[tuple[int, int]] = []
        fence = ""
        for index, line in enumerate(self._lines):
            bare = line.strip(" \t")
            if fence:
                if bare.startswith(fence) and not bare.strip(fence[0]):
                    fence = ""
            elif bare[:3] in ("```", "~~~") and (opening := FENCE.match(bare)):
                fence = opening[0]
            elif bare.startswith(":::") and indent_of(line) < 4 and (mark := _COLONS.match(bare)):
                size = len(mark[1])
                if mark[2].strip(" \t:"):
                    open_marks.append((index, size))
                    continue
                # It closes the innermost opening line with at most as many colons. Lines opened inside stay unclosed.
                for place in range(len(open_marks) - 1, max(-1, len(open_marks) - 9), -1):
                    if open_marks[place][1] <= size:
                        ends[open_marks[place][0]] = index + 1
                        del open_marks[place:]
                        break
        self._ends = ends
        self._marks = {*ends, *(end - 1 for end in ends.values())}
        return ends

    def indented_fences(self, at: int, stop: int) -> list[tuple[int, int]]:
        """Return the fences in some lines, at any indent."""
        found = []
        fence, opened = "", at
        for index in range(at, stop):
            bare = self._lines[index].strip(" \t")
            if fence:
                if bare.startswith(fence) and not bare.strip(fence[0]):
                    found.append((opened, index + 1))
                    fence = ""
            elif opening := FENCE.match(bare):
                fence, opened = opening[0], index
        return found
