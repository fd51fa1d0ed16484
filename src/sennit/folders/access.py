"""Reading text files for a caller who may read some folders and nothing else."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Final

from sennit.errors import InvalidInput
from sennit.folders.safe_open import (
    IsHidden,
    OpenedFile,
    ReadError,
    ReadErrors,
    Root,
    open_by_descriptors,
    os_reason,
    path_parts,
)
from sennit.folders.windows_open import open_by_path
from sennit.places import Fragment, parse_fragment, shown_path
from sennit.records import is_unicode

__all__ = ["DEFAULT_MAX_BYTES", "FileText", "Folders", "ReadError", "parse_location"]

DEFAULT_MAX_BYTES: Final = 10 * 1024 * 1024
"""The most text that one read returns. A caller can ask for a range of lines of a larger file."""

MAX_SCANNED_BYTES: Final = 1 << 30
"""How far a file is scanned for a range of lines; takes about a second."""

MAX_PARSED_BYTES: Final = 32 * 1024 * 1024
"""The largest file of which a part is read that its format must be parsed for; as large as indexing reads by default."""

MAX_PATH_BYTES: Final = 4096
"""The limit of Linux."""

HAS_DIR_FD: Final = {os.open, os.stat, os.readlink} <= os.supports_dir_fd
"""Whether this platform can open a file relative to the descriptor of a folder."""

_CHUNK_BYTES: Final = 1 << 20
_LOCATION: Final = re.compile(r"(.+):([0-9]{1,15})(?:-([0-9]{1,15}))?", re.DOTALL)
_BYTE_ORDER_MARK: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class FileText:
    """The exact text of a file, or of some of its lines, without a byte-order mark."""

    path: str
    """The real path, relative to the current folder where that is shorter."""
    text: str
    first: int
    last: int
    """The first and the last line of the text, from 1; both are 0 for an empty file."""
    lines: int
    """The number of lines in the file. Lines end with \\n or \\r\\n, or with \\r if there is no \\n."""
    unit: str = "line"
    """What `first`, `last` and `lines` count: lines, or the parts of a file without any, such as `cell` or `row`."""

    @property
    def location(self) -> str:
        """The path with the part of the file, as a citation has it."""
        if self.unit == "line":
            return f"{self.path}:{self.first}-{self.last}"
        return f"{self.path}#{Fragment(self.unit, self.first, self.last)}"


def parse_location(text: str) -> tuple[str, tuple[int, int]] | None:
    """Return path and lines of a location such as `a.md:10-20` or `a.md:10`; None for any other text."""
    found = _LOCATION.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        return None
    path, first, last = found.groups()
    lines = (int(first), int(last or first))
    return (path, lines) if 1 <= lines[0] <= lines[1] else None


def file_of(text: str) -> str:
    """Return the path in a citation of a part of a file; any other text as it is."""
    location, cited = parse_location(text), parse_fragment(text)
    return location[0] if location else cited[0] if cited else text


class Folders:
    """Folders that a caller may read from, and nothing outside them.

    If `is_hidden` returns true for a real path, reading behaves as if nothing existed there.
    """

    def __init__(
        self,
        roots: Iterable[str | os.PathLike[str]],
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        is_hidden: IsHidden | None = None,
    ) -> None:
        if isinstance(roots, (str, os.PathLike)):
            raise InvalidInput("Folders takes a list of folders; put a single folder into a list: [folder]")
        if type(max_bytes) is not int or max_bytes < 1:
            raise InvalidInput(f"max_bytes must be a number of bytes of at least 1, not {max_bytes!r}")
        names = [_folder_name(root) for root in roots]
        by_real_path = {os.path.realpath(name): Path(os.path.abspath(name)) for name in names}  # noqa: PTH100
        self.roots = tuple(Path(real) for real in by_real_path)
        """The allowed folders (or single files), by their real paths."""
        self.max_bytes = max_bytes
        self._given = tuple(by_real_path.values())
        self._is_hidden = is_hidden

    def read(self, path: str, lines: tuple[int, int] | None = None) -> FileText:
        """Read a file, or its lines from the first to the last of two numbers; raises ReadError.

        A relative path is looked up in each of the folders. Nothing in a path is expanded or decoded. If there is no
        such file and no lines are given, `path:10-20` means these lines, as in a citation, and `path#cell=3` this part
        of a file that is not text.
        """
        try:
            return self._read(path, lines)
        except ReadError as error:
            is_missing = lines is None and error.code == "NOT_FOUND"
            location = parse_location(path) if is_missing else None
            cited = parse_fragment(path) if is_missing else None
            part = None if cited is None else self._read_part(*cited)
            if part is not None:
                return part
            if location is None:
                raise
        return self._read(*location)

    def _read(self, path: str, lines: tuple[int, int] | None) -> FileText:
        _check_range(lines)
        errors = ReadErrors(path, self.roots)
        opened = self._open(path, errors)
        with FileIO(opened.descriptor) as file:
            return _FileReader(errors, opened, file, self.max_bytes).read(lines)

    def _read_part(self, path: str, fragment: Fragment) -> FileText | None:
        """Read what a fragment names, by the reader that indexes such files; None if it counts lines."""
        # The readers of formats are not loaded for plain text.
        from sennit.ingest.file_reader import UnreadableFile
        from sennit.ingest.parts import MissingUnit, TooMuchText, read_part

        errors = ReadErrors(path, self.roots)
        opened = self._open(path, errors)
        with FileIO(opened.descriptor) as file:
            data = _FileReader(errors, opened, file, MAX_PARSED_BYTES).read_bytes()
        try:
            part = read_part(str(opened.path), data, fragment, self.max_bytes)
        except UnreadableFile as error:
            raise errors.unreadable(str(error)) from error
        except MissingUnit as error:
            raise ReadError("BAD_RANGE", f"{errors.path} has no such part: {error}.") from error
        except TooMuchText:
            limit = f"the limit is {self.max_bytes:,} bytes"
            raise ReadError("TOO_LARGE", f"{fragment} of {errors.path} is too long; {limit}.") from None
        if part is None:
            return None
        found = part.fragment
        return FileText(_shown(opened.path), part.text, found.first, found.last, part.count, found.unit)

    def open(self, path: Path) -> OpenedFile:
        """Open the file at a real path; the caller closes it. Raises ReadError."""
        return self._open_at(None, str(path), ReadErrors(str(path), self.roots))

    def _open(self, path: str, errors: ReadErrors) -> OpenedFile:
        _check_path(path, errors)
        if Path(path).is_absolute() or not self.roots:
            return self._open_at(None, path, errors)
        failures: list[ReadError] = []
        for root in self.roots:
            try:
                # If the root is a single file, a relative path starts at its folder.
                return self._open_at(root.parent if root.is_file() else root, path, errors)
            except ReadError as error:
                if error.code not in ("NOT_FOUND", "ACCESS_DENIED"):
                    raise
                failures.append(error)
        # ACCESS_DENIED tells the caller more than NOT_FOUND, and sorts before it.
        raise min(failures, key=lambda error: error.code)

    def _open_at(self, base: Path | None, path: str, errors: ReadErrors) -> OpenedFile:
        if not HAS_DIR_FD:
            whole = path if base is None else os.path.join(base, path)  # noqa: PTH118 - keeps `..` in the path
            return open_by_path(self.roots, self._given, whole, self._is_hidden, errors)
        roots = [
            Root(path_parts(str(real)), path_parts(str(given)))
            for real, given in zip(self.roots, self._given, strict=True)
        ]
        start = () if base is None else path_parts(str(base))
        return open_by_descriptors(roots, start, path, self._is_hidden, errors)


@dataclass(slots=True)
class _FileReader:
    """Reads one open file in chunks."""

    errors: ReadErrors
    opened: OpenedFile
    file: FileIO
    max_bytes: int

    def read(self, lines: tuple[int, int] | None) -> FileText:
        size = self.opened.status.st_size
        if lines is None and size > self.max_bytes:
            raise self._too_large(size, "Ask for a range of lines.")
        try:
            kept, offset, total = self._read_lines(lines)
        except OSError as error:
            raise self.errors.unreadable(os_reason(error)) from error
        first, last = lines or (min(1, total), total)
        if first > total and lines is not None:
            raise ReadError(
                "BAD_RANGE", f"{self.errors.path} has {total:,} lines; there is no line {first:,}."
            )
        try:
            text = kept.decode()
        except UnicodeDecodeError as error:
            raise self._not_text(offset + error.start, kept[error.start]) from error
        shown = text.removeprefix(_BYTE_ORDER_MARK) if not offset else text
        return FileText(_shown(self.opened.path), shown, first, min(last, total), total)

    def read_bytes(self) -> bytes:
        """The whole file."""
        advice = "Larger files are not parsed."
        size = self.opened.status.st_size
        if size > self.max_bytes:
            raise self._too_large(size, advice)
        data = bytearray()
        try:
            while chunk := self.file.read(_CHUNK_BYTES):
                data += chunk
                if len(data) > self.max_bytes:
                    raise self._too_large(len(data), advice)
        except OSError as error:
            raise self.errors.unreadable(os_reason(error)) from error
        return bytes(data)

    def _read_lines(self, lines: tuple[int, int] | None) -> tuple[bytearray, int, int]:
        """The bytes of the requested lines, their offset, and the number of lines in the file."""
        first, last = lines or (1, 1 << 62)
        ending = self._line_ending()
        kept, kept_from = bytearray(), -1
        line, offset, final = 1, 0, ending
        while chunk := self.file.read(_CHUNK_BYTES):
            self._reject_zeros(chunk, offset)
            after = line + chunk.count(ending)
            if line <= last and after >= first:
                start = _position_after(chunk, ending, first - line) if line < first else 0
                end = _position_after(chunk, ending, last - line + 1) if after > last else len(chunk)
                kept_from = offset + start if kept_from < 0 else kept_from
                kept += chunk[start:end]
                if len(kept) > self.max_bytes:
                    raise self._too_large(
                        max(self.opened.status.st_size, offset + len(chunk)), "Ask for fewer lines."
                    )
            line, offset, final = after, offset + len(chunk), chunk[-1:]
            if offset > MAX_SCANNED_BYTES:
                raise self._too_large(
                    max(self.opened.status.st_size, offset),
                    f"Ranges of lines are read from files of up to {MAX_SCANNED_BYTES:,} bytes.",
                )
        return kept, max(kept_from, 0), line - (final == ending)

    def _line_ending(self) -> bytes:
        """The line ending of this file."""
        offset = 0
        while (chunk := self.file.read(_CHUNK_BYTES)) and offset <= MAX_SCANNED_BYTES:
            self._reject_zeros(chunk, offset)
            offset += len(chunk)
            if b"\n" in chunk:
                break
        self.file.seek(0)
        return b"\n" if b"\n" in chunk else b"\r"

    def _reject_zeros(self, chunk: bytes, offset: int) -> None:
        index = chunk.find(0)
        if index >= 0:
            raise self._not_text(offset + index, 0)

    def _not_text(self, offset: int, byte: int) -> ReadError:
        return ReadError(
            "NOT_TEXT", f"{self.errors.path} is not UTF-8 text: byte 0x{byte:02x} at offset {offset:,}."
        )

    def _too_large(self, size: int, advice: str) -> ReadError:
        limit = f"the limit is {self.max_bytes:,}"
        return ReadError("TOO_LARGE", f"{self.errors.path} has {size:,} bytes; {limit}. {advice}")


def _shown(path: Path) -> str:
    return shown_path(os.fsencode(path).decode("utf-8", "backslashreplace"))


def _position_after(chunk: bytes, ending: bytes, count: int) -> int:
    """The position in a chunk after its first `count` line endings."""
    at = 0
    for _ in range(count):
        at = chunk.index(ending, at) + 1
    return at


def _folder_name(root: object) -> str:
    name = os.fspath(root) if isinstance(root, (str, os.PathLike)) else None
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidInput(f"Folders takes paths of folders, not {root!r}")
    return name


def _check_path(path: object, errors: ReadErrors) -> None:
    if not isinstance(path, str):
        raise errors.bad_path("it is not a string")
    if not path:
        raise errors.bad_path("it is empty")
    if "\0" in path:
        raise errors.bad_path("it contains a zero character")
    if not is_unicode(path):
        raise errors.bad_path("it contains a lone surrogate")
    if len(path.encode()) > MAX_PATH_BYTES:
        raise errors.bad_path(f"it is longer than {MAX_PATH_BYTES:,} bytes")


def _check_range(lines: object) -> None:
    if lines is None:
        return
    numbers = tuple(lines) if isinstance(lines, (tuple, list)) else ()
    if (
        len(numbers) != 2
        or any(type(number) is not int for number in numbers)
        or not 1 <= numbers[0] <= numbers[1]
    ):
        raise ReadError(
            "BAD_RANGE",
            f"A range of lines is its first and last line, counted from 1, not {str(lines)[:80]!r}.",
        )
