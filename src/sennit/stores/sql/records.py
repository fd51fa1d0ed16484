"""The SQL of the table of records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from sennit.records import Record
from sennit.stores.codec import COLUMNS, HASH_COLUMNS, RECORD_COLUMNS, record_from_row
from sennit.stores.sql.connection import Connection

INSERT: Final = f"INSERT INTO records ({COLUMNS}) VALUES ({', '.join('?' * 18)})"
SELECT: Final = f"SELECT {RECORD_COLUMNS} FROM records"
SELECT_WITH_HASHES: Final = f"SELECT {RECORD_COLUMNS}, {HASH_COLUMNS} FROM records"


def read_records(connection: Connection, low: int, high: int) -> Iterator[tuple[int, Record]]:
    """The records whose row n is low < n <= high, ascending."""
    found = connection.execute(f"{SELECT} WHERE row > ? AND row <= ? ORDER BY row", (low, high))
    return ((values[0], record_from_row(values)) for values in found)
