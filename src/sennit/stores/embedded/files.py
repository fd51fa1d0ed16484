"""The table of indexed files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from sennit.stores.contract import FileRow
from sennit.stores.sql.connection import Connection, SqlPool

COLUMNS: Final = "path, collection, reader, size, mtime_ns, ctime_ns, inode, hash, records, problem"
_UPDATES: Final = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS.split(", ")[1:])


class SqlFileManifest:
    """The manifest of indexed files. A transaction writes it together with the records."""

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

    def paths_named(self, names: frozenset[str]) -> list[str]:
        """The paths whose last component is one of these names, sorted; one scan over the paths."""
        with self._pool.read() as connection:
            found = connection.execute("SELECT path FROM files ORDER BY path").fetchall()
        return [path for (path,) in found if path.rpartition("/")[2] in names]


def put_files(connection: Connection, rows: Iterable[FileRow]) -> None:
    """Add or replace rows."""
    connection.executemany(
        f"INSERT INTO files ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?) ON CONFLICT (path) DO UPDATE SET {_UPDATES}",
        rows,
    )


def delete_files(connection: Connection, paths: Iterable[str]) -> None:
    """Delete the rows of files."""
    connection.executemany("DELETE FROM files WHERE path = ?", ((path,) for path in paths))


def path_range(folder: str) -> tuple[str, str]:
    """The range of paths inside a folder: from `folder/` up to, not including, `folder0` ('0' follows '/')."""
    stem = folder.rstrip("/")
    return f"{stem}/", f"{stem}0"
