"""The name that a database has on servers of indexes: it stays when the database moves, and a copy gets another."""

from __future__ import annotations

import json
import platform
import secrets
from collections.abc import Callable
from typing import Final, NamedTuple

from sennit.stores.sql.connection import Connection, SqlPool
from sennit.stores.sql.schema import OF_INDEXES, SERVER_NAME

NAME_BYTES: Final = 12


class _Named(NamedTuple):
    """The name, and where the database was when it was last opened with it."""

    name: str
    place: str
    machine: str


def name_on_servers(pool: SqlPool, first_name: Callable[[], str]) -> str:
    """The name of a database, in hexadecimal digits; `first_name` returns that of one that has none yet.

    A database in another place than before was moved or copied. It was moved if this machine knows that it is no longer
    in the former place; otherwise it counts as a copy, because two databases must never share an index.
    """
    place, machine = pool.place(), platform.node()
    with pool.read() as connection:
        known = _read(connection)
    if known is not None and known.place == place:
        return known.name
    first = first_name() if known is None else ""
    with pool.write() as connection:
        # Another process may have been first.
        latest = _read(connection)
        if latest is not None and latest.place == place:
            return latest.name
        if latest is None:
            name = first
        elif latest.machine == machine and pool.has_left(latest.place):
            name = latest.name
        else:
            name = secrets.token_hex(NAME_BYTES)
            for prefix in OF_INDEXES:
                connection.execute("DELETE FROM state WHERE key LIKE ?", (f"{prefix}%",))
        connection.execute(
            "INSERT INTO entries VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            (SERVER_NAME, json.dumps(_Named(name, place, machine)).encode()),
        )
    return name


def _read(connection: Connection) -> _Named | None:
    found = connection.execute("SELECT value FROM entries WHERE key = ?", (SERVER_NAME,)).fetchone()
    return None if found is None else _Named(*json.loads(bytes(found[0])))
