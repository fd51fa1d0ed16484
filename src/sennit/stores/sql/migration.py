"""Copies a database from one SQL store to another, row by row: resumable after a kill, and verified by checksum.

The target is not a database before everything in it was verified: until then it has a mark, and opening it is refused.
Vectors are copied as they are, so nothing is embedded again. The source is only read, in one version.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from sennit.errors import StoreError
from sennit.stores.contract import TableCopy
from sennit.stores.lease import LEASE_PREFIX
from sennit.stores.sql.connection import Connection, SqlPool, placeholders
from sennit.stores.sql.schema import OF_INDEXES, SERVER_NAME, UNFINISHED

BATCH_ROWS: Final = 1000

COPIED: Final = b"migrated"
"""The key of the entry that says which version of which database was copied here."""

CopyProgress = Callable[[str, int, int], None]
"""Called with the name of the table, the rows done and their total."""


class Table(NamedTuple):
    """A table, its columns and how many of the first make its key."""

    name: str
    columns: tuple[str, ...]
    key: int = 1

    @property
    def key_columns(self) -> str:
        return ", ".join(self.columns[: self.key])


TABLES: Final = (
    Table("models", ("number", "fingerprint", "name", "spec", "dimensions", "state")),
    Table(
        "records",
        (
            "row",
            "id",
            "collection",
            "kind",
            "timestamp",
            "parent",
            "position",
            "sensitivity",
            "scope",
            "content_hash",
            "embedding_hash",
            "path",
            "url",
            "first_line",
            "last_line",
            "title",
            "metadata",
            "text",
        ),
    ),
    Table("vectors", ("number", "model", "hash", "vector", "created")),
    Table("unused_vectors", ("hash", "parent", "since"), 2),
    Table("pending_vectors", ("model", "row"), 2),
    Table("late_vectors", ("seq", "model", "row")),
    Table("tombstones", ("seq", "row")),
    Table(
        "files",
        (
            "folder",
            "path",
            "target",
            "place",
            "other_parents",
            "reader",
            "size",
            "mtime_ns",
            "ctime_ns",
            "inode",
            "hash",
            "records",
            "problem",
        ),
        3,
    ),
    Table("entries", ("key", "value")),
    Table("names", ("row", "name", "flags"), 2),
    Table(
        "edges",
        ("name", "valid_until", "negative_weight", "negative_row", "other_name", "valid_from"),
        4,
    ),
)
"""Every table but `state`, which makes the target a database and is written last."""

IDENTITIES: Final = ("models", "vectors")
"""Tables whose numbers Postgres counts itself."""


def copy_database(source: SqlPool, target: SqlPool, progress: CopyProgress | None = None) -> list[TableCopy]:
    """Copy everything into an empty database, or go on where an earlier run ended."""
    with source.read_separately() as reader:
        state = dict(reader.execute("SELECT key, value FROM state WHERE key IN ('origin', 'seq')").fetchall())
        mark = {"origin": state["origin"], "place": source.place(), "seq": state["seq"]}
        if _is_copied(target, mark):
            # A run that was stopped later, while indexes were filled: its copy is verified again.
            return [_verify(reader, target, table) for table in TABLES]
        _begin(mark, target)
        copies = [_copy_table(reader, target, table, progress) for table in TABLES]
        _finish(reader, mark, target)
    return copies


def _is_copied(target: SqlPool, mark: dict[str, Any]) -> bool:
    """Whether the target is a complete copy of the source; refuses one where either has changed since."""
    with target.read_separately() as connection:
        found = connection.execute("SELECT value FROM entries WHERE key = ?", (COPIED,)).fetchone()
        (seq,) = connection.execute("SELECT value FROM state WHERE key = 'seq'").fetchone()
    earlier = {} if found is None else json.loads(bytes(found[0]))
    if {**earlier, "seq": mark["seq"]} != mark:
        return False
    if not earlier["seq"] == mark["seq"] == seq:
        raise _changed_since(target)
    return True


def _verify(reader: Connection, target: SqlPool, table: Table) -> TableCopy:
    expected = _checksum(reader, table)
    with target.read_separately() as connection:
        if _checksum(connection, table) != expected:
            raise _changed_since(target)
    return TableCopy(table.name, expected[0], 0, expected[1])


def _changed_since(target: SqlPool) -> StoreError:
    return StoreError(
        f"{target.location} is not empty: it holds a copy of this database, and one of the two has changed since. To fill "
        "the indexes of the copy, run 'sennit migrate' with it as --db and without a target; to copy again, choose an "
        "empty place."
    )


def _begin(mark: dict[str, Any], target: SqlPool) -> None:
    """Mark the target as unfinished; refuse one that holds something else.

    What was copied of an earlier version of the source is deleted, because keys may since belong to other records.
    """
    with target.write() as connection:
        found = connection.execute("SELECT value FROM entries WHERE key = ?", (UNFINISHED,)).fetchone()
        earlier = None if found is None else json.loads(bytes(found[0]))
        if earlier == mark:
            return
        if earlier is None:
            _refuse_rows(connection, target)
        elif {**earlier, "seq": mark["seq"]} != mark:
            raise StoreError(
                f"{target.location} holds an unfinished migration from another database. Finish that one, or choose an "
                "empty place."
            )
        for table in TABLES:
            connection.execute(f"DELETE FROM {table.name}")
        connection.execute("INSERT INTO entries VALUES (?, ?)", (UNFINISHED, json.dumps(mark).encode()))


def _refuse_rows(connection: Connection, target: SqlPool) -> None:
    for table in TABLES:
        if connection.execute(f"SELECT 1 FROM {table.name} LIMIT 1").fetchone() is not None:
            raise StoreError(
                f"{target.location} is not empty: the table {table.name} has rows. Choose an empty place."
            )


def _copy_table(
    reader: Connection, target: SqlPool, table: Table, progress: CopyProgress | None
) -> TableCopy:
    """Copy the rows that are missing, and verify the table; one that disagrees is copied again from the beginning."""
    expected = _checksum(reader, table)
    copied = 0
    for attempt in range(2):
        if attempt:
            with target.write() as connection:
                connection.execute(f"DELETE FROM {table.name} WHERE {_condition(table)}", _excluded(table))
        copied += _copy_rows(reader, target, table, expected[0], progress)
        with target.read_separately() as connection:
            if _checksum(connection, table) == expected:
                return TableCopy(table.name, expected[0], copied, expected[1])
    raise StoreError(
        f"The table {table.name} of {target.location} is not equal to that of the source after it was copied twice. "
        "Check the disk of both, and begin with an empty place."
    )


def _copy_rows(
    reader: Connection, target: SqlPool, table: Table, total: int, progress: CopyProgress | None
) -> int:
    with target.read_separately() as connection:
        descending = ", ".join(f"{column} DESC" for column in table.columns[: table.key])
        last = connection.execute(
            f"SELECT {table.key_columns} FROM {table.name} WHERE {_condition(table)} ORDER BY {descending} LIMIT 1",
            _excluded(table),
        ).fetchone()
        (done,) = connection.execute(
            f"SELECT count(*) FROM {table.name} WHERE {_condition(table)}", _excluded(table)
        ).fetchone()
    before = done
    insert = f"INSERT INTO {table.name} ({', '.join(table.columns)}) VALUES ({placeholders(table.columns)})"
    while True:
        after, values = "", ()
        if last is not None:
            values = tuple(map(_plain, last[: table.key]))
            after = f" AND ({table.key_columns}) > ({placeholders(values)})"
        rows = reader.execute(
            f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE {_condition(table)}{after} "
            f"ORDER BY {table.key_columns} LIMIT {BATCH_ROWS}",
            (*_excluded(table), *values),
        ).fetchall()
        if not rows:
            return int(done - before)
        with target.write() as connection:
            connection.executemany(insert, [tuple(map(_plain, row)) for row in rows])
        last, done = rows[-1], done + len(rows)
        if progress is not None:
            progress(table.name, done, total)


def _finish(reader: Connection, mark: dict[str, Any], target: SqlPool) -> None:
    """Make the target a database: the counters of the source, its own origin, and what it is a copy of."""
    state = reader.execute("SELECT key, value FROM state WHERE key != 'origin'").fetchall()
    with target.write() as connection:
        for key, value in state:
            # What an index on a server has applied is of the source's keys, and of its index.
            if not key.startswith(OF_INDEXES):
                connection.execute(
                    "INSERT INTO state VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
                    (key, value),
                )
        if connection.dialect.name == "postgres":
            for name in IDENTITIES:
                connection.execute(
                    f"SELECT setval(pg_get_serial_sequence('{name}', 'number'), max(number)) FROM {name}"
                ).fetchone()
        connection.execute("DELETE FROM entries WHERE key = ?", (UNFINISHED,))
        connection.execute("INSERT INTO entries VALUES (?, ?)", (COPIED, json.dumps(mark).encode()))


def _condition(table: Table) -> str:
    """Leaves out what belongs to a process or to one place, and not to the database."""
    return "key NOT IN (?, ?, ?) AND NOT (key >= ? AND key < ?)" if table.name == "entries" else "1 = 1"


def _excluded(table: Table) -> tuple[Any, ...]:
    if table.name != "entries":
        return ()
    return (UNFINISHED, COPIED, SERVER_NAME, LEASE_PREFIX, LEASE_PREFIX + b"\xff")


def _checksum(connection: Connection, table: Table) -> tuple[int, str]:
    """How many rows there are, and a hash of all of their values in the order of the keys."""
    rows = connection.stream(
        f"SELECT {', '.join(table.columns)} FROM {table.name} WHERE {_condition(table)} "
        f"ORDER BY {table.key_columns}",
        _excluded(table),
    )
    return hash_rows(rows)


def hash_rows(rows: Iterable[Any]) -> tuple[int, str]:
    """The number of rows, and a hash of their values, whose types count."""
    digest = hashlib.blake2b(digest_size=16)
    count = 0
    for row in rows:
        count += 1
        for value in map(_plain, row):
            text = value if isinstance(value, bytes) else repr(value).encode("utf-8", "surrogatepass")
            digest.update(f"{type(value).__name__}{len(text)}:".encode())
            digest.update(text)
    return count, digest.hexdigest()


def _plain(value: Any) -> Any:
    """A value as both databases take it."""
    return bytes(value) if isinstance(value, memoryview | bytearray) else value
