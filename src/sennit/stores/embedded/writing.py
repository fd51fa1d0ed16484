"""Writing to the embedded store: records with all that is derived from them in the same transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from sennit.stores.embedded import graph
from sennit.stores.embedded.codec import INSERT, SELECT, embedding_hash, from_values
from sennit.stores.embedded.models import forget_vectors, insert_vectors, is_waiting, take, wanted
from sennit.stores.embedded.prepared import Prepared
from sennit.stores.embedded.sqlite import SqlitePool, marks, parts

NewVectors = Mapping[int, Mapping[bytes, bytes]]
"""By model: the hash of a text and its vector in half precision."""

Also = Callable[[sqlite3.Connection], Iterable[str]]
"""Writes more in the same transaction, and names records that go."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did."""

    added: int
    updated: int
    unchanged: int
    removed: int = 0


class Writer:
    """Writes to one database."""

    def __init__(self, database: SqlitePool) -> None:
        self._database = database
        self.waiting = False
        """Whether a record waited for a vector after the last write."""

    def apply(self, records: Iterable[Prepared], vectors: NewVectors, also: Also) -> Written:
        """Add and remove records in one transaction; see EmbeddedStore.apply."""
        latest = {ready.id: ready for ready in records}
        added = updated = unchanged = removed = 0
        dropped: list[bytes] = []
        with self._database.write() as connection:
            for record_id in dict.fromkeys(also(connection)):
                if record_id in latest:
                    continue
                found = connection.execute("SELECT row FROM records WHERE id = ?", (record_id,)).fetchone()
                if found is not None:
                    removed += 1
                    dropped.append(self._delete(connection, found[0]))
            fresh = []
            known = _known(connection, list(latest))
            for record_id, ready in latest.items():
                found = known.get(record_id)
                if found is not None and found[1] == ready.content:
                    unchanged += 1
                    continue
                if found is not None:
                    updated += 1
                    dropped.append(self._delete(connection, found[0]))
                else:
                    added += 1
                fresh.append(ready)
            if fresh:
                first = take(connection, len(fresh))
                self._insert(connection, fresh, first, vectors)
            if dropped:
                forget_vectors(connection, dropped)
            self.waiting = is_waiting(connection)
        return Written(added, updated, unchanged, removed)

    def _insert(
        self,
        connection: sqlite3.Connection,
        records: Sequence[Prepared],
        first: int,
        vectors: NewVectors,
    ) -> None:
        placed = list(enumerate(records, first + 1))
        connection.executemany(INSERT, [(row, *ready.values) for row, ready in placed])
        graph.insert(connection, ((row, ready.graph) for row, ready in placed))
        hashes = [ready.embedding for ready in records]
        for model in wanted(connection):
            known = vectors.get(model.number, {})
            brought = {key: known[key] for key in hashes if key in known}
            insert_vectors(connection, model.number, brought)
            if all(key in brought for key in hashes):
                continue
            connection.execute(
                """
                INSERT INTO pending SELECT ?1, r.row FROM records r WHERE r.row > ?2 AND NOT EXISTS
                (SELECT 1 FROM vectors v WHERE v.model = ?1 AND v.hash = r.embedding)
                """,
                (model.number, first),
            )

    def _delete(self, connection: sqlite3.Connection, row: int) -> bytes:
        """Delete a record and what hangs on it; returns what its vectors are filed under."""
        values = connection.execute(f"{SELECT} WHERE row = ?", (row,)).fetchone()
        record = from_values(values)
        graph.delete(connection, row, record)
        connection.execute("DELETE FROM records WHERE row = ?", (row,))
        connection.execute("DELETE FROM pending WHERE row = ?", (row,))
        connection.execute("INSERT INTO removals VALUES (?, ?)", (take(connection, 1) + 1, row))
        return embedding_hash(record.embedding_text)


def _known(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, tuple[int, bytes]]:
    """Row and content of the records that are there, by id."""
    out: dict[str, tuple[int, bytes]] = {}
    for part in parts(ids):
        found = connection.execute(
            f"SELECT id, row, content FROM records WHERE id IN ({marks(part)})", tuple(part)
        )
        out.update((name, (row, content)) for name, row, content in found)
    return out
