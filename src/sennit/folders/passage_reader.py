"""Reading passages from the files that matched, if they did not change since the search."""

from __future__ import annotations

import codecs
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path
from typing import Final

from sennit.folders.access import Folders, ReadError
from sennit.folders.matches import KeywordMatch, MatchGroup
from sennit.folders.options import GrepOptions
from sennit.folders.passages import Passage
from sennit.folders.ripgrep import path_to_text
from sennit.folders.safe_open import os_reason
from sennit.places import shown_path

MAX_LINE_CHARACTERS: Final = 300
"""A longer line is shortened to the part around its first match."""

MAX_PASSAGE_BYTES: Final = 16 * 1024
"""The most bytes of one passage, so that a long run of matches does not fill the whole result."""

_CONTEXT_BEFORE_MATCH: Final = MAX_LINE_CHARACTERS // 4
_MAX_BYTES_PER_CHARACTER: Final = 4
_UTF16_MARKS: Final = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


def read_lines(folders: Folders, path: str, max_bytes: int) -> FileLines:
    """Read the lines of the file at a real path; raises ReadError."""
    opened = folders.open(Path(path))
    try:
        with FileIO(opened.descriptor) as file:
            size = opened.status.st_size
            # Read up to one byte past the limit, to notice a file that grows while it is read.
            data = file.read(min(size, max_bytes) + 1) or b""
            while len(data) <= max_bytes and (more := file.read(max_bytes + 1 - len(data))):
                data += more
    except OSError as error:
        raise ReadError("UNREADABLE", f"it cannot be read: {os_reason(error)}.") from error
    if len(data) > max_bytes:
        raise ReadError(
            "TOO_LARGE", f"it has {max(size, len(data)):,} bytes; the limit for passages is {max_bytes:,}."
        )
    return FileLines(data)


class FileLines:
    """The lines of a file, as bytes."""

    def __init__(self, data: bytes) -> None:
        for mark, encoding in _UTF16_MARKS:
            # ripgrep also converts UTF-16 to UTF-8 before it searches.
            if data.startswith(mark):
                data = data[len(mark) :].decode(encoding, "replace").encode()
        self._data = data.removeprefix(codecs.BOM_UTF8)
        self._lines = self._data.split(b"\n")
        if not self._lines[-1]:
            self._lines.pop()

    def is_line(self, number: int, line: bytes) -> bool:
        """Whether the line with this number is `line`."""
        return number <= len(self._lines) and self._lines[number - 1] == line

    def contains(self, number: int, match: bytes) -> bool:
        """Whether the line with this number contains `match`."""
        return number <= len(self._lines) and match in self._lines[number - 1]

    def decode_range(self, first: int, last: int) -> list[str]:
        """Decode a range of lines, as far as they exist, without line endings."""
        data = b"\n".join(self._lines[first - 1 : last])
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = data.decode(self._encoding, "replace")
        return [line.removesuffix("\r") for line in text.replace("\0", "\ufffd").split("\n")]

    @property
    def _encoding(self) -> str:
        # A local import: sennit.ingest is large, and most files are UTF-8.
        from sennit.ingest.file_reader import UnreadableFile, decode

        try:
            return decode(self._data).encoding
        except UnreadableFile:
            return "utf-8"


@dataclass(slots=True)
class PassageReader:
    """Reads the passages of the best groups from their files, until there are enough."""

    folders: Folders
    keywords: Sequence[str]
    options: GrepOptions
    found: Mapping[bytes, KeywordMatch]
    whole_lines: bool
    """Whether the groups hold whole lines and not only matches."""
    passages: list[Passage] = field(default_factory=list)
    limits: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    _files: dict[str, FileLines | None] = field(default_factory=dict)

    def read_passages(self, groups: Sequence[MatchGroup], deadline: float, *, has_more: bool) -> None:
        """Read the passages of the groups in order; `has_more` says that other groups were not kept."""
        options, bytes_left = self.options, self.options.max_bytes
        reason = f"the limit is {options.max_passages:,}" if has_more else ""
        for group in groups:
            if len(self.passages) == options.max_passages:
                reason = f"the limit is {options.max_passages:,}"
                break
            if time.monotonic() > deadline:
                reason = f"the time limit is {options.seconds:g} seconds"
                break
            passage = self._read_passage(group)
            if passage is None:
                continue
            bytes_left -= len(passage.text.encode())
            if bytes_left < 0 and self.passages:
                reason = f"the limit is {options.max_bytes:,} bytes of text"
                break
            self.passages.append(passage)
        if reason:
            self.limits.append(f"Only the best {len(self.passages):,} passages are in the result: {reason}.")

    def _read_passage(self, group: MatchGroup) -> Passage | None:
        file_lines = self._read_file(group.path)
        if file_lines is None:
            return None
        matched: dict[int, str] = {}
        for number, raw in group.lines:
            match = self.found[raw].first
            if not (
                file_lines.is_line(number, raw) if self.whole_lines else file_lines.contains(number, match)
            ):
                self._skip_changed(group.path)
                return None
            if number not in matched:
                matched[number] = match.decode("utf-8", "replace")
        first = max(1, group.lines[0][0] - self.options.context)
        lines = file_lines.decode_range(first, group.lines[-1][0] + self.options.context)
        shortened = [
            line if len(line) <= MAX_LINE_CHARACTERS else _shorten(line, matched.get(number, ""))
            for number, line in enumerate(lines, first)
        ]
        kept = _take_fitting(shortened, group.lines[0][0] - first + 1 + self.options.context)
        last = first + len(kept) - 1
        passage = Passage(
            path=shown_path(path_to_text(group.path)),
            real=Path(group.path),
            first=first,
            last=last,
            text="\n".join(kept),
            matched=tuple(number for number in matched if number <= last),
            keywords=tuple(word for index, word in enumerate(self.keywords) if group.keywords >> index & 1),
            matches=group.matches,
        )
        if len(kept) < len(lines):
            end = first + len(lines) - 1
            self.limits.append(f"The passage {passage.citation} is cut: it continues to line {end:,}.")
        return passage

    def _read_file(self, path: str) -> FileLines | None:
        if path not in self._files:
            self._files[path] = None
            try:
                self._files[path] = read_lines(self.folders, path, self.options.max_file_bytes)
            except ReadError as error:
                self.skipped.append(f"{path_to_text(path)}: {error}")
        return self._files[path]

    def _skip_changed(self, path: str) -> None:
        """Skip a file that changed after the search: none of its passages is reliable."""
        self._files[path] = None
        self.skipped.append(f"{path_to_text(path)}: it changed during the search; search again")
        self.passages = [passage for passage in self.passages if str(passage.real) != path]


def _take_fitting(lines: list[str], min_lines: int) -> list[str]:
    """The lines that fit in a passage, but at least `min_lines`, which include the first match."""
    if sum(map(len, lines)) + len(lines) <= MAX_PASSAGE_BYTES // _MAX_BYTES_PER_CHARACTER:
        return lines
    size = 0
    for count, line in enumerate(lines):
        size += len(line.encode()) + 1
        if size > MAX_PASSAGE_BYTES and count >= min_lines:
            return lines[:count]
    return lines


def _shorten(line: str, match: str) -> str:
    """Shorten a long line to the part around its first match."""
    start = max(0, min(line.find(match) - _CONTEXT_BEFORE_MATCH, len(line) - MAX_LINE_CHARACTERS))
    end = start + MAX_LINE_CHARACTERS
    before, after = "…" if start else "", "…" if end < len(line) else ""
    return f"{before}{line[start:end]}{after} [{len(line):,} characters]"
