"""The state of the repositories in SQL: one table of keys and values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from sennit.stores.sql.connection import Connection

_SCAN: Final = "SELECT key, value FROM entries WHERE key >= ? AND key < ? ORDER BY key"


class SqlState:
    """The keys and values that one connection sees. It writes only inside a write transaction."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, key: bytes) -> bytes | None:
        found = self._connection.execute("SELECT value FROM entries WHERE key = ?", (key,)).fetchone()
        return bytes(found[0]) if found else None

    def scan(
        self, low: bytes, high: bytes, *, limit: int | None = None, reverse: bool = False
    ) -> list[tuple[bytes, bytes]]:
        sql = f"{_SCAN}{' DESC' if reverse else ''}{'' if limit is None else ' LIMIT ?'}"
        parameters = (low, high) if limit is None else (low, high, limit)
        return [(bytes(key), bytes(value)) for key, value in self._connection.execute(sql, parameters)]

    def put(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._connection.executemany(
            "INSERT INTO entries VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", pairs
        )

    def delete(self, keys: Iterable[bytes]) -> None:
        self._connection.executemany("DELETE FROM entries WHERE key = ?", ((key,) for key in keys))
