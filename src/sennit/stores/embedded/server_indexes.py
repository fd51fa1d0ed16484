"""How far the indexes on servers are, as the source of truth records it, and which of them still count.

A delete stays in the feed until every index has applied it. An index that is no longer bound, because its role moved to
another server or its model was replaced, would hold all later deletes back for ever. Two processes may have different
settings, so neither can tell alone that an index is unbound. So each feeder says from time to time that it has the index,
and one of which nobody said so for a week holds nothing back. If it is bound again later, it finds that it has missed
deletes, and is built again.
"""

from __future__ import annotations

import time
from typing import Final

from sennit.stores.sql.connection import Connection
from sennit.stores.sql.schema import APPLIED, BOUND

UNBOUND_SECONDS: Final = 7 * 24 * 3600
"""How long deletes are kept for an index that no process feeds."""

_PUT: Final = "INSERT INTO state VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"


def record_applied(connection: Connection, index: str, number: int) -> None:
    """Record that an index has applied all changes up to a number, and that it is bound now."""
    connection.executemany(_PUT, [(f"{APPLIED}{index}", number), (f"{BOUND}{index}", int(time.time()))])


def read_applied(connection: Connection, index: str) -> int:
    """The last change that an index has recorded as applied; 0 at first."""
    found = connection.execute("SELECT value FROM state WHERE key = ?", (f"{APPLIED}{index}",)).fetchone()
    return int(found[0]) if found else 0


def applied_by_all(connection: Connection) -> int | None:
    """The last change that every bound index has applied; None without such an index."""
    now = int(time.time())
    rows = dict(
        connection.execute(
            "SELECT key, value FROM state WHERE key LIKE ? OR key LIKE ?", (f"{APPLIED}%", f"{BOUND}%")
        ).fetchall()
    )
    applied = {key.removeprefix(APPLIED): int(n) for key, n in rows.items() if key.startswith(APPLIED)}
    # What an earlier version has recorded has no time. It counts from now on.
    unknown = [f"{BOUND}{name}" for name in applied if f"{BOUND}{name}" not in rows]
    connection.executemany(_PUT, [(key, now) for key in unknown])
    return min(
        (
            number
            for name, number in applied.items()
            if now - int(rows.get(f"{BOUND}{name}", now)) <= UNBOUND_SECONDS
        ),
        default=None,
    )
