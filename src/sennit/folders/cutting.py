"""Cutting passages out of files, as far as these still are what was searched."""

from __future__ import annotations

import codecs
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Final

from sennit.folders.access import Folders, ReadError
from sennit.folders.grouping import Group
from sennit.folders.matching import Held
from sennit.folders.opening import said
from sennit.folders.options import GrepOptions
from sennit.folders.passages import Passage
from sennit.folders.ripgrep import shown

MAX_LINE: Final = 300
"""Characters shown of a line; of a longer one, those around its first match."""

MAX_PASSAGE: Final = 16 * 1024
"""Bytes of one passage. Matches that go on and on make no longer one, or nothing else would be in the answer."""

_BEFORE: Final = MAX_LINE // 4
_MOST_BYTES: Final = 4
"""Of a character."""
_WIDE: Final = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def read_text(folders: Folders, path: str, max_bytes: int) -> Text:
    """The lines of the file at a real path; raises ReadError."""
    opened = folders.open(Path(path))
    try:
        with FileIO(opened.descriptor) as file:
            size = opened.status.st_size
            # One byte more than there may be: a file that grows meanwhile is seen, and stays bounded.
            data = file.read(min(size, max_bytes) + 1) or b""
            while len(data) <= max_bytes and (more := file.read(max_bytes + 1 - len(data))):
                data += more
    except OSError as error:
        raise ReadError("UNREADABLE", f"it cannot be read: {said(error)}.") from error
    if len(data) > max_bytes:
        raise ReadError(
            "TOO_LARGE", f"it has {max(size, len(data)):,} bytes; passages are cut from {max_bytes:,}."
        )
    return Text(data)


class Text:
    """The bytes of a file, by line."""

    def __init__(self, data: bytes) -> None:
        for mark, encoding in _WIDE:
            # As ripgrep does, which then searches UTF-8.
            if data.startswith(mark):
                data = data[len(mark) :].decode(encoding, "replace").encode()
        self._data = data.removeprefix(codecs.BOM_UTF8)
        self._lines = self._data.split(b"\n")
        if not self._lines[-1]:
            self._lines.pop()

    def is_line(self, number: int, line: bytes) -> bool:
        """Whether this is the line of that number."""
        return number <= len(self._lines) and self._lines[number - 1] == line

    def has(self, number: int, match: bytes) -> bool:
        """Whether this is in the line of that number."""
        return number <= len(self._lines) and match in self._lines[number - 1]

    def lines(self, first: int, last: int) -> list[str]:
        """Lines by number, those that are there, without their ends."""
        data = b"\n".join(self._lines[first - 1 : last])
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = data.decode(self._encoding, "replace")
        return [line.removesuffix("\r") for line in text.replace("\0", "\ufffd").split("\n")]

    @property
    def _encoding(self) -> str:
        # Here and not above: the package around it is large, and most files are UTF-8.
        from sennit.ingest.reading import Unreadable, decode

        try:
            return decode(self._data).encoding
        except Unreadable:
            return "utf-8"


@dataclass(slots=True)
class Cutting:
    """Taking the best passages out of their files, until there are enough."""

    folders: Folders
    keywords: Sequence[str]
    options: GrepOptions
    held: Mapping[bytes, Held]
    whole: bool
    """Whether a match was given with its line and not alone."""
    passages: list[Passage] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    _texts: dict[str, Text | None] = field(default_factory=dict)

    def run(self, groups: Sequence[Group], deadline: float, *, more: bool) -> None:
        """Cut passages in this order; `more` says that there are others."""
        options, left = self.options, self.options.max_bytes
        why = f"the limit is {options.max_passages:,}" if more else ""
        for group in groups:
            if len(self.passages) == options.max_passages:
                why = f"the limit is {options.max_passages:,}"
                break
            if time.monotonic() > deadline:
                why = f"{options.seconds:g} seconds are over"
                break
            passage = self._passage(group)
            if passage is None:
                continue
            left -= len(passage.text.encode())
            if left < 0 and self.passages:
                why = f"the limit is {options.max_bytes:,} bytes of text"
                break
            self.passages.append(passage)
        if why:
            self.limits.append(f"Only the best {len(self.passages):,} passages are in the answer: {why}.")

    def _passage(self, group: Group) -> Passage | None:
        text = self._text(group.path)
        if text is None:
            return None
        matched: dict[int, str] = {}
        for number, raw in group.lines:
            match = self.held[raw].first
            if not (text.is_line(number, raw) if self.whole else text.has(number, match)):
                self._changed(group.path)
                return None
            if number not in matched:
                matched[number] = match.decode("utf-8", "replace")
        first = max(1, group.lines[0][0] - self.options.context)
        lines = text.lines(first, group.lines[-1][0] + self.options.context)
        shortened = [
            line if len(line) <= MAX_LINE else _short(line, matched.get(number, ""))
            for number, line in enumerate(lines, first)
        ]
        kept = _fitting(shortened, group.lines[0][0] - first + 1 + self.options.context)
        last = first + len(kept) - 1
        passage = Passage(
            path=shown(group.path),
            real=Path(group.path),
            first=first,
            last=last,
            text="\n".join(kept),
            matched=tuple(number for number in matched if number <= last),
            keywords=tuple(word for at, word in enumerate(self.keywords) if group.keywords >> at & 1),
            matches=group.matches,
        )
        if len(kept) < len(lines):
            end = first + len(lines) - 1
            self.limits.append(f"The passage {passage.citation} is cut: it goes on to line {end:,}.")
        return passage

    def _text(self, path: str) -> Text | None:
        if path not in self._texts:
            self._texts[path] = None
            try:
                self._texts[path] = read_text(self.folders, path, self.options.max_file_bytes)
            except ReadError as error:
                self.skipped.append(f"{shown(path)}: {error}")
        return self._texts[path]

    def _changed(self, path: str) -> None:
        """What was found there no longer is: none of its passages can be trusted."""
        self._texts[path] = None
        self.skipped.append(f"{shown(path)}: it changed while it was searched; search again")
        self.passages = [passage for passage in self.passages if str(passage.real) != path]


def _fitting(lines: list[str], least: int) -> list[str]:
    """As many of the lines as fit in a passage, and at least those around its first match."""
    if sum(map(len, lines)) + len(lines) <= MAX_PASSAGE // _MOST_BYTES:
        return lines
    size = 0
    for count, line in enumerate(lines):
        size += len(line.encode()) + 1
        if size > MAX_PASSAGE and count >= least:
            return lines[:count]
    return lines


def _short(line: str, match: str) -> str:
    """As much of a line as is shown when it is too long: the part around its first match."""
    start = max(0, min(line.find(match) - _BEFORE, len(line) - MAX_LINE))
    end = start + MAX_LINE
    before, after = "…" if start else "", "…" if end < len(line) else ""
    return f"{before}{line[start:end]}{after} [{len(line):,} characters]"
