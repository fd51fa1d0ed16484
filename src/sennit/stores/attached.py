"""Attached collections: a table, collection or index that somebody else owns and fills, searched as it is.

A binding of a server implements `AttachedCollection`; everything else is the engine's: `narrow` says what of a
filter the server may apply, `to_record` makes a record of a row, and the source
(`sources/attached.py`) checks each record against the audience and the filter, and asks for more until it has enough.
Nothing is copied and nothing is written.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sennit.errors import InvalidInput, SourceError
from sennit.filters import EVERYTHING, And, Equal, Filter, In, Or, Range, fields_of, matches
from sennit.records import Json, Record
from sennit.settings.attached import CONSTANTS, AttachedMapping
from sennit.stores.contract import KeywordQuery
from sennit.stores.findings import Finding

PUSHED: Final = (Equal, In, Range)
"""The conditions that a server is asked to apply. A negation is not: a row without a value means another thing to each."""

CONSTANT_FIELDS: Final = frozenset(("collection", *CONSTANTS))
"""Fields that all rows have the same where no column fills them."""

UNIT_TOLERANCE: Final = 1e-3
"""How far the length of a vector may be from 1 where numbers were rounded to 16 bits."""

SAMPLED_ROWS: Final = 64
"""Rows that a check reads to see which fields a collection without a schema has."""

_BUILTIN: Final = ("title", "url", "path", "parent", "position", "kind", "sensitivity", "scope", "tenant")


class AttachedRow(NamedTuple):
    """One hit: the values of `AttachedMapping.columns`, by column, as Python values (None where there is none)."""

    values: Mapping[str, Any]
    score: float = 1.0


class PartialRows(list[AttachedRow]):
    """What was found although a part of the collection did not answer. It is used, and `problem` is reported."""

    problem: str

    @classmethod
    def of(cls, rows: Sequence[AttachedRow], problem: str) -> PartialRows:
        partial = cls(rows)
        partial.problem = problem
        return partial


@dataclass(frozen=True, slots=True, eq=False)
class AttachedSearch:
    """One search of an attached collection."""

    query: KeywordQuery | NDArray[np.float32]
    """Words, for `AttachedMapping.keyword`; or a unit vector, for `AttachedMapping.vector`."""
    limit: int
    where: Filter
    """Only equal, in and range, joined by and and or, on fields for which the mapping has a column."""


class AttachedCollection(Protocol):
    """What a binding implements: `attach(mapping)` of its server returns one. Any thread may call it; it never writes.

    A binding does exactly this:

    - `search` with a KeywordQuery: rows that contain a word of `query.text`, by the server's own analysis and score. A
      score is above 0 and higher is better; the engine uses only the order.
    - `search` with a vector: rows by cosine, from -1 to 1. Where the collection was made for another distance, convert
      it, or compute the cosine from the stored vector. Vectors of another number of dimensions raise SourceError.
    - Best first, at most `limit`; fewer only when no other row matches. `where` compares fields of
      records: `mapping.column(condition.field)` is the column. Pass values as parameters, never as text of a query. What
      a server cannot express may be left out (more rows, never fewer): the engine checks every row. A condition on
      `timestamp` compares seconds since 1970, whatever the column's own type is.
    - `get` returns the rows with these ids, given as text, in any order.
    - Any failure raises SourceError with words for the user. Opening must not need the server.
    """

    def search(self, search: AttachedSearch) -> Sequence[AttachedRow]: ...

    def get(self, ids: Sequence[str]) -> Sequence[AttachedRow]: ...

    def check(self, dimensions: int = 0) -> list[Finding]:
        """What is wrong, in words: unreachable, no such table or column, another number of dimensions. Never raises.

        `dimensions` is the size of the vectors of queries, 0 where it is not known.
        """
        ...


def narrow(where: Filter, mapping: AttachedMapping) -> Filter | None:
    """What of a filter the server may apply; None when no row can match. It never lets fewer rows through."""
    if where == EVERYTHING:
        return EVERYTHING
    return _narrow(where, mapping, _template(mapping))


def _narrow(where: Filter, mapping: AttachedMapping, template: Record) -> Filter | None:
    if isinstance(where, And | Or):
        parts = [_narrow(part, mapping, template) for part in where.parts]
        known = [part for part in parts if part is not None]
        if isinstance(where, And):
            kept = tuple(part for part in known if part != EVERYTHING)
            return None if len(known) < len(parts) else kept[0] if len(kept) == 1 else And(kept)
        if not known or any(part == EVERYTHING for part in known):
            return EVERYTHING if known else None
        return known[0] if len(known) == 1 else Or(tuple(known))
    names = fields_of(where)
    if names <= CONSTANT_FIELDS and not any(map(mapping.column, names)):
        return EVERYTHING if matches(where, template) else None
    # A key inside a document of the metadata has no column, and an id is shown with the name of the collection.
    return where if _is_pushed(where, mapping) else EVERYTHING


def narrow_copies(where: Filter, mapping: AttachedMapping) -> Filter:
    """What of a filter a collection may apply whose texts are elsewhere: conditions on the fields that it has itself."""
    if isinstance(where, And | Or):
        parts = tuple(narrow_copies(part, mapping) for part in where.parts)
        if isinstance(where, Or):
            return EVERYTHING if EVERYTHING in parts else Or(parts)
        return And(tuple(part for part in parts if part != EVERYTHING))
    return where if _is_pushed(where, mapping) else EVERYTHING


def _is_pushed(where: Filter, mapping: AttachedMapping) -> bool:
    return isinstance(where, PUSHED) and bool(mapping.column(where.field))


def to_record(mapping: AttachedMapping, row: AttachedRow, highest: str) -> Record:
    """The record of a row; raises InvalidInput when it cannot be one.

    `highest` is the highest sensitivity level: that of a row whose column has no value.
    """
    values = row.values
    builtin: dict[str, Any] = {}
    for name in _BUILTIN:
        column = getattr(mapping, name)
        if column:
            builtin[name] = _to_field(name, values.get(column))
        elif name in mapping.values:
            builtin[name] = mapping.values[name]
    if mapping.sensitivity and not builtin["sensitivity"]:
        builtin["sensitivity"] = highest
    if mapping.scope and not builtin["scope"]:
        raise InvalidInput("a row has no scope")
    return Record(
        id=record_id(mapping, values.get(mapping.id)),
        text=_to_text(values.get(mapping.text)),
        collection=mapping.collection,
        timestamp=_to_time(values.get(mapping.time)) if mapping.time else None,
        metadata={
            name: _to_json(values[column])
            for name, column in mapping.metadata.items()
            if values.get(column) is not None
        },
        **{name: value for name, value in builtin.items() if value is not None},
    )


def record_id(mapping: AttachedMapping, value: object) -> str:
    """The id of a row as the engine shows it: the name of the collection, and the row's own."""
    if value is None or value == "":
        raise InvalidInput("a row has no id")
    return f"{mapping.name}/{_to_text(value)}"


