"""Scans the syntax that MDX adds to Markdown: import and export statements, and JSX with JavaScript inside.

A tag or an expression is one block, even over several lines, so that code in a prop (the source of an interactive
example) is not read as Markdown. The text between two tags is ordinary Markdown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_TAG: Final = re.compile(r"</?(?:[A-Za-z][\w.:-]*)?(?=[\s/>{]|\Z)")
_OPENING: Final = re.compile(r"</?[A-Za-z>][\w.:-]*|\{")
_IMPORT: Final = re.compile(r"import(?:\s+[\w*{$]|\s*[\"'{])")
_IMPORT_DONE: Final = re.compile(r"(?:from\s*|^import\s*)[\"'][^\"']*[\"']\s*;?\s*(?://.*)?\Z")
_EXPORT: Final = re.compile(r"export\s+(?:const|let|var|function|default|class|async|\{|\*)")
_IN_TAG: Final = re.compile(r"[\"'{>]")
_IN_SCRIPT: Final = re.compile(r"[\"'`{}]|//|/\*")
_IN_TEMPLATE: Final = re.compile(r"\\.|`|\$\{")
_QUOTED: Final = {'"': re.compile(r'"'), "'": re.compile(r"'")}
_STRING: Final = {'"': re.compile(r'\\.|"'), "'": re.compile(r"\\.|'")}

MAX_LINES: Final = 500
"""A tag that is not closed within this many lines is not a tag."""


class JsxScanner:
    """Finds where tags, expressions and statements end."""

    __slots__ = ("_broken_until", "_lines")

    def __init__(self, lines: Sequence[str]) -> None:
        self._lines = lines
        self._broken_until = 0
        """No tag is closed up to this line, so the lines before it are not scanned again."""

    def import_end(self, at: int, stop: int) -> int:
        """Return the line after an import; 0 if none starts here."""
        lines = self._lines
        if not _IMPORT.match(lines[at]):
            return 0
        for index in range(at, min(stop, at + MAX_LINES)):
            if not lines[index].strip():
                return 0
            if _IMPORT_DONE.search(lines[index]):
                return index + 1
        return 0

    def export_end(self, at: int, stop: int) -> int:
        """Return the line after an exported statement; 0 if none starts here."""
        if not _EXPORT.match(self._lines[at]):
            return 0
        return self._script_end(at, stop)

    def end(self, at: int, stop: int) -> int:
        """Return the line after the tags and expressions that start on this line; 0 if none does."""
        line = self._lines[at]
        place = len(line) - len(line.lstrip(" \t"))
        if line[place] == "<" and (not _TAG.match(line, place) or at < self._broken_until):
            return 0
        index = at
        while True:
            opening = _OPENING.search(self._lines[index], place)
            if opening is None:
                return index + 1
            inside = self._tag if opening[0][0] == "<" else self._script
            ended = inside(index, opening.end(), min(stop, at + MAX_LINES))
            if ended is None:
                self._broken_until = min(stop, at + MAX_LINES)
                return index if index > at else 0
            index, place = ended

    def _tag(self, index: int, place: int, stop: int) -> tuple[int, int] | None:
        """Return the position after the > of a tag."""
        if self._lines[index][place - 1] == ">":
            return index, place
        while index < stop:
            found = _IN_TAG.search(self._lines[index], place)
            if found is None:
                index, place = index + 1, 0
                continue
            mark, place = found[0], found.end()
            if mark == ">":
                return index, place
            ended = (
                self._script(index, place, stop)
                if mark == "{"
                else self._until(_QUOTED[mark], index, place, stop)
            )
            if ended is None:
                return None
            index, place = ended
        return None

    def _script(self, index: int, place: int, stop: int) -> tuple[int, int] | None:
        """Return the position after the } of a JavaScript expression. Braces in strings and comments do not count."""
        inside = ["{"]
        while index < stop:
            line = self._lines[index]
            found = (_IN_TEMPLATE if inside[-1] == "`" else _IN_SCRIPT).search(line, place)
            if found is None:
                index, place = index + 1, 0
                continue
            mark, place = found[0], found.end()
            if inside[-1] == "`":
                if mark == "`":
                    inside.pop()
                elif mark == "${":
                    inside.append("{")
            elif mark == "{" or mark == "`":
                inside.append(mark)
            elif mark == "}":
                inside.pop()
                if not inside:
                    return index, place
            elif mark == "//":
                index, place = index + 1, 0
            elif mark == "/*":
                ended = self._until(_COMMENT_END, index, place, stop)
                if ended is None:
                    return None
                index, place = ended
            else:
                place = _after_string(line, mark, place)
        return None

    def _until(self, pattern: re.Pattern[str], index: int, place: int, stop: int) -> tuple[int, int] | None:
        while index < stop:
            if found := pattern.search(self._lines[index], place):
                return index, found.end()
            index, place = index + 1, 0
        return None

    def _script_end(self, at: int, stop: int) -> int:
        """Return the line after a statement: its brackets are closed, and a blank line or the end follows."""
        index = at
        while index < stop and self._lines[index].strip():
            opening = self._lines[index].rfind("{")
            if opening >= 0 and "}" not in self._lines[index][opening:]:
                ended = self._script(index, opening + 1, min(stop, at + MAX_LINES))
                if ended is not None:
                    index = ended[0]
            index += 1
        return index


_COMMENT_END: Final = re.compile(r"\*/")


def _after_string(line: str, mark: str, place: int) -> int:
    """Return the position after a string, or the end of the line if it is not closed: a quote may be an apostrophe."""
    for found in _STRING[mark].finditer(line, place):
        if found[0] == mark:
            return found.end()
    return len(line)
