"""Records to and from the rows of the records table."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from sennit.records import SEPARATOR, Record, split_id

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COLUMNS: Final = (
    "row, id, collection, kind, timestamp, parent, position, sensitivity, scope, content, embedding, "
    "path, url, first_line, last_line, title, metadata, text"
)
INSERT: Final = f"INSERT INTO records ({COLUMNS}) VALUES ({', '.join('?' * 18)})"
SELECT: Final = f"SELECT {COLUMNS} FROM records"

READ_APART: Final = ("id", "collection", "kind", "path", "parent", "position", "timestamp")
"""Fields that are read without the rest of their record."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

encode: Final = json.JSONEncoder(ensure_ascii=False).encode
_decode: Final = json.JSONDecoder().raw_decode
"""What json.dumps and json.loads come to: without a new encoder each time, or a look for white space around."""


def decode(metadata: str) -> dict[str, Any]:
    """Metadata as it was given."""
    out: dict[str, Any] = {} if metadata == "{}" else _decode(metadata)[0]
    return out


def embedding_hash(text: str) -> bytes:
    """What a vector is filed under: the text it was made from."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def half(vectors: NDArray[np.float32]) -> list[bytes]:
    """Vectors as they are stored: half precision keeps a cosine to about four digits at half the size."""
    return [row.tobytes() for row in vectors.astype("float16")]


def to_values(record: Record, row: int, content: bytes, embedding: bytes) -> tuple[Any, ...]:
    """The values of INSERT."""
    first, last = record.lines or (None, None)
    return (
        row,
        record.full_id,
        record.collection,
        record.kind,
        None if record.timestamp is None else (record.timestamp - _EPOCH) // _MICROSECOND,
        record.parent,
        record.position,
        record.sensitivity,
        record.scope,
        content,
        embedding,
        record.path,
        record.url,
        first,
        last,
        record.title,
        encode(dict(record.metadata)) if record.metadata else "{}",
        record.text,
    )


def from_values(values: Sequence[Any]) -> Record:
    """The record of a row of SELECT; what was checked when it was written is not checked again."""
    (_, id_, collection, kind, timestamp, parent, position, sensitivity, scope, _, _, path, url, first, last,
     title, metadata, text) = values  # fmt: skip
    draft = _Draft()
    draft.tenant, draft.id = split_id(id_) if SEPARATOR in id_ else ("", id_)
    draft.text = text
    draft.collection = collection
    draft.title = title
    draft.kind = kind
    draft.path = path
    draft.url = url
    draft.lines = None if first is None else (first, last)
    draft.parent = parent
    draft.position = position
    draft.timestamp = None if timestamp is None else as_moment(timestamp)
    draft.sensitivity = sensitivity
    draft.scope = scope
    draft.metadata = decode(metadata)
    return _finished(draft)


class _Draft:
    """A record that can still be filled: to put each value past the lock of a frozen one takes three times as long."""

    __slots__ = tuple(field.name for field in fields(Record))

    if TYPE_CHECKING:

        def __setattr__(self, name: str, value: object) -> None: ...


def _finished(draft: Any) -> Record:
    draft.__class__ = Record
    record: Record = draft
    return record


def decoded(name: str, value: Any) -> Any:
    """The value of a field as the record has it."""
    if name == "id":
        return split_id(value)[1]
    return as_moment(value) if name == "timestamp" else value


def as_moment(microseconds: int | None) -> datetime | None:
    """A timestamp as it was given."""
    return None if microseconds is None else _EPOCH + microseconds * _MICROSECOND


def read_between(connection: sqlite3.Connection, low: int, high: int) -> Iterator[tuple[int, Record]]:
    """The records whose row n is low < n <= high, ascending."""
    found = connection.execute(f"{SELECT} WHERE row > ? AND row <= ? ORDER BY row", (low, high))
    return ((values[0], from_values(values)) for values in found)
