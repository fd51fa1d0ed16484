"""The table of indexed files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final

from sennit.stores.contract import FileRow
from sennit.stores.sql.connection import Connection, SqlPool

COLUMNS: Final = "folder, path, target, place, other_parents, reader, size, mtime_ns, ctime_ns, inode, hash, records, problem"
_UPDATES: Final = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS.split(", ")[3:])


class SqlFileManifest:
    """The manifest of indexed files. A transaction writes it together with the records."""

    def __init__(self, pool: SqlPool) -> None:
        self._pool = pool

    def under(self, folder: str, path: str = "") -> Iterator[tuple[FileRow, bool]]:
        """The files of a folder at or below a path. The flag is False when some of a file's records were removed."""
        low, high = path_range(path)
        with self._pool.read() as connection:
            from_file = connection.dialect.same_text("r.parent", "f.place")
            is_complete = f"(SELECT count(*) FROM records r WHERE {from_file}) >= f.records"
            select = f"SELECT {COLUMNS}, {is_complete} FROM files f WHERE folder = ?"
            if not path:
                found = connection.execute(select, (folder,)).fetchall()
            else:
                # A UNION ALL of two queries: for one query with OR, SQLite would sort the result.
                found = connection.execute(
                    f"{select} AND path = ? UNION ALL {select} AND path >= ? AND path < ?",
                    (folder, path, folder, low, high),
                ).fetchall()
        for *values, complete in found:
            yield FileRow._make(values), bool(complete)

    def parents_of(self, folder: str, path: str) -> list[str]:
        """The parents of all records of a file."""
        with self._pool.read() as connection:
            found = connection.execute(
                "SELECT place, other_parents FROM files WHERE folder = ? AND path = ?", (folder, path)
            ).fetchall()
        return [
            parent for place, others in found for parent in (place, *(json.loads(others) if others else ()))
        ]

    def places_named(self, names: frozenset[str]) -> list[str]:
        """The places whose last component is one of these names, sorted; one scan over the files."""
        with self._pool.read() as connection:
            found = connection.execute("SELECT place FROM files WHERE target = '' ORDER BY place").fetchall()
        return [place for (place,) in found if place.rpartition("/")[2] in names]


def put_files(connection: Connection, rows: Iterable[FileRow]) -> None:
    """Add or replace rows."""
    connection.executemany(
        f"INSERT INTO files ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?) "
        f"ON CONFLICT (folder, path, target) DO UPDATE SET {_UPDATES}",
        rows,
    )


def delete_files(connection: Connection, rows: Iterable[FileRow]) -> None:
    """Delete rows."""
    connection.executemany(
        "DELETE FROM files WHERE folder = ? AND path = ? AND target = ?", (row[:3] for row in rows)
    )


def path_range(folder: str) -> tuple[str, str]:
    """The range of paths inside a folder: from `folder/` up to, not including, `folder0` ('0' follows '/')."""
    stem = folder.rstrip("/")
    return f"{stem}/", f"{stem}0"
