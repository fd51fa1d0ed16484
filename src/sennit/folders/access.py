"""Reading text files for somebody who may see some folders and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Final

from sennit.errors import InvalidInput
from sennit.folders.by_path import open_by_path
from sennit.folders.opening import Hides, Opened, ReadError, Refusals, Root, open_by_steps, parts_of, said
from sennit.records import is_unicode

__all__ = ["DEFAULT_MAX_BYTES", "FileText", "Folders", "ReadError"]

DEFAULT_MAX_BYTES: Final = 10 * 1024 * 1024
"""More text than this is no answer to anybody; a part of it may be."""

MAX_SEARCHED: Final = 1 << 30
"""Bytes looked through for a range of lines: about a second."""

MAX_PATH: Final = 4096
"""Bytes; what Linux takes at once."""

BY_STEPS: Final = {os.open, os.stat, os.readlink} <= os.supports_dir_fd
"""Whether folders can be walked by descriptors here."""

_CHUNK: Final = 1 << 20
_MARK: Final = "\ufeff"


@dataclass(frozen=True, slots=True)
class FileText:
    """The text of a file or of some of its lines, exactly as it is there but for a byte-order mark."""

    path: str
    """Real and absolute."""
    text: str
    first: int
    last: int
    """The lines of the text, from 1, both ends included; 0 and 0 for an empty file."""
    lines: int
    """How many lines the file has. They end with \\n or \\r\\n, or with \\r where there is no \\n."""


class Folders:
    """Folders a caller may read from, and nothing outside them.

    `hides` says of a real path that this caller may not know of it: it is then as if it were not there.
    """

    def __init__(
        self,
        roots: Iterable[str | os.PathLike[str]],
        *,
        max_bytes: int = DEFAULT_MAX_BYTES,
        hides: Hides | None = None,
    ) -> None:
        if isinstance(roots, (str, os.PathLike)):
            raise InvalidInput("Folders takes a list of folders; put a single one into a list: [folder]")
        if type(max_bytes) is not int or max_bytes < 1:
            raise InvalidInput(f"max_bytes must be a number of bytes of at least 1, not {max_bytes!r}")
        given = [_folder_name(root) for root in roots]
        places = {os.path.realpath(name): Path(os.path.abspath(name)) for name in given}  # noqa: PTH100
        self.roots = tuple(Path(real) for real in places)
        """The allowed folders (or single files), by their real paths."""
        self.max_bytes = max_bytes
        self._given = tuple(places.values())
        self._hides = hides

    def read(self, path: str, lines: tuple[int, int] | None = None) -> FileText:
        """The text of a file, or of its lines from the first to the last of two numbers; raises ReadError.

        A relative path is looked for in each of the folders. A path is taken as it is: nothing in it is expanded or
        decoded.
        """
        _check_range(lines)
        refusals = Refusals(path, self.roots)
        opened = self._open(path, refusals)
        with FileIO(opened.descriptor) as file:
            return _Reading(refusals, opened, file, self.max_bytes).text(lines)

    def open(self, path: Path) -> Opened:
        """The open file at a real path, which the caller closes; raises ReadError."""
        return self._open_at(None, str(path), Refusals(str(path), self.roots))

    def shown(self, path: Path) -> str:
        """A real path as `read` takes it: relative where there is one folder, which makes it the shortest."""
        if len(self.roots) == 1 and path != self.roots[0] and path.is_relative_to(self.roots[0]):
            return path.relative_to(self.roots[0]).as_posix()
        return path.as_posix()

    def _open(self, path: str, refusals: Refusals) -> Opened:
        _check_path(path, refusals)
        if Path(path).is_absolute() or not self.roots:
            return self._open_at(None, path, refusals)
        errors: list[ReadError] = []
        for root in self.roots:
            try:
                # The name of an allowed single file is relative to where it is.
                return self._open_at(root.parent if root.is_file() else root, path, refusals)
            except ReadError as error:
                if error.code not in ("NOT_FOUND", "ACCESS_DENIED"):
                    raise
                errors.append(error)
        # Where one folder has no such file and another's would be outside, the second is worth knowing.
        raise min(errors, key=lambda error: error.code)

    def _open_at(self, base: Path | None, path: str, refusals: Refusals) -> Opened:
        if not BY_STEPS:
            whole = path if base is None else os.path.join(base, path)  # noqa: PTH118 - as it is, `..` and all
            return open_by_path(self.roots, self._given, whole, self._hides, refusals)
        roots = [
            Root(parts_of(str(real)), parts_of(str(given)))
            for real, given in zip(self.roots, self._given, strict=True)
        ]
        start = () if base is None else parts_of(str(base))
        return open_by_steps(roots, start, path, self._hides, refusals)


@dataclass(slots=True)
class _Reading:
    """One open file, looked through in pieces."""

    refusals: Refusals
    opened: Opened
    file: FileIO
    max_bytes: int

    def text(self, lines: tuple[int, int] | None) -> FileText:
        size = self.opened.status.st_size
        if lines is None and size > self.max_bytes:
            raise self._too_large(size, "Ask for a range of lines.")
        try:
            kept, offset, total = self._lines(lines)
        except OSError as error:
            raise self.refusals.unreadable(said(error)) from error
        first, last = lines or (min(1, total), total)
        if first > total and lines is not None:
            raise ReadError(
                "BAD_RANGE", f"{self.refusals.asked} has {total:,} lines; there is no line {first:,}."
            )
        try:
            text = kept.decode()
        except UnicodeDecodeError as error:
            raise self._not_text(offset + error.start, kept[error.start]) from error
        path = os.fsencode(self.opened.path).decode("utf-8", "backslashreplace")
        return FileText(
            path, text.removeprefix(_MARK) if not offset else text, first, min(last, total), total
        )

    def _lines(self, lines: tuple[int, int] | None) -> tuple[bytearray, int, int]:
        """The bytes of the wanted lines, where they begin, and how many lines there are in all."""
        first, last = lines or (1, 1 << 62)
        ending = self._ending()
        kept, begins = bytearray(), -1
        line, offset, final = 1, 0, ending
        while chunk := self.file.read(_CHUNK):
            self._refuse_zeros(chunk, offset)
            after = line + chunk.count(ending)
            if line <= last and after >= first:
                start = _after(chunk, ending, first - line) if line < first else 0
                end = _after(chunk, ending, last - line + 1) if after > last else len(chunk)
                begins = offset + start if begins < 0 else begins
                kept += chunk[start:end]
                if len(kept) > self.max_bytes:
                    raise self._too_large(
                        max(self.opened.status.st_size, offset + len(chunk)), "Ask for fewer lines."
                    )
            line, offset, final = after, offset + len(chunk), chunk[-1:]
            if offset > MAX_SEARCHED:
                raise self._too_large(
                    max(self.opened.status.st_size, offset),
                    f"Lines are found in files of up to {MAX_SEARCHED:,} bytes.",
                )
        return kept, max(begins, 0), line - (final == ending)

    def _ending(self) -> bytes:
        """What ends a line in this file."""
        offset = 0
        while (chunk := self.file.read(_CHUNK)) and offset <= MAX_SEARCHED:
            self._refuse_zeros(chunk, offset)
            offset += len(chunk)
            if b"\n" in chunk:
                break
        self.file.seek(0)
        return b"\n" if b"\n" in chunk else b"\r"

    def _refuse_zeros(self, chunk: bytes, offset: int) -> None:
        at = chunk.find(0)
        if at >= 0:
            raise self._not_text(offset + at, 0)

    def _not_text(self, offset: int, byte: int) -> ReadError:
        return ReadError(
            "NOT_TEXT", f"{self.refusals.asked} is not UTF-8 text: byte 0x{byte:02x} at offset {offset:,}."
        )

    def _too_large(self, size: int, advice: str) -> ReadError:
        most = f"the most at once is {self.max_bytes:,}"
        return ReadError("TOO_LARGE", f"{self.refusals.asked} has {size:,} bytes; {most}. {advice}")


def _after(chunk: bytes, ending: bytes, count: int) -> int:
    """The place in a chunk after so many line endings, which are in it."""
    at = 0
    for _ in range(count):
        at = chunk.index(ending, at) + 1
    return at


def _folder_name(root: object) -> str:
    name = os.fspath(root) if isinstance(root, (str, os.PathLike)) else None
    if not isinstance(name, str) or not name or "\0" in name:
        raise InvalidInput(f"Folders takes paths of folders, not {root!r}")
    return name


def _check_path(path: object, refusals: Refusals) -> None:
    if not isinstance(path, str):
        raise refusals.bad_path("it is not a text")
    if not path:
        raise refusals.bad_path("it is empty")
    if "\0" in path:
        raise refusals.bad_path("it has a zero character")
    if not is_unicode(path):
        raise refusals.bad_path("it has a lone surrogate")
    if len(path.encode()) > MAX_PATH:
        raise refusals.bad_path(f"it is longer than {MAX_PATH:,} bytes")


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
            "BAD_RANGE", f"A range of lines is the first and the last, from 1, not {str(lines)[:80]!r}."
        )
