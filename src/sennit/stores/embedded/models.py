"""The embedding models of a database: which one is active, which one is being built, which vectors are missing.

A change of model starts a second set of vectors. The old model answers until every record has a vector of the new
one. Then one transaction activates the new model, and the old vectors are deleted.
"""

from __future__ import annotations

import time
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sennit.stores.contract import Model, ModelProgress, UnusedVectors
from sennit.stores.embedded.unused_vectors import count_unused, purge_batch
from sennit.stores.sql.connection import Connection, SqlPool, batches, placeholders
from sennit.stores.write_plan import missing_vectors, models_retired_by

MAX_JOINED_HASHES: Final = 16
"""Up to this many hashes are looked up together with the models; a batch of a load looks up thousands."""

RETIRE_BATCH: Final = 2000
"""Vectors of a retired model deleted in one transaction, so that another writer waits only for milliseconds."""


SELECT_MODELS: Final = (
    "SELECT number, fingerprint, name, spec, dimensions, state FROM models WHERE state != 'retired'"
)


def current_models(connection: Connection) -> list[Model]:
    """The models that every record needs a vector of: the active one, then the one being built."""
    return models_of(connection.execute(SELECT_MODELS))


def models_of(rows: Iterable[Sequence[Any]]) -> list[Model]:
    """The models of the rows of SELECT_MODELS: the active one first."""
    return sorted((Model(*values) for values in rows), key=lambda model: model.state)


SELECT_PENDING: Final = "SELECT 1 FROM pending_vectors LIMIT 1"


def has_pending_vectors(connection: Connection) -> bool:
    """Whether any record lacks a vector."""
    return connection.execute(SELECT_PENDING).fetchone() is not None


