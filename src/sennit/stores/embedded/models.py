"""Embedding models of a database: which one answers, which one is being built, what still wants a vector.

A change of model starts a second set of vectors beside the first. The first answers until every record has a
vector of the second; then one transaction makes the second the active one, and the first is dropped.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sennit.stores.embedded.sqlite import SqlitePool, marks, parts

RETIRE_BATCH: Final = 2000
"""Vectors of a replaced model deleted in one transaction: a writer beside it waits for milliseconds."""


@dataclass(frozen=True, slots=True)
class Model:
    """An embedding model as the database knows it."""

    number: int
    fingerprint: str
    name: str
    spec: str
    dimensions: int
    state: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the vectors of a model are."""

    model: Model
    pending: int
    total: int

    @property
    def share(self) -> float:
        """The share of records that have a vector of this model."""
        return 1.0 if not self.total else max(0.0, 1 - self.pending / self.total)


def wanted(connection: sqlite3.Connection) -> list[Model]:
    """The models that every record shall have a vector of: the active one first."""
    found = connection.execute(
        "SELECT number, fingerprint, name, spec, dimensions, state FROM models WHERE state != 'retired'"
    )
    return sorted((Model(*values) for values in found), key=lambda model: model.state)


def is_waiting(connection: sqlite3.Connection) -> bool:
    """Whether a record waits for a vector."""
    return connection.execute("SELECT 1 FROM pending LIMIT 1").fetchone() is not None


class Models:
    """The models of one database."""

    def __init__(self, database: SqlitePool) -> None:
        self._database = database

    def wanted(self) -> list[Model]:
        """The active model, and the one being built."""
        with self._database.read() as connection:
            return wanted(connection)

    def progress(self) -> list[Progress]:
        """How far each wanted model is."""
        with self._database.read() as connection:
            (total,) = connection.execute("SELECT count(*) FROM records").fetchone()
            counts = dict(connection.execute("SELECT model, count(*) FROM pending GROUP BY model").fetchall())
            return [Progress(model, counts.get(model.number, 0), total) for model in wanted(connection)]

    def register(self, fingerprint: str, name: str, spec: str, dimensions: int) -> Model:
        """Make a model the wanted one: active at once when nothing would be lost by it, else built beside."""
        with self._database.write() as connection:
            known = {model.fingerprint: model for model in wanted(connection)}
            active = next((model for model in known.values() if model.state == "active"), None)
            if active is not None and active.fingerprint == fingerprint:
                for model in known.values():
                    if model.state == "building":
                        _retire(connection, model.number)
            elif fingerprint not in known:
                for model in known.values():
                    if model.state == "building":
                        _retire(connection, model.number)
                self._start(connection, fingerprint, name, spec, dimensions, active)
            return next(model for model in wanted(connection) if model.fingerprint == fingerprint)

    def _start(
        self,
        connection: sqlite3.Connection,
        fingerprint: str,
        name: str,
        spec: str,
        dimensions: int,
        active: Model | None,
    ) -> None:
        # What is left of an earlier time with this model is swept under another name.
        connection.execute(
            "UPDATE models SET fingerprint = fingerprint || ' ' || number WHERE fingerprint = ?",
            (fingerprint,),
        )
        (number,) = connection.execute(
            "INSERT INTO models (fingerprint, name, spec, dimensions, state) VALUES (?, ?, ?, ?, 'building') "
            "RETURNING number",
            (fingerprint, name, spec, dimensions),
        ).fetchone()
        connection.execute("INSERT INTO pending SELECT ?, row FROM records", (number,))
        (missing,) = connection.execute("SELECT count(*) FROM pending WHERE model = ?", (number,)).fetchone()
        if active is None or not missing:
            _activate(connection, number)

    def lacking(
        self, hashes: Iterable[bytes], given: Mapping[str, Container[bytes]]
    ) -> list[tuple[Model, set[bytes]]]:
        """Every wanted model, and which of these texts have no vector of it; for who is about to write.

        Those that are given, by the model's fingerprint, are not looked for.
        """
        out = []
        with self._database.before_writing() as connection:
            for model in wanted(connection):
                ready = given.get(model.fingerprint, ())
                absent = {digest for digest in hashes if digest not in ready}
                for part in parts(list(absent)):
                    found = connection.execute(
                        f"SELECT hash FROM vectors WHERE model = ? AND hash IN ({marks(part)})",
                        (model.number, *part),
                    )
                    absent.difference_update(value for (value,) in found)
                out.append((model, absent))
        return out

    def backlog(self, model: int, limit: int) -> list[tuple[bytes, str]]:
        """Some texts that want a vector: hash and text, oldest first, each once."""
        with self._database.read() as connection:
            found = connection.execute(
                """
                SELECT r.embedding, CASE WHEN r.title = '' THEN r.text ELSE r.title || char(10) || r.text END
                FROM pending p JOIN records r ON r.row = p.row WHERE p.model = ? ORDER BY p.row LIMIT ?
                """,
                (model, limit),
            )
            return list(dict(found).items())

    def fill(self, model: int, vectors: Mapping[bytes, bytes]) -> None:
        """Keep vectors of texts in the backlog; those of a model no longer wanted are let go."""
        with self._database.write() as connection:
            found = connection.execute("SELECT state FROM models WHERE number = ?", (model,)).fetchone()
            if found is None or found[0] == "retired":
                return
            # A text that was removed while its vector was made leaves nothing behind.
            held = connection.execute(
                f"SELECT DISTINCT embedding FROM records WHERE embedding IN ({marks(tuple(vectors))})",
                tuple(vectors),
            )
            insert_vectors(connection, model, {digest: vectors[digest] for (digest,) in held.fetchall()})
            arrived = connection.execute(
                """
                SELECT p.row FROM pending p JOIN records r ON r.row = p.row
                JOIN vectors v ON v.model = p.model AND v.hash = r.embedding WHERE p.model = ?
                ORDER BY p.row LIMIT ?
                """,
                (model, len(vectors) * 16),
            ).fetchall()
            seq = take(connection, len(arrived))
            connection.executemany(
                "INSERT INTO arrivals VALUES (?, ?, ?)",
                ((seq + at, model, row) for at, (row,) in enumerate(arrived, 1)),
            )
            connection.executemany(
                "DELETE FROM pending WHERE model = ? AND row = ?", ((model, row) for (row,) in arrived)
            )

    def switch(self, model: int) -> bool:
        """Make a built model the active one, if every record has its vector; False when not yet."""
        with self._database.write() as connection:
            state = connection.execute("SELECT state FROM models WHERE number = ?", (model,)).fetchone()
            left = connection.execute("SELECT 1 FROM pending WHERE model = ? LIMIT 1", (model,)).fetchone()
            if state != ("building",) or left is not None:
                return False
            _activate(connection, model)
            return True

    def sweep(self) -> list[int]:
        """Delete what is left of replaced models; their numbers."""
        with self._database.read() as connection:
            retired = [n for (n,) in connection.execute("SELECT number FROM models WHERE state = 'retired'")]
        for number in retired:
            left = True
            while left:
                with self._database.write() as connection:
                    left = bool(
                        connection.execute(
                            "DELETE FROM vectors WHERE number IN (SELECT number FROM vectors WHERE model = ? LIMIT ?)",
                            (number, RETIRE_BATCH),
                        ).rowcount
                    )
            with self._database.write() as connection:
                connection.execute("DELETE FROM models WHERE number = ?", (number,))
        return retired


