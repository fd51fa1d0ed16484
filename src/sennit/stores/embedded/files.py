"""The tables of indexed files and indexed folders."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from sennit.stores.embedded.sqlite import SqlitePool

COLUMNS: Final = "path, collection, reader, size, mtime_ns, ctime_ns, inode, hash, records, problem"


class FileRow(NamedTuple):
    """One file as it was when it was last read. A tuple, because an index run compares tens of thousands."""

    path: str
    collection: str
    reader: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    hash: bytes
    records: int
    """How many records came from the file."""
    problem: str | None
    """Why the file has no records, if it could not be read as text."""


class FileTable:
    """The table of files. Its writing methods take a connection: they share a transaction with the records."""

    def __init__(self, sqlite: SqlitePool) -> None:
        self._sqlite = sqlite

    def under(self, root: str) -> Iterator[tuple[FileRow, bool]]:
        """The files at or below a path. The flag is False when some of a file's records were removed since."""
        low, high = path_range(root)
        is_complete = "(SELECT count(*) FROM records r WHERE r.parent = f.path) >= f.records"
        select = f"SELECT {COLUMNS}, {is_complete} FROM files f WHERE"
        with self._sqlite.read() as connection:
            # A UNION ALL of two queries: for one query with OR, SQLite would sort the result.
            found = connection.execute(
                f"{select} path = ? UNION ALL {select} path >= ? AND path < ?", (root, low, high)
            ).fetchall()
        for *values, complete in found:
            yield FileRow._make(values), bool(complete)

    @staticmethod
    def upsert(connection: sqlite3.Connection, rows: Iterable[FileRow]) -> None:
        """Add or replace rows."""
        connection.executemany(f"INSERT OR REPLACE INTO files ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?)", rows)

    @staticmethod
    def delete(connection: sqlite3.Connection, paths: Iterable[str]) -> None:
        """Delete the rows of files; their records are deleted separately."""
        connection.executemany("DELETE FROM files WHERE path = ?", ((path,) for path in paths))

    @staticmethod
    def paths_named(connection: sqlite3.Connection, names: frozenset[str]) -> list[str]:
        """The paths whose last component is one of these names, sorted; one scan over the paths."""
        found = connection.execute("SELECT path FROM files ORDER BY path")
        return [path for (path,) in found if path.rpartition("/")[2] in names]

    @staticmethod
    def record_ids(connection: sqlite3.Connection, path: str, prefixes: tuple[str, ...]) -> list[str]:
        """The ids of a file's records: the file is their parent, and their ids have one of its prefixes."""
        found = connection.execute("SELECT id FROM records WHERE parent = ? AND path = ?", (path, path))
        return [record_id for (record_id,) in found if record_id == path or record_id.startswith(prefixes)]


class FolderTable:
    """The folders that were indexed as a whole; unless the settings name folders, grep and read may use these."""

    def __init__(self, sqlite: SqlitePool) -> None:
        self._sqlite = sqlite

    def paths(self) -> list[str]:
        """The indexed folders, sorted."""
        with self._sqlite.read() as connection:
            return [path for (path,) in connection.execute("SELECT path FROM folders ORDER BY path")]

    def add(self, paths: Iterable[str]) -> None:
        """Record folders as indexed."""
        known = set(self.paths())
        new = [(path,) for path in paths if path not in known]
        if new:
            with self._sqlite.write() as connection:
                connection.executemany("INSERT OR IGNORE INTO folders VALUES (?)", new)


def path_range(folder: str) -> tuple[str, str]:
    """The range of paths inside a folder: from `folder/` up to, not including, `folder0` ('0' follows '/')."""
    stem = folder.rstrip("/")
    return f"{stem}/", f"{stem}0"
