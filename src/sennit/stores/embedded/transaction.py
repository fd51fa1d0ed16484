"""Transactions: records, and everything derived from them that lives beside them, are written all or none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sennit.records import Record, split_id
from sennit.stores.embedded import graph
from sennit.stores.embedded.codec import INSERT, SELECT, record_from_row
from sennit.stores.embedded.models import (
    allocate_seq,
    current_models,
    delete_unused_vectors,
    insert_vectors,
)
from sennit.stores.embedded.prepared_records import EMBEDDING_HASH, PreparedRecord, prepare_record
from sennit.stores.sql.connection import Connection, batches, placeholders

NewVectors = Mapping[int, Mapping[bytes, bytes]]
"""Half-precision vectors by model number and by text hash."""

NO_VECTORS: Final[NewVectors] = {}


@dataclass(frozen=True, slots=True)
class WriteResult:
    """How many records a write added, updated, left unchanged and removed, and the ids of those it was given."""

    added: int
    updated: int
    unchanged: int
    removed: int = 0
    ids: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The id of each record that was added, updated or left unchanged, in order; also of those that got one here."""

    @property
    def changed(self) -> int:
        """How many records are not as they were before."""
        return self.added + self.updated + self.removed


class Transaction:
    """One write. What it reads cannot change before it commits, because no other write runs meanwhile."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        """For the repositories of other tables, which take part in this transaction."""
        self._added = self._updated = self._unchanged = self._removed = 0
        self._deleted_hashes: list[bytes] = []
        self._written_ids: list[str] = []

    @property
    def result(self) -> WriteResult:
        """What the transaction has done so far."""
        ids = tuple(split_id(name)[1] for name in self._written_ids)
        return WriteResult(self._added, self._updated, self._unchanged, self._removed, ids)

    def get(self, ids: Iterable[str]) -> dict[str, Record]:
        """The records that exist, by full id."""
        out: dict[str, Record] = {}
        for batch in batches(list(ids)):
            found = self.connection.execute(f"{SELECT} WHERE id IN ({placeholders(batch)})", tuple(batch))
            out.update((values[1], record_from_row(values)) for values in found)
        return out

    def write(
        self,
        records: Iterable[Record | PreparedRecord],
        vectors: NewVectors = NO_VECTORS,
        *,
        remove: Iterable[str] = (),
    ) -> None:
        """Remove the records with these full ids, then add or replace records.

        A record that is stored as it is given is not written again, also when `remove` names it.
        """
        latest = {record.id: record for record in map(prepare_record, records)}
        self._written_ids += latest
        connection = self.connection
        for record_id in dict.fromkeys(remove):
            if record_id in latest:
                continue
            found = connection.execute("SELECT row FROM records WHERE id = ?", (record_id,)).fetchone()
            if found is not None:
                self._removed += 1
                self._delete(found[0])
        new = []
        stored = _stored_versions(connection, list(latest))
        for record_id, record in latest.items():
            version = stored.get(record_id)
            if version is not None:
                record = record.inherit_vector(version[2])
                if version[1:] == (record.content_hash, record.embedding_hash):
                    self._unchanged += 1
                    continue
            if version is not None:
                self._updated += 1
                self._delete(version[0])
            else:
                self._added += 1
            new.append(record)
        if new:
            self._insert(new, vectors)

    def finish(self) -> None:
        """Delete the vectors that no record uses any more; the last step before the commit."""
        if self._deleted_hashes:
            delete_unused_vectors(self.connection, self._deleted_hashes)

    def _insert(self, records: Sequence[PreparedRecord], vectors: NewVectors) -> None:
        connection = self.connection
        last_row = allocate_seq(connection, len(records))
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
                INSERT INTO pending_vectors SELECT ?, r.row FROM records r WHERE r.row > ? AND NOT EXISTS
                (SELECT 1 FROM vectors v WHERE v.model = ? AND v.hash = r.embedding_hash)
                """,
                (model.number, last_row, model.number),
            )

    def _delete(self, row: int) -> None:
        """Delete a record and leave a tombstone."""
        connection = self.connection
        values = connection.execute(f"{SELECT} WHERE row = ?", (row,)).fetchone()
        record = record_from_row(values)
        graph.delete(connection, row, record)
        connection.execute("DELETE FROM records WHERE row = ?", (row,))
        connection.execute("DELETE FROM pending_vectors WHERE row = ?", (row,))
        connection.execute("INSERT INTO tombstones VALUES (?, ?)", (allocate_seq(connection, 1) + 1, row))
        self._deleted_hashes.append(values[EMBEDDING_HASH + 1])


def _stored_versions(connection: Connection, ids: Sequence[str]) -> dict[str, tuple[int, bytes, bytes]]:
    """Row, content hash and embedding hash of the records that exist, by id."""
    out: dict[str, tuple[int, bytes, bytes]] = {}
    for batch in batches(ids):
        found = connection.execute(
            f"SELECT id, row, content_hash, embedding_hash FROM records WHERE id IN ({placeholders(batch)})",
            tuple(batch),
        )
        out.update((record_id, (row, *hashes)) for record_id, row, *hashes in found)
    return out
