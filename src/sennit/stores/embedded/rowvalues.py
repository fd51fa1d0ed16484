"""Some fields of records, remembered by row: a row is one version of one record, and never changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, Final

from sennit.stores.embedded.codec import READ_APART, decoded

MOST: Final = 32_768
"""Rows of which the same fields are remembered; a search looks at some hundred, and searches look at the same ones."""


class RowValues:
    """Reads fields of records that exist. Called from any thread: what is in a table is never taken out of it."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], dict[int, tuple[Any, ...]]] = {}

    def read(
        self, connection: sqlite3.Connection, keys: Sequence[int], names: Sequence[str]
    ) -> list[tuple[Any, ...]]:
        """Built-in fields, and those of the metadata's first level, in the order of the keys."""
        wanted = tuple(names)
        table = self._known.setdefault(wanted, {})
        try:
            return [table[key] for key in keys]
        except KeyError:
            missing = [key for key in keys if key not in table]
        if len(table) + len(missing) > MOST:
            # Others may be reading from the table that was.
            table = self._known[wanted] = {}
            missing = list(keys)
        table.update(_read(connection, missing, wanted))
        return [table[key] for key in keys]


def _read(
    connection: sqlite3.Connection, rows: Sequence[int], names: Sequence[str]
) -> Iterator[tuple[int, tuple[Any, ...]]]:
    apart = [name in READ_APART for name in names]
    listed = ", ".join(
        name if here else "json_extract(metadata, ?)" for name, here in zip(names, apart, strict=True)
    )
    paths = [f'$."{name}"' for name, here in zip(names, apart, strict=True) if not here]
    found = connection.execute(
        f"SELECT row, {listed} FROM records WHERE row IN (SELECT value FROM json_each(?))",
        (*paths, str(list(rows))),
    )
    coded = [place for place, name in enumerate(names) if name in ("id", "timestamp")]
    for row, *values in found:
        for place in coded:
            values[place] = decoded(names[place], values[place])
        yield row, tuple(values)
