"""A cache of record fields by row. A row is one version of one record and never changes, so no entry goes stale."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

from sennit.stores.embedded.codec import COLUMN_FIELDS, decode_field

MAX_CACHED_ROWS: Final = 32_768
"""Rows cached for one set of fields. A search reads some hundred rows, and searches read the same ones."""


class FieldCache:
    """Reads fields of existing records. Any thread may call it, because a table only ever grows or is replaced."""

    def __init__(self) -> None:
        self._tables: dict[tuple[str, ...], dict[int, tuple[Any, ...]]] = {}

    def read(
        self, connection: sqlite3.Connection, keys: Sequence[int], names: Sequence[str]
    ) -> list[tuple[Any, ...]]:
        """Built-in fields and top-level metadata fields, in the order of the keys."""
        fields = tuple(names)
        table = self._tables.setdefault(fields, {})
        try:
            return [table[key] for key in keys]
        except KeyError:
            missing = [key for key in keys if key not in table]
        if len(table) + len(missing) > MAX_CACHED_ROWS:
            # Another thread may still read from the old table.
            table = self._tables[fields] = {}
            missing = list(keys)
        table.update(_read_fields(connection, missing, fields))
        return [table[key] for key in keys]


def _read_fields(
    connection: sqlite3.Connection, rows: Sequence[int], names: Sequence[str]
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    has_column = [name in COLUMN_FIELDS for name in names]
    columns = ", ".join(
        name if column else "json_extract(metadata, ?)"
        for name, column in zip(names, has_column, strict=True)
    )
    paths = [f'$."{name}"' for name, column in zip(names, has_column, strict=True) if not column]
    found = connection.execute(
        f"SELECT row, {columns} FROM records WHERE row IN (SELECT value FROM json_each(?))",
        (*paths, str(list(rows))),
    )
    encoded = [index for index, name in enumerate(names) if name in ("id", "timestamp")]
    for row, *values in found:
        for index in encoded:
            values[index] = decode_field(names[index], values[index])
        yield row, tuple(values)
