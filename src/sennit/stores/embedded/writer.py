"""Writes records, and everything derived from them that lives in SQLite, in one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sennit.stores.embedded import graph
from sennit.stores.embedded.codec import INSERT, SELECT, embedding_hash, record_from_row
from sennit.stores.embedded.models import (
    allocate_seq,
    current_models,
    delete_unused_vectors,
    has_pending_vectors,
    insert_vectors,
)
from sennit.stores.embedded.prepared_records import PreparedRecord
from sennit.stores.embedded.sqlite import SqlitePool, batches, placeholders

NewVectors = Mapping[int, Mapping[bytes, bytes]]
"""Half-precision vectors by model number and by text hash."""

Also = Callable[[sqlite3.Connection], Iterable[str]]
"""Makes further writes in the same transaction, and returns the ids of records to remove."""


@dataclass(frozen=True, slots=True)
class WriteResult:
    """How many records a write added, updated, left unchanged and removed."""

    added: int
    updated: int
    unchanged: int
    removed: int = 0


class Writer:
    """Writes records to one database."""

    def __init__(self, sqlite: SqlitePool) -> None:
        self._sqlite = sqlite
        self.last_write_left_pending = False
        """Whether any record lacked a vector after the last write."""

    def apply(self, records: Iterable[PreparedRecord], vectors: NewVectors, also: Also) -> WriteResult:
        """Add and remove records in one transaction; see EmbeddedStore.apply."""
        latest = {record.id: record for record in records}
        added = updated = unchanged = removed = 0
        deleted_hashes: list[bytes] = []
        with self._sqlite.write() as connection:
            for record_id in dict.fromkeys(also(connection)):
                if record_id in latest:
                    continue
                found = connection.execute("SELECT row FROM records WHERE id = ?", (record_id,)).fetchone()
                if found is not None:
                    removed += 1
                    deleted_hashes.append(self._delete(connection, found[0]))
            new = []
            stored = _stored_versions(connection, list(latest))
            for record_id, record in latest.items():
                version = stored.get(record_id)
                if version is not None and version[1] == record.content_hash:
                    unchanged += 1
                    continue
                if version is not None:
                    updated += 1
                    deleted_hashes.append(self._delete(connection, version[0]))
                else:
                    added += 1
                new.append(record)
            if new:
                last_row = allocate_seq(connection, len(new))
                self._insert(connection, new, last_row, vectors)
            if deleted_hashes:
                delete_unused_vectors(connection, deleted_hashes)
            self.last_write_left_pending = has_pending_vectors(connection)
        return WriteResult(added, updated, unchanged, removed)

    def _insert(
        self,
        connection: sqlite3.Connection,
        records: Sequence[PreparedRecord],
        last_row: int,
        vectors: NewVectors,
    ) -> None:
        """Insert records in the rows after `last_row`."""
        numbered = list(enumerate(records, last_row + 1))
        connection.executemany(INSERT, [(row, *record.values) for row, record in numbered])
        graph.insert(connection, ((row, record.graph) for row, record in numbered))
        hashes = [record.embedding_hash for record in records]
        for model in current_models(connection):
            known = vectors.get(model.number, {})
            supplied = {digest: known[digest] for digest in hashes if digest in known}
            insert_vectors(connection, model.number, supplied)
            if all(digest in supplied for digest in hashes):
                continue
            connection.execute(
                """
                INSERT INTO pending_vectors SELECT ?1, r.row FROM records r WHERE r.row > ?2 AND NOT EXISTS
                (SELECT 1 FROM vectors v WHERE v.model = ?1 AND v.hash = r.embedding_hash)
                """,
                (model.number, last_row),
            )

    def _delete(self, connection: sqlite3.Connection, row: int) -> bytes:
        """Delete a record and leave a tombstone; returns the hash that its vectors are stored under."""
        values = connection.execute(f"{SELECT} WHERE row = ?", (row,)).fetchone()
        record = record_from_row(values)
        graph.delete(connection, row, record)
        connection.execute("DELETE FROM records WHERE row = ?", (row,))
        connection.execute("DELETE FROM pending_vectors WHERE row = ?", (row,))
        connection.execute("INSERT INTO tombstones VALUES (?, ?)", (allocate_seq(connection, 1) + 1, row))
        return embedding_hash(record.embedding_text)


def _stored_versions(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, tuple[int, bytes]]:
    """Row and content hash of the records that exist, by id."""
    out: dict[str, tuple[int, bytes]] = {}
    for batch in batches(ids):
        found = connection.execute(
            f"SELECT id, row, content_hash FROM records WHERE id IN ({placeholders(batch)})", tuple(batch)
        )
        out.update((record_id, (row, content_hash)) for record_id, row, content_hash in found)
    return out
