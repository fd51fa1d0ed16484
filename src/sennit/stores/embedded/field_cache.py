"""A cache of record fields by row. A row is one version of one record and never changes, so no entry goes stale."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from sennit.stores.codec import COLUMN_FIELDS, decode_field, decode_metadata
from sennit.stores.sql.connection import Connection

MAX_CACHED_ROWS: Final = 32_768
"""Rows cached for one set of fields. A search reads some hundred rows, and searches read the same ones."""


_encode_compact: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


class FieldCache:
    """Reads fields of existing records. Any thread may call it, because a table only ever grows or is replaced."""

    def __init__(self) -> None:
        self.has_files: tuple[int, bool] | None = None
        """A version, and whether the database has files in it."""
        self._tables: dict[tuple[str, ...], dict[int, tuple[Any, ...]]] = {}

    def read(
        self, connection: Connection, keys: Sequence[int], names: Sequence[str]
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
    connection: Connection, rows: Sequence[int], names: Sequence[str]
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    has_column = [name in COLUMN_FIELDS for name in names]
    columns = ", ".join(
        name if column else "json_extract(metadata, ?)"
        for name, column in zip(names, has_column, strict=True)
    )
    paths = [f'$."{name}"' for name, column in zip(names, has_column, strict=True) if not column]
    dialect = connection.dialect
    if not dialect.extracts_json and paths:
        yield from _extract_fields(connection, rows, names)
        return
    found = connection.execute(
        f"SELECT row, {columns} FROM records WHERE row {dialect.in_rows}",
        (*paths, dialect.encode_rows(rows)),
    )
    encoded = [index for index, name in enumerate(names) if name in ("id", "timestamp")]
    for row, *values in found:
        for index in encoded:
            values[index] = decode_field(names[index], values[index])
        yield row, tuple(values)


def _extract_fields(
    connection: Connection, rows: Sequence[int], names: Sequence[str]
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """What `_read_fields` returns, with the metadata parsed here and not by the database."""
    dialect = connection.dialect
    columns = [name for name in names if name in COLUMN_FIELDS]
    found = connection.execute(
        f"SELECT {', '.join(('row', 'metadata', *columns))} FROM records WHERE row {dialect.in_rows}",
        (dialect.encode_rows(rows),),
    )
    for row, text, *stored in found:
        metadata = decode_metadata(text)
        values = dict(zip(columns, stored, strict=True))
        yield (
            row,
            tuple(
                decode_field(name, values[name]) if name in values else _json_value(metadata.get(name))
                for name in names
            ),
        )


def _json_value(value: Any) -> Any:
    """A JSON value as SQLite's `json_extract` returns it: truth as a number, lists and objects as text."""
    if isinstance(value, bool):
        return int(value)
    return _encode_compact(value) if isinstance(value, (list, dict)) else value
