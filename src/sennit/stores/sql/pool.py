"""Opens the pool for a database by what names it."""

from __future__ import annotations

from pathlib import Path

from sennit.stores.sql.connection import SqlPool
from sennit.stores.sql.sqlite import SqlitePool


def open_pool(target: str | None) -> SqlPool:
    """The pool of the SQLite file at a path; a database in memory when it is None."""
    return SqlitePool(None if target is None else Path(target))
