"""Tables: each row of a CSV or Parquet file as a record, with its columns as metadata."""

from __future__ import annotations

import csv
import io
import re
import string
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from sennit.errors import InvalidInput
from sennit.ingest.bounded_child import run_child
from sennit.ingest.file_reader import UnreadableFile, decode
from sennit.ingest.text_profile import RecordIds, id_prefix
from sennit.records import FRAGMENT_FIELD, Json, Record

MAX_ROWS: Final = 200_000
"""Rows of one file. A larger table belongs into a database; `sennit import` takes its rows as JSON Lines."""
MAX_COLUMNS: Final = 1_000
MAX_CELL_CHARACTERS: Final = 100_000
RESERVED_NAMES: Final = frozenset(
    {"artifact_id", "chunk_index", "file_path", "folder", "path", "role", FRAGMENT_FIELD}
)
"""Metadata with a meaning of its own: a column of this name is only in the text."""

_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d{0,14})(?:\.\d{1,15})?")
"""A number as it is written; a code such as 007 is none."""

_CHILD: Final = Path(__file__).with_name("parquet_child.py")

Row = tuple[int, dict[str, Json]]
"""The number of a row, counted from 1 without the head, and its values by column."""


def check_template(template: str) -> None:
    """Refuse a template that is more than text and names of columns in braces."""
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError as error:
        raise InvalidInput(f"The row template {template!r} is not valid: {error}") from error
    for _, name, form, conversion in parts:
        if name is not None and (not name.strip() or form or conversion or set(name) & set(".[]")):
            raise InvalidInput(
                f"The row template {template!r} may hold only names of columns in braces, such as '{{title}}: {{text}}'"
            )


def fill_template(template: str, values: Mapping[str, Json]) -> str:
    """Put the values of a row into a template; a column that the row lacks is empty."""
    out = []
    for text, name, _, _ in string.Formatter().parse(template):
        out.append(text)
        if name is not None:
            out.append(_shown(values.get(name)))
    return "".join(out)


def read_csv(data: bytes, separator: str | None = None) -> Iterator[Row]:
    """The rows of a CSV file. Its separator is guessed from the head, unless it is given."""
    text = decode(data).text
    head = text[: text.find("\n") + 1 or len(text)]
    separator = separator or max(",;\t|", key=head.count)
    csv.field_size_limit(MAX_CELL_CHARACTERS)
    try:
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        head_names = next(rows, [])
        columns = _unique_names(head_names)
        if len(columns) < 2:
            raise UnreadableFile("a table with fewer than two columns", permanent=True)
        number = 0
        for values in rows:
            if any(value.strip() for value in values):
                number += 1
                if len(values) > len(columns):
                    # The row has cells that the head has no name for.
                    columns = _unique_names([*head_names, *[""] * (len(values) - len(head_names))])
                yield number, {name: _typed(value) for name, value in zip(columns, values, strict=False)}
    except csv.Error as error:
        raise UnreadableFile(f"a table that cannot be read: {error}") from error


def read_parquet(data: bytes) -> Iterator[Row]:
    """The rows of a Parquet file, read in a child process."""
    if find_spec("pyarrow") is None:
        raise UnreadableFile(
            "Parquet needs an optional package; install it with: pip install 'sennit[parquet]'",
            permanent=False,
        )
    output = run_child(_CHILD, data, "a Parquet file", (MAX_ROWS, MAX_COLUMNS, MAX_CELL_CHARACTERS))
    yield from enumerate(output.get("rows", ()), 1)


def row_text(values: Mapping[str, Json]) -> str:
    """The text of a row without a template: a line `column: value` for each value."""
    return "\n".join(f"{name}: {_shown(value)}" for name, value in _flat(_filled(values)))


def _flat(values: Mapping[str, Json], before: str = "") -> Iterator[tuple[str, Json]]:
    """The values of a row, those of a struct by the path that filters take."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def row_records(
    rows: Iterable[Row], place: str, *, template: str, collection: str, timestamp: datetime | None
) -> list[Record]:
    """One record for each row: the template with its values, or a line `column: value` for each."""
    ids = RecordIds(id_prefix(place))
    out: list[Record] = []
    for position, (number, values) in enumerate(rows):
        if position >= MAX_ROWS:
            raise UnreadableFile(f"a table of more than {MAX_ROWS:,} rows")
        kept = _filled(values)
        text = fill_template(template, kept) if template else row_text(values)
        if not text.strip():
            continue
        metadata: dict[str, Json] = {
            name: value for name, value in kept.items() if name not in RESERVED_NAMES
        }
        out.append(
            Record(
                id=ids.next_id(text),
                text=text,
                collection=collection,
                kind="row",
                path=place,
                parent=place,
                position=position,
                timestamp=timestamp,
                metadata={**metadata, FRAGMENT_FIELD: f"row={number}"},
            )
        )
    return out


def _filled(values: Mapping[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}


def _unique_names(columns: Sequence[str]) -> list[str]:
    if len(columns) > MAX_COLUMNS:
        raise UnreadableFile(f"a table of {len(columns):,} columns; the limit is {MAX_COLUMNS:,}")
    out: list[str] = []
    for number, column in enumerate(columns, 1):
        name = " ".join(column.split())[:200] or f"column {number}"
        out.append(name if name not in out else f"{name} {number}")
    return out


def _typed(value: str) -> Json:
    """A number where the text is one, so that filters compare it as one."""
    if not _NUMBER.fullmatch(value):
        return value
    return float(value) if "." in value else int(value)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_shown(one)}" for name, one in _flat(value))
    if isinstance(value, list):
        return ", ".join(
            f"({_shown(one)})" if isinstance(one, Mapping | list) else _shown(one) for one in value
        )
    return "" if value is None else str(value)
