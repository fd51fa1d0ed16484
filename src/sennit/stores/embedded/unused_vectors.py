"""Vectors that no record uses and that are kept for a while, because a branch of a repository may bring their texts back.

Only an index run keeps a vector. A removal on request deletes it at once, with what earlier versions of the same
document have left.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable
from typing import Final

from sennit.stores.contract import UnusedVectors
from sennit.stores.sql.connection import Connection, batches, placeholders

PURGE_BATCH: Final = 2000
"""Vectors deleted in one transaction, so that another writer waits only for milliseconds."""

PARENT_BYTES: Final = 16

_IS_USED: Final = "EXISTS (SELECT 1 FROM records r WHERE r.embedding_hash = u.hash)"

DeletedTexts = Iterable[tuple[str | None, bytes]]
"""Parent and embedding hash of deleted records."""


def keep_unused_vectors(connection: Connection, deleted: DeletedTexts) -> None:
    """Note the texts that no record has any more, and keep their vectors."""
    now = time.time()
    connection.executemany(
        """
        INSERT INTO unused_vectors (hash, parent, since) SELECT ?, ?, ?
        WHERE NOT EXISTS (SELECT 1 FROM records WHERE embedding_hash = ?)
        ON CONFLICT (hash, parent) DO UPDATE SET since = excluded.since
        """,
        [(digest, _parent_key(parent), now, digest) for parent, digest in deleted],
    )


def delete_unused_vectors(connection: Connection, deleted: DeletedTexts) -> None:
    """Delete the vectors of texts that no record has any more, and those that were kept under the same parents."""
    listed = list(deleted)
    if not listed:
        return
    hashes = dict.fromkeys(digest for _, digest in listed)
    for batch in batches(list({_parent_key(parent) for parent, _ in listed if parent is not None})):
        found = connection.execute(
            f"SELECT hash FROM unused_vectors WHERE parent IN ({placeholders(batch)})", tuple(batch)
        )
        hashes |= dict.fromkeys(digest for (digest,) in found.fetchall())
    _delete(connection, list(hashes))


def count_unused(connection: Connection) -> UnusedVectors:
    """How many vectors are kept without a record, and their size."""
    count, size = connection.execute(
        f"""
        SELECT count(*), coalesce(sum(length(v.vector)), 0) FROM vectors v
        WHERE v.hash IN (SELECT u.hash FROM unused_vectors u WHERE NOT {_IS_USED})
        """
    ).fetchone()
    return UnusedVectors(int(count), int(size))


def purge_batch(connection: Connection, before: float, keep_bytes: int) -> tuple[int, bool]:
    """Delete some of the vectors that are unused for too long or too many; returns how many, and whether none is left."""
    connection.execute(f"DELETE FROM unused_vectors AS u WHERE {_IS_USED}")
    old = _column(
        connection,
        "SELECT hash FROM unused_vectors GROUP BY hash HAVING max(since) < ? LIMIT ?",
        (before, PURGE_BATCH),
    )
    if not old:
        excess = count_unused(connection).bytes - keep_bytes
        oldest = connection.execute(
            """
            SELECT u.hash, sum(length(v.vector)) FROM (
                SELECT hash, max(since) AS since FROM unused_vectors GROUP BY hash ORDER BY since, hash LIMIT ?
            ) u LEFT JOIN vectors v ON v.hash = u.hash GROUP BY u.hash, u.since ORDER BY u.since, u.hash
            """,
            (PURGE_BATCH if excess > 0 else 0,),
        ).fetchall()
        for digest, size in oldest:
            if excess <= 0:
                break
            old.append(digest)
            excess -= size or 0
    _delete(connection, old)
    return len(old), len(old) < PURGE_BATCH


def _delete(connection: Connection, hashes: list[bytes]) -> None:
    """Delete the vectors of those texts that no record has."""
    connection.executemany("DELETE FROM unused_vectors WHERE hash = ?", [(digest,) for digest in hashes])
    connection.executemany(
        """
        DELETE FROM vectors WHERE model IN (SELECT number FROM models) AND hash = ?
        AND NOT EXISTS (SELECT 1 FROM records WHERE embedding_hash = ?)
        """,
        [(digest, digest) for digest in hashes],
    )


def _column(connection: Connection, query: str, parameters: tuple[object, ...]) -> list[bytes]:
    return [value for (value,) in connection.execute(query, parameters).fetchall()]


def _parent_key(parent: str | None) -> bytes:
    """A key of a fixed size: a path may be longer than what Postgres can index."""
    return hashlib.blake2b((parent or "").encode(), digest_size=PARENT_BYTES).digest()
