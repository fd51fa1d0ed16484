"""Opens the pool for a database by what names it."""

from __future__ import annotations

from pathlib import Path

from sennit.errors import MissingExtra
from sennit.stores.sql.connection import SqlPool
from sennit.stores.sql.schema import UNFINISHED
from sennit.stores.sql.sqlite import SqlitePool
from sennit.stores.target import is_postgres


def open_pool(target: str | None) -> SqlPool:
    """The pool of a Postgres database, or of the SQLite file at a path; a database in memory when it is None."""
    if target is None or not is_postgres(target):
        return SqlitePool(None if target is None else Path(target))
    try:
        from sennit.stores.sql.postgres import PostgresPool
    except ImportError as error:
        if (error.name or "").startswith("sennit"):
            raise
        raise MissingExtra("A database on Postgres", "postgres") from error
    return PostgresPool(target)


def is_unfinished(pool: SqlPool) -> bool:
    """Whether a migration into this database was begun and not finished."""
    with pool.read() as connection:
        return connection.execute("SELECT 1 FROM entries WHERE key = ?", (UNFINISHED,)).fetchone() is not None