class ModelRegistry:
    """The embedding models of one database, and their pending vectors."""

    def __init__(self, pool: SqlPool) -> None:
        self._pool = pool

    def current(self) -> list[Model]:
        """The active model, then the one being built."""
        with self._pool.read() as connection:
            return current_models(connection)

    def progress(self) -> list[ModelProgress]:
        """The progress of each current model."""
        with self._pool.read() as connection:
            (total,) = connection.execute("SELECT count(*) FROM records").fetchone()
            counts = dict(
                connection.execute("SELECT model, count(*) FROM pending_vectors GROUP BY model").fetchall()
            )
            return [
                ModelProgress(model, counts.get(model.number, 0), total)
                for model in current_models(connection)
            ]

    def register(self, fingerprint: str, name: str, spec: str, dimensions: int) -> Model:
        """Make this the model of the database.

        It is active at once if there is no other model or no record; otherwise it is built while the old one answers.
        """
        with self._pool.write() as connection:
            current = current_models(connection)
            for model in models_retired_by(fingerprint, current):
                _retire(connection, model.number)
            if fingerprint not in {model.fingerprint for model in current}:
                active = next((model for model in current if model.state == "active"), None)
                self._start(connection, fingerprint, name, spec, dimensions, active)
            return next(model for model in current_models(connection) if model.fingerprint == fingerprint)

    def _start(
        self,
        connection: Connection,
        fingerprint: str,
        name: str,
        spec: str,
        dimensions: int,
        active: Model | None,
    ) -> None:
        # Free the fingerprint: a retired row of the same model may still wait for its deletion.
        connection.execute(
            "UPDATE models SET fingerprint = fingerprint || ' ' || number WHERE fingerprint = ?",
            (fingerprint,),
        )
        (number,) = connection.execute(
            "INSERT INTO models (fingerprint, name, spec, dimensions, state) VALUES (?, ?, ?, ?, 'building') "
            "RETURNING number",
            (fingerprint, name, spec, dimensions),
        ).fetchone()
        connection.execute("INSERT INTO pending_vectors SELECT ?, row FROM records", (number,))
        (missing,) = connection.execute(
            "SELECT count(*) FROM pending_vectors WHERE model = ?", (number,)
        ).fetchone()
        if active is None or not missing:
            _activate(connection, number)

    def missing_vectors(
        self, hashes: Iterable[bytes], given: Mapping[str, Container[bytes]]
    ) -> list[tuple[Model, set[bytes]]]:
        """Every current model, and which of these text hashes have no vector of it; for a caller about to write.

        Hashes in `given`, by model fingerprint, are not looked up.
        """
        wanted = list(hashes)
        with self._pool.read_with_writer() as connection:
            if len(wanted) <= MAX_JOINED_HASHES:
                # Few hashes: the models and what they have of them in one statement, and one round trip.
                rows = connection.execute(
                    f"SELECT m.number, fingerprint, name, spec, dimensions, state, hash FROM models m "
                    f"LEFT JOIN vectors v ON v.model = m.number AND hash IN ({placeholders(wanted) or 'NULL'}) "
                    "WHERE state != 'retired'",
                    tuple(wanted),
                ).fetchall()
                models = models_of(dict.fromkeys(row[:6] for row in rows))
                stored = {(row[0], bytes(row[6])) for row in rows if row[6] is not None}
            else:
                models = current_models(connection)
                stored = {
                    (model.number, digest)
                    for model in models
                    for batch in batches(
                        [one for one in wanted if one not in given.get(model.fingerprint, ())]
                    )
                    for (digest,) in connection.execute(
                        f"SELECT hash FROM vectors WHERE model = ? AND hash IN ({placeholders(batch)})",
                        (model.number, *batch),
                    )
                }
        return missing_vectors(models, wanted, given, stored)

    def pending_texts(self, model: int, limit: int) -> list[tuple[bytes, str]]:
        """Hash and text of some records that lack a vector, oldest first and without duplicates."""
        with self._pool.read() as connection:
            found = connection.execute(
                """
                SELECT r.embedding_hash, CASE WHEN r.title = '' THEN r.text ELSE r.title || '\n' || r.text END
                FROM pending_vectors p JOIN records r ON r.row = p.row WHERE p.model = ? ORDER BY p.row LIMIT ?
                """,
                (model, limit),
            )
            return list(dict(found).items())

    def add_late_vectors(self, model: int, vectors: Mapping[bytes, bytes]) -> None:
        """Store vectors of pending texts. Vectors of a retired model are dropped."""
        with self._pool.write() as connection:
            found = connection.execute("SELECT state FROM models WHERE number = ?", (model,)).fetchone()
            if found is None or found[0] == "retired":
                return
            # A text that was removed while its vector was computed leaves no vector behind.
            held = connection.execute(
                "SELECT DISTINCT embedding_hash FROM records "
                f"WHERE embedding_hash IN ({placeholders(tuple(vectors))})",
                tuple(vectors),
            )
            insert_vectors(connection, model, {digest: vectors[digest] for (digest,) in held.fetchall()})
            arrived = connection.execute(
                """
                SELECT p.row FROM pending_vectors p JOIN records r ON r.row = p.row
                JOIN vectors v ON v.model = p.model AND v.hash = r.embedding_hash WHERE p.model = ?
                ORDER BY p.row LIMIT ?
                """,
                (model, len(vectors) * 16),
            ).fetchall()
            seq = connection.allocate(len(arrived))
            connection.executemany(
                "INSERT INTO late_vectors VALUES (?, ?, ?)",
                ((seq + offset, model, row) for offset, (row,) in enumerate(arrived, 1)),
            )
            connection.executemany(
                "DELETE FROM pending_vectors WHERE model = ? AND row = ?",
                ((model, row) for (row,) in arrived),
            )

    def activate_if_complete(self, model: int) -> bool:
        """Activate a model that is being built, if every record has its vector; whether it was activated."""
        with self._pool.write() as connection:
            state = connection.execute("SELECT state FROM models WHERE number = ?", (model,)).fetchone()
            left = connection.execute(
                "SELECT 1 FROM pending_vectors WHERE model = ? LIMIT 1", (model,)
            ).fetchone()
            if state != ("building",) or left is not None:
                return False
            _activate(connection, model)
            return True

    def known_hashes(self, fingerprint: str) -> Iterator[bytes]:
        """The hashes of all texts that have a vector of a current model, used or not."""
        with self._pool.read() as connection:
            found = connection.execute(
                "SELECT hash FROM vectors WHERE model = (SELECT number FROM models WHERE fingerprint = ?)",
                (fingerprint,),
            )
            for (digest,) in found:
                yield digest

    def unused(self) -> UnusedVectors:
        """The vectors that no record uses, which index runs have kept."""
        with self._pool.read() as connection:
            return count_unused(connection)

    def delete_unused(self, before: float, keep_bytes: int = 0) -> int:
        """Delete the vectors that were unused before a time, and the oldest others beyond a size; returns how many."""
        deleted, is_done = 0, False
        while not is_done:
            with self._pool.write() as connection:
                count, is_done = purge_batch(connection, before, keep_bytes)
            deleted += count
        return deleted

    def delete_retired(self) -> list[int]:
        """Delete retired models with their vectors; returns their numbers."""
        with self._pool.read() as connection:
            retired = [n for (n,) in connection.execute("SELECT number FROM models WHERE state = 'retired'")]
        for number in retired:
            left = True
            while left:
                with self._pool.write() as connection:
                    left = bool(
                        connection.execute(
                            "DELETE FROM vectors WHERE number IN (SELECT number FROM vectors WHERE model = ? LIMIT ?)",
                            (number, RETIRE_BATCH),
                        ).rowcount
                    )
            with self._pool.write() as connection:
                connection.execute("DELETE FROM models WHERE number = ?", (number,))
        return retired


def insert_vectors(connection: Connection, model: int, vectors: Mapping[bytes, bytes]) -> None:
    """Store vectors under the hashes of their texts."""
    now = time.time()
    connection.executemany(
        "INSERT INTO vectors (model, hash, vector, created) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        ((model, digest, vector, now) for digest, vector in vectors.items()),
    )


def _activate(connection: Connection, number: int) -> None:
    for (old,) in connection.execute("SELECT number FROM models WHERE state = 'active'").fetchall():
        _retire(connection, old)
    connection.execute("UPDATE models SET state = 'active' WHERE number = ?", (number,))
    connection.execute("UPDATE state SET value = ? WHERE key = 'model'", (number,))
    # The switch counts as a change: every process sees it at its next search.
    connection.allocate(1)


def _retire(connection: Connection, number: int) -> None:
    connection.execute("UPDATE models SET state = 'retired' WHERE number = ?", (number,))
    connection.execute("DELETE FROM pending_vectors WHERE model = ?", (number,))
    connection.execute("DELETE FROM late_vectors WHERE model = ?", (number,))
