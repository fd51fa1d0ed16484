"""Transactions: records, and everything derived from them that lives beside them, are written all or none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from sennit.records import Record
from sennit.stores.codec import record_from_row
from sennit.stores.contract import NO_VECTORS, FileRow, Model, NewVectors, WriteResult
from sennit.stores.embedded import graph
from sennit.stores.embedded.files import delete_files, put_files
from sennit.stores.embedded.models import SELECT_MODELS, insert_vectors, models_of
from sennit.stores.embedded.unused_vectors import delete_unused_vectors, keep_unused_vectors
from sennit.stores.graph_rows import NEVER
from sennit.stores.prepared_records import PreparedRecord
from sennit.stores.sql.connection import Connection, batches, paged, placeholders
from sennit.stores.sql.records import INSERT, SELECT, SELECT_WITH_HASHES
from sennit.stores.sql.state import SqlState
from sennit.stores.write_plan import StoredVersion, WriteRequest

TURNS_PAGE: Final = 16
"""Records read at first along the positions of a parent. Only tenants that share a session's name need more."""


class EmbeddedTransaction:
    """One write. What it reads cannot change before it commits, because no other write runs meanwhile."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.result = WriteResult(0, 0, 0)
        """What the transaction has done so far."""
        self._deleted: dict[bool, dict[tuple[str | None, bytes], None]] = {False: {}, True: {}}
        """Parent and embedding hash of deleted records, by whether their vectors are kept."""

    @property
    def state(self) -> SqlState:
        """The state of the repositories, which take part in this transaction."""
        return SqlState(self.connection)

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
        keep_vectors: bool = False,
    ) -> None:
        """Remove the records with these full ids, then add or replace records.

        A record that is stored as it is given is not written again, also when `remove` names it.
        """
        request = WriteRequest.of(records, remove)
        stored, models = _stored_versions(self.connection, request.ids)
        plan = request.plan(stored)
        for batch in batches(plan.delete):
            self._delete(batch, keep_vectors=keep_vectors)
        if plan.insert:
            self._insert(plan.insert, vectors, models)
        self.result += plan.result

    def child_ids(self, parent: str, *, collection: str | None = None, path: str | None = None) -> list[str]:
        """The full ids of the records with this parent; of one collection, or with one path."""
        dialect = self.connection.dialect
        condition, values = dialect.same_text("parent"), dialect.same_text_values(parent)
        for column, value in (("collection", collection), ("path", path)):
            if value is not None:
                condition, values = f"{condition} AND {column} = ?", (*values, value)
        found = self.connection.execute(f"SELECT id FROM records WHERE {condition}", values)
        return [record_id for (record_id,) in found]

    def positions(self, parent: str) -> Iterator[tuple[str, int]]:
        """Full id and position of the records with this parent, last position first; read as they are used."""
        dialect = self.connection.dialect
        pages = paged(
            self.connection,
            f"SELECT id, position FROM records WHERE {dialect.same_text('parent')} AND position IS NOT NULL "
            "ORDER BY position DESC",
            dialect.same_text_values(parent),
            TURNS_PAGE,
        )
        return ((record_id, int(position)) for page in pages for record_id, position in page)

    def current_facts(self, name: int) -> list[Record]:
        """The facts that have not ended and have this endpoint, which is the hash of a name."""
        current = f"SELECT -negative_row FROM edges WHERE name = ? AND valid_until = {NEVER}"
        found = self.connection.execute(f"{SELECT} WHERE row IN ({current})", (name,))
        return [record_from_row(values) for values in found]

    def put_files(self, rows: Iterable[FileRow]) -> None:
        """Add or replace rows of the manifest of files."""
        put_files(self.connection, rows)

    def delete_files(self, rows: Iterable[FileRow]) -> None:
        """Delete rows of the manifest of files; their records are deleted separately."""
        delete_files(self.connection, rows)

    def finish(self) -> None:
        """Delete or keep the vectors that no record uses any more; the last step before the commit."""
        delete_unused_vectors(self.connection, self._deleted[False])
        keep_unused_vectors(self.connection, self._deleted[True])

    def _insert(
        self, records: Sequence[PreparedRecord], vectors: NewVectors, models: Sequence[Model]
    ) -> None:
        connection = self.connection
        last_row = connection.allocate(len(records))
        numbered = list(enumerate(records, last_row + 1))
        connection.executemany(INSERT, [(row, *record.values) for row, record in numbered])
        graph.insert(connection, ((row, record.graph) for row, record in numbered))
        hashes = [record.embedding_hash for record in records]
        for model in models:
            known = vectors.get(model.number, {})
            supplied = {digest: known[digest] for digest in hashes if digest in known}
            insert_vectors(connection, model.number, supplied)
            if all(digest in supplied for digest in hashes):
                continue
            connection.run(
                """
                INSERT INTO pending_vectors SELECT ?, r.row FROM records r WHERE r.row > ? AND NOT EXISTS
                (SELECT 1 FROM vectors v WHERE v.model = ? AND v.hash = r.embedding_hash)
                """,
                (model.number, last_row, model.number),
            )

    def _delete(self, rows: Sequence[int], *, keep_vectors: bool) -> None:
        """Delete records and leave tombstones."""
        connection, dialect = self.connection, self.connection.dialect
        found = connection.execute(
            f"{SELECT_WITH_HASHES} WHERE row {dialect.in_rows}", (dialect.encode_rows(rows),)
        ).fetchall()
        for *values, _, embedding in found:
            record = record_from_row(values)
            graph.delete(connection, values[0], record)
            self._deleted[keep_vectors][record.parent, embedding] = None
        numbers = [(row,) for row in rows]
        connection.executemany("DELETE FROM records WHERE row = ?", numbers)
        connection.executemany("DELETE FROM pending_vectors WHERE row = ?", numbers)
        first = connection.allocate(len(rows)) + 1
        connection.executemany("INSERT INTO tombstones VALUES (?, ?)", list(enumerate(rows, first)))


def _stored_versions(
    connection: Connection, ids: Sequence[str]
) -> tuple[dict[str, StoredVersion], list[Model]]:
    """The versions of the records that exist, by id; and the current models."""
    selects = [
        (
            f"SELECT id, row, content_hash, embedding_hash FROM records WHERE id IN ({placeholders(batch)})",
            tuple(batch),
        )
        for batch in batches(ids)
    ]
    *found, models = connection.read_together(*selects, (SELECT_MODELS, ()))
    stored = {record_id: StoredVersion(*version) for rows in found for record_id, *version in rows}
    return stored, models_of(models)