def check_dimensions(mapping: AttachedMapping, found: int, wanted: int) -> None:
    """Refuse vectors of another size than the query's; a size of 0 is not known."""
    if found and wanted and found != wanted:
        raise SourceError(
            f"attached.{mapping.name}: the vectors have {found:,} dimensions, those of the query {wanted:,}. Choose the "
            "embedding model that they were made with."
        )


def cosines(query: NDArray[np.float32], vectors: Sequence[object]) -> NDArray[np.float64]:
    """The cosine of a unit vector and each stored vector; nan for one that is missing or has no direction."""
    out = np.full(len(vectors), np.nan)
    for at, stored in enumerate(vectors):
        vector = np.asarray([] if stored is None else stored, np.float64)
        length = float(np.linalg.norm(vector)) if vector.shape == query.shape else 0.0
        if length:
            out[at] = float(vector @ query) / length
    return out


def rank_rows(rows: Sequence[AttachedRow]) -> list[AttachedRow]:
    """Rows by score, best first, without those that have none."""
    return sorted((row for row in rows if row.score == row.score), key=lambda row: -row.score)


def check_sample(mapping: AttachedMapping, rows: Sequence[AttachedRow], what: str) -> list[Finding]:
    """What a sample of rows of a collection without a schema says about the fields of the mapping."""
    name = f"attached.{mapping.name}"
    if not rows:
        return [Finding(name, "note", f"the {what} {mapping.source} is empty, so its fields are not known")]
    found = []
    for column in mapping.columns:
        if all(row.values.get(column) is None for row in rows):
            is_needed = column in (mapping.id, mapping.text)
            found.append(
                Finding(
                    name,
                    "problem" if is_needed else "note",
                    f"none of {len(rows):,} sampled rows of the {what} {mapping.source} has the field {column}",
                )
            )
    return found


def note_metric(mapping: AttachedMapping, metric: str, consequence: str) -> Finding:
    """What a distance other than the cosine means for a search."""
    message = f"{mapping.source} is searched by {metric}, not by the cosine: {consequence}"
    return Finding(f"attached.{mapping.name}", "note", message)


def reordered(lengths: Sequence[float]) -> str:
    """What it means that hits are the nearest by another distance, by the lengths of some vectors."""
    if all(abs(length - 1) < UNIT_TOLERANCE for length in lengths):
        return "its vectors have length 1, so the order is the same"
    return "its vectors have other lengths than 1, so hits are the nearest by that distance, then ordered by cosine"


def reads_as_number(text: str) -> bool:
    """Whether a text is also how a number or a truth value is written: in a field of a record that holds text, 7 is "7"."""
    try:
        return text in ("True", "False") or isinstance(json.loads(text), int | float)
    except ValueError:
        return False


def is_uuid(text: str) -> bool:
    """Whether a text is a UUID, as servers take it."""
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def _template(mapping: AttachedMapping) -> Record:
    """What all rows have in common, as a record."""
    constants = {name: value for name, value in mapping.values.items() if not getattr(mapping, name)}
    return Record(id=mapping.name, text="", collection=mapping.collection, **constants)  # type: ignore[arg-type]


def _to_field(name: str, value: object) -> object:
    if value is None:
        return None
    if name == "position":
        return value if type(value) is int and value >= 0 else None
    text = _to_text(value)
    return text if text or name == "title" else None


def _to_text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value).encode("utf-8", "replace").decode()


def _to_time(value: object) -> datetime | None:
    try:
        if isinstance(value, datetime):
            return value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        if isinstance(value, date):
            return datetime(value.year, value.month, value.day, tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return datetime.fromtimestamp(value, UTC)
        if isinstance(value, str):
            read = datetime.fromisoformat(value)
            return read if read.tzinfo is not None else read.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def _to_json(value: object) -> Json:
    if isinstance(value, Mapping):
        return {_to_text(key): _to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float):
        return value
    return value.isoformat() if isinstance(value, date) else _to_text(value)
