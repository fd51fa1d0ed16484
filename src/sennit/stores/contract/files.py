"""The manifest: which files were indexed, and as they were then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol


class FileRow(NamedTuple):
    """One reading of a file, as it was then. A tuple, because an index run compares tens of thousands."""

    folder: str
    """The key of the folder."""
    path: str
    """Relative to the folder."""
    target: str
    """The collection of an additional reading; empty for the reading by kind."""
    place: str
    """The parent of its records, and what their ids begin with."""
    other_parents: str
    """The further parents of its records, as JSON; empty if there are none."""
    reader: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    hash: bytes
    records: int
    """How many records of it have the place as their parent."""
    problem: str | None
    """Why the file has no records, if it could not be read as text."""


class FileManifest(Protocol):
    """The files that were indexed. Typed, because an index run compares tens of thousands of them with the disk."""

    def under(self, folder: str, path: str = "") -> Iterator[tuple[FileRow, bool]]:
        """The files of a folder at or below a path. The flag is False when some of a file's records were removed."""
        ...

    def parents_of(self, folder: str, path: str) -> list[str]:
        """The parents of all records of a file."""
        ...

    def places_named(self, names: frozenset[str]) -> list[str]:
        """The places of files whose last component is one of these names, sorted."""
        ...
