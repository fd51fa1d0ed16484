"""Which files have become records, and how each looked when it was read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from sennit.stores.embedded.sqlite import SqlitePool

COLUMNS: Final = "path, collection, reader, size, mtime_ns, ctime_ns, inode, hash, records, problem"


class FileRow(NamedTuple):
    """One file as it was last read. A tuple: an index run compares tens of thousands."""

    path: str
    collection: str
    reader: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    hash: bytes
    records: int
    problem: str | None
    """Why it has no records, when it could not be read as text."""


class FileTable:
    """The table of files. Its writing parts take a connection: they belong into a transaction with the records."""

    def __init__(self, database: SqlitePool) -> None:
        self._database = database

    def under(self, root: str) -> Iterator[tuple[FileRow, bool]]:
        """The files at or below a path; False marks one of which records have been removed since."""
        low, high = below(root)
        held = "(SELECT count(*) FROM records r WHERE r.parent = f.path) >= f.records"
        select = f"SELECT {COLUMNS}, {held} FROM files f WHERE"
        with self._database.read() as connection:
            # Two questions: of one with OR, SQLite would sort the answers.
            found = connection.execute(
                f"{select} path = ? UNION ALL {select} path >= ? AND path < ?", (root, low, high)
            ).fetchall()
        for *values, whole in found:
            yield FileRow._make(values), bool(whole)

    @staticmethod
    def put(connection: sqlite3.Connection, rows: Iterable[FileRow]) -> None:
        """Add or replace rows."""
        connection.executemany(f"INSERT OR REPLACE INTO files ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?)", rows)

    @staticmethod
    def drop(connection: sqlite3.Connection, paths: Iterable[str]) -> None:
        """Forget files."""
        connection.executemany("DELETE FROM files WHERE path = ?", ((path,) for path in paths))

    @staticmethod
    def called(connection: sqlite3.Connection, names: frozenset[str]) -> list[str]:
        """The paths of the files that have one of these names, in order; one pass over paths alone."""
        found = connection.execute("SELECT path FROM files ORDER BY path")
        return [path for (path,) in found if path.rpartition("/")[2] in names]

    @staticmethod
    def records_of(connection: sqlite3.Connection, path: str, prefixes: tuple[str, ...]) -> list[str]:
        """The ids of a file's records: those it is the parent of, and whose ids begin as its ids do."""
        found = connection.execute("SELECT id FROM records WHERE parent = ? AND path = ?", (path, path))
        return [name for (name,) in found if name == path or name.startswith(prefixes)]


def below(root: str) -> tuple[str, str]:
    """The range of paths inside a folder: from `folder/` up to, not including, `folder0`."""
    stem = root.rstrip("/")
    return f"{stem}/", f"{stem}0"