def take(connection: sqlite3.Connection, count: int) -> int:
    """Take `count` change numbers: the number before the first of them."""
    (seq,) = connection.execute(
        "UPDATE state SET value = value + ? WHERE key = 'seq' RETURNING value", (count,)
    ).fetchone()
    return int(seq) - count


def insert_vectors(connection: sqlite3.Connection, model: int, vectors: Mapping[bytes, bytes]) -> None:
    """Keep vectors under the hash of their text."""
    now = time.time()
    connection.executemany(
        "INSERT OR IGNORE INTO vectors (model, hash, vector, created) VALUES (?, ?, ?, ?)",
        ((model, digest, vector, now) for digest, vector in vectors.items()),
    )


def forget_vectors(connection: sqlite3.Connection, hashes: Sequence[bytes]) -> None:
    """Drop the vectors of texts that no record holds any more: a removed text leaves nothing behind."""
    connection.executemany(
        """
        DELETE FROM vectors WHERE model IN (SELECT number FROM models) AND hash = ?1
        AND NOT EXISTS (SELECT 1 FROM records WHERE embedding = ?1)
        """,
        ((digest,) for digest in hashes),
    )


def _activate(connection: sqlite3.Connection, number: int) -> None:
    for (old,) in connection.execute("SELECT number FROM models WHERE state = 'active'").fetchall():
        _retire(connection, old)
    connection.execute("UPDATE models SET state = 'active' WHERE number = ?", (number,))
    connection.execute("UPDATE state SET value = ? WHERE key = 'model'", (number,))
    # A change like any other: every process sees the switch at its next search.
    take(connection, 1)


def _retire(connection: sqlite3.Connection, number: int) -> None:
    connection.execute("UPDATE models SET state = 'retired' WHERE number = ?", (number,))
    connection.execute("DELETE FROM pending WHERE model = ?", (number,))
    connection.execute("DELETE FROM arrivals WHERE model = ?", (number,))
