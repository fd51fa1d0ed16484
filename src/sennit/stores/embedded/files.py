"""The tables of indexed files and indexed folders."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from sennit.records import CHUNK_COLLECTION, split_id
from sennit.stores.embedded.transaction import Transaction
from sennit.stores.sql.connection import SqlPool

COLUMNS: Final = "path, collection, reader, size, mtime_ns, ctime_ns, inode, hash, records, problem"


_INDEXED_AT: Final = "indexed "
"""Before the path of a folder: the key of its last index run in the table `state`."""

_UPDATES: Final = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS.split(", ")[1:])


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


class FileManifest:
    """The manifest of indexed files. Its writing methods take part in the transaction that writes the records."""

    def __init__(self, pool: SqlPool) -> None:
        self._pool = pool

    def under(self, root: str) -> Iterator[tuple[FileRow, bool]]:
        """The files at or below a path. The flag is False when some of a file's records were removed since."""
        low, high = path_range(root)
        with self._pool.read() as connection:
            from_file = connection.dialect.same_text("r.parent", "f.path")
            is_complete = f"(SELECT count(*) FROM records r WHERE {from_file}) >= f.records"
            select = f"SELECT {COLUMNS}, {is_complete} FROM files f WHERE"
            # A UNION ALL of two queries: for one query with OR, SQLite would sort the result.
            found = connection.execute(
                f"{select} path = ? UNION ALL {select} path >= ? AND path < ?", (root, low, high)
            ).fetchall()
        for *values, complete in found:
            yield FileRow._make(values), bool(complete)

    @staticmethod
    def upsert(transaction: Transaction, rows: Iterable[FileRow]) -> None:
        """Add or replace rows."""
        transaction.connection.executemany(
            f"INSERT INTO files ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (path) DO UPDATE SET {_UPDATES}",
            rows,
        )

    @staticmethod
    def delete(transaction: Transaction, paths: Iterable[str]) -> None:
        """Delete the rows of files; their records are deleted separately."""
        transaction.connection.executemany("DELETE FROM files WHERE path = ?", ((path,) for path in paths))

    def paths_named(self, names: frozenset[str]) -> list[str]:
        """The paths whose last component is one of these names, sorted; one scan over the paths."""
        with self._pool.read() as connection:
            found = connection.execute("SELECT path FROM files ORDER BY path").fetchall()
        return [path for (path,) in found if path.rpartition("/")[2] in names]

    @staticmethod
    def record_ids(transaction: Transaction, path: str, prefixes: tuple[str, ...]) -> list[str]:
        """The ids of a file's records: the file is their parent, and their ids have one of its prefixes."""
        dialect = transaction.connection.dialect
        found = transaction.connection.execute(
            f"SELECT id FROM records WHERE {dialect.same_text('parent')} AND path = ?",
            (*dialect.same_text_values(path), path),
        )
        return [record_id for (record_id,) in found if record_id == path or record_id.startswith(prefixes)]


class IndexedFolders:
    """The folders that were indexed as a whole; unless the settings name folders, grep and read may use these."""

    def __init__(self, pool: SqlPool) -> None:
        self._pool = pool

    def paths(self) -> list[str]:
        """The indexed folders, sorted."""
        with self._pool.read() as connection:
            return [path for (path,) in connection.execute("SELECT path FROM folders ORDER BY path")]

    def indexed_at(self) -> dict[str, int | None]:
        """The indexed folders, sorted, and when the last index run over each ended, in seconds since 1970."""
        with self._pool.read() as connection:
            found = connection.execute(
                "SELECT f.path, s.value FROM folders f LEFT JOIN state s ON s.key = ? || f.path ORDER BY f.path",
                (_INDEXED_AT,),
            )
            return dict(found.fetchall())

    def add(self, paths: Iterable[str]) -> None:
        """Record folders as indexed now."""
        now = int(time.time())
        indexed = list(paths)
        if indexed:
            with self._pool.write() as connection:
                connection.executemany(
                    "INSERT INTO folders VALUES (?) ON CONFLICT DO NOTHING", [(path,) for path in indexed]
                )
                connection.executemany(
                    "INSERT INTO state VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    [(f"{_INDEXED_AT}{path}", now) for path in indexed],
                )


def find_chunks(transaction: Transaction, tenant: str, document: str) -> list[str]:
    """The full ids of the chunks that are stored for a document."""
    dialect = transaction.connection.dialect
    found = transaction.connection.execute(
        f"SELECT id FROM records WHERE {dialect.same_text('parent')} AND collection = ?",
        (*dialect.same_text_values(document), CHUNK_COLLECTION),
    )
    return [record_id for (record_id,) in found if split_id(record_id)[0] == tenant]


def path_range(folder: str) -> tuple[str, str]:
    """The range of paths inside a folder: from `folder/` up to, not including, `folder0` ('0' follows '/')."""
    stem = folder.rstrip("/")
    return f"{stem}/", f"{stem}0"
