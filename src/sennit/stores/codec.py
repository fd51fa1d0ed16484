"""Converts records to and from the tuples of values in which they are stored, sent to workers and hashed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from sennit.records import TENANT_SEPARATOR, Record, split_id

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COLUMNS: Final = (
    "row, id, collection, kind, timestamp, parent, position, sensitivity, scope, content_hash, embedding_hash, "
    "path, url, first_line, last_line, title, metadata, text"
)

HASH_COLUMNS: Final = "content_hash, embedding_hash"
"""What is stored with a record and is no part of it."""

RECORD_COLUMNS: Final = COLUMNS.replace(f"{HASH_COLUMNS}, ", "")
"""What `record_from_row` reads. A search reads ten records, and the hashes would be a tenth of its values."""

COLUMN_FIELDS: Final = ("id", "collection", "kind", "path", "parent", "position", "timestamp")
"""Fields that have a column of their own and can be read without the rest of the record."""

TEXT_HASH_BYTES: Final = 16
"""The part of an embedding hash that is the hash of the text; it comes first."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)

encode_json: Final = json.JSONEncoder(ensure_ascii=False).encode
_decode_json: Final = json.JSONDecoder().raw_decode
"""Faster than json.dumps and json.loads, which create an encoder for each call and skip surrounding white space."""


def decode_metadata(metadata: str) -> dict[str, Any]:
    """The metadata of a record from its stored JSON."""
    out: dict[str, Any] = {} if metadata == "{}" else _decode_json(metadata)[0]
    return out


def embedding_hash(text: str, given_vector: bytes = b"") -> bytes:
    """The key of a vector: a hash of the text that it embeds. A vector that came with the record adds its own."""
    key = hashlib.blake2b(text.encode(), digest_size=TEXT_HASH_BYTES).digest()
    return key + hashlib.blake2b(given_vector, digest_size=8).digest() if given_vector else key


def to_float16_bytes(vectors: NDArray[np.float32]) -> list[bytes]:
    """Vectors as they are stored. Half precision keeps about four digits of a cosine, at half the size."""
    return [row.tobytes() for row in vectors.astype("float16")]


def record_to_row(record: Record, row: int, content: bytes, embedding: bytes) -> tuple[Any, ...]:
    """The values for INSERT."""
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
        encode_json(dict(record.metadata)) if record.metadata else "{}",
        record.text,
    )


def record_from_row(values: Sequence[Any]) -> Record:
    """The record of the values of RECORD_COLUMNS. It was validated when it was written, and is not validated again."""
    (_, id_, collection, kind, timestamp, parent, position, sensitivity, scope, path, url, first, last,
     title, metadata, text) = values  # fmt: skip
    draft = _Draft()
    draft.tenant, draft.id = split_id(id_) if TENANT_SEPARATOR in id_ else ("", id_)
    draft.text = text
    draft.collection = collection
    draft.title = title
    draft.kind = kind
    draft.path = path
    draft.url = url
    draft.lines = None if first is None else (first, last)
    draft.parent = parent
    draft.position = position
    draft.timestamp = None if timestamp is None else to_datetime(timestamp)
    draft.sensitivity = sensitivity
    draft.scope = scope
    draft.metadata = decode_metadata(metadata)
    draft.vector = None
    frozen: Any = draft
    frozen.__class__ = Record
    record: Record = frozen
    return record


class _Draft:
    """A mutable record. Setting each attribute of a frozen dataclass would take three times as long."""

    __slots__ = tuple(field.name for field in fields(Record))

    if TYPE_CHECKING:

        def __setattr__(self, name: str, value: object) -> None: ...


def decode_field(name: str, value: Any) -> Any:
    """The value of a field, from its stored form."""
    if name == "id":
        return split_id(value)[1]
    return to_datetime(value) if name == "timestamp" else value


def to_datetime(microseconds: int | None) -> datetime | None:
    """A timestamp from its stored form."""
    return None if microseconds is None else _EPOCH + microseconds * _MICROSECOND
