"""Records prepared for writing: everything that a write needs and that does not depend on the database.

Preparation is most of the work of a bulk write, so worker processes can do it for the process that writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from sennit.records import Record, embedding_text
from sennit.stores.codec import COLUMNS, TEXT_HASH_BYTES, embedding_hash, record_from_row, record_to_row
from sennit.stores.graph_rows import GraphRows, derive_graph_rows

_COLUMN_NAMES: Final = COLUMNS.split(", ")[1:]
ID, CONTENT_HASH, EMBEDDING_HASH, PATH, TITLE, METADATA, TEXT = map(
    _COLUMN_NAMES.index, ("id", "content_hash", "embedding_hash", "path", "title", "metadata", "text")
)
"""Positions in `PreparedRecord.values`. The hashes, which are bytes, lie from CONTENT_HASH up to PATH. The two longest
values begin at METADATA."""


class PreparedRecord(NamedTuple):
    """A record ready to be written."""

    values: tuple[Any, ...]
    """The values of INSERT without the row, in the order of COLUMNS."""
    graph: GraphRows

    @property
    def id(self) -> str:
        """The full id, unique among all tenants."""
        out: str = self.values[ID]
        return out

    @property
    def content_hash(self) -> bytes:
        """The hash of all fields: it changes when any field does."""
        out: bytes = self.values[CONTENT_HASH]
        return out

    @property
    def embedding_hash(self) -> bytes:
        """The hash of the embedded text: vectors are stored under it."""
        out: bytes = self.values[EMBEDDING_HASH]
        return out

    def inherit_vector(self, stored_hash: bytes) -> PreparedRecord:
        """This record with the vector that came with its stored version, if the text is the same and it has none."""
        if len(stored_hash) == TEXT_HASH_BYTES or self.embedding_hash != stored_hash[:TEXT_HASH_BYTES]:
            return self
        values = (*self.values[:EMBEDDING_HASH], stored_hash, *self.values[EMBEDDING_HASH + 1 :])
        return PreparedRecord(values, self.graph)

    @property
    def embedding_text(self) -> str:
        """See Record."""
        return embedding_text(self.values[TITLE], self.values[TEXT])

    @property
    def record(self) -> Record:
        """The record itself."""
        return record_from_row((0, *self.values[:CONTENT_HASH], *self.values[PATH:]))


WritableRecords: TypeAlias = Sequence[Record | PreparedRecord]
"""Records to be written, prepared or not."""


def prepare_record(record: Record | PreparedRecord, given_vector: bytes = b"") -> PreparedRecord:
    """Prepare a record for writing, perhaps with the vector that came with it; a prepared record stays as it is."""
    if isinstance(record, PreparedRecord):
        return record
    content_hash = bytes.fromhex(record.content_hash)
    _, *values = record_to_row(record, 0, content_hash, embedding_hash(record.embedding_text, given_vector))
    return PreparedRecord(tuple(values), derive_graph_rows(record))
