"""The tables of indexed files and indexed folders."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from sennit.places import FOLDER_FIELD, Folder, Locate, Places, decode_root, encode_root
from sennit.records import CHUNK_COLLECTION, Record, split_id
from sennit.stores.embedded.transaction import Transaction
from sennit.stores.sql.connection import Connection, SqlPool

COLUMNS: Final = "folder, path, target, place, other_parents, reader, size, mtime_ns, ctime_ns, inode, hash, records, problem"
_UPDATES: Final = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS.split(", ")[3:])
NO_PLACES: Final = Places()
_FOLDER_COLUMNS: Final = "folder, root, whole, tenant, collection, metadata"


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


class FileManifest:
    """The manifest of indexed files. Its writing methods take part in the transaction that writes the records."""

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

    def has_files(self, folder: str, path: str = "") -> bool:
        """Whether a file of a folder at or below a path is known."""
        return next(self.under(folder, path), None) is not None

    def places_of(self, folder: str, path: str) -> list[str]:
        """The parents of all records of a file."""
        with self._pool.read() as connection:
            found = connection.execute(
                "SELECT place, other_parents FROM files WHERE folder = ? AND path = ?", (folder, path)
            ).fetchall()
        return [one for place, others in found for one in (place, *_parents(others))]

    @staticmethod
    def upsert(transaction: Transaction, rows: Iterable[FileRow]) -> None:
        """Add or replace rows."""
        transaction.connection.executemany(
            f"INSERT INTO files ({COLUMNS}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?) "
            f"ON CONFLICT (folder, path, target) DO UPDATE SET {_UPDATES}",
            rows,
        )

    @staticmethod
    def delete(transaction: Transaction, rows: Iterable[FileRow]) -> None:
        """Delete rows; their records are deleted separately."""
        transaction.connection.executemany(
            "DELETE FROM files WHERE folder = ? AND path = ? AND target = ?", (row[:3] for row in rows)
        )

    def places_named(self, names: frozenset[str]) -> list[str]:
        """The places whose last component is one of these names, sorted; one scan over the files."""
        with self._pool.read() as connection:
            found = connection.execute("SELECT place FROM files WHERE target = '' ORDER BY place").fetchall()
        return [place for (place,) in found if place.rpartition("/")[2] in names]

    @staticmethod
    def record_ids(transaction: Transaction, row: FileRow, prefixes: tuple[str, ...]) -> list[str]:
        """The full ids of a file's records: their parent is one of its parents, and their ids have its prefixes."""
        dialect = transaction.connection.dialect
        out = []
        for parent in (row.place, *_parents(row.other_parents)):
            found = transaction.connection.execute(
                f"SELECT id FROM records WHERE {dialect.same_text('parent')} AND path = ?",
                (*dialect.same_text_values(parent), row.path),
            )
            for (full,) in found:
                record_id = split_id(full)[1]
                if record_id == row.place or record_id.startswith(prefixes):
                    out.append(full)
        return out


class IndexedFolders:
    """The table of indexed folders. `base` is the real path of the folder that holds the database."""

    def __init__(self, pool: SqlPool, base: str | None) -> None:
        self._pool = pool
        self._base = base

    def places(self) -> Places:
        """All indexed folders, as they are now."""
        with self._pool.read() as connection:
            return self._read(connection)

    def locator(self) -> Locate:
        """A function that shows where records are; it reads the folders when a record first needs them."""
        known: list[Places] = []

        def show(record: Record) -> str | None:
            if FOLDER_FIELD not in record.metadata:
                return NO_PLACES.show(record)
            if not known:
                known.append(self.places())
            return known[0].show(record)

        return show

    def read_in(self, transaction: Transaction) -> Places:
        """All indexed folders, inside a transaction."""
        return self._read(transaction.connection)

    def put(self, transaction: Transaction, folder: Folder) -> None:
        """Add or replace a folder."""
        transaction.connection.execute(
            f"INSERT INTO folders ({_FOLDER_COLUMNS}) VALUES (?,?,?,?,?,?) ON CONFLICT (folder) DO UPDATE SET "
            "root = excluded.root, whole = excluded.whole, tenant = excluded.tenant, "
            "collection = excluded.collection, metadata = excluded.metadata",
            (
                folder.key,
                encode_root(folder.root, self._base),
                int(folder.whole),
                folder.tenant,
                folder.collection,
                json.dumps(dict(folder.metadata), ensure_ascii=False),
            ),
        )

    @staticmethod
    def delete(transaction: Transaction, key: str) -> None:
        """Delete the row of a folder; its files are deleted separately."""
        transaction.connection.execute("DELETE FROM folders WHERE folder = ?", (key,))

    def _read(self, connection: Connection) -> Places:
        found = connection.execute(f"SELECT {_FOLDER_COLUMNS} FROM folders").fetchall()
        return Places(
            Folder(key, decode_root(root, self._base), bool(whole), tenant, collection, json.loads(metadata))
            for key, root, whole, tenant, collection, metadata in found
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


def _parents(stored: str) -> list[str]:
    return [str(parent) for parent in json.loads(stored)] if stored else []
