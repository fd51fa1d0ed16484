"""Records as they are written: everything that a write needs and that does not depend on the database.

Most of a bulk write is this, so it can be done by another program than the one that writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from sennit.records import Record, embedding_text
from sennit.stores.embedded.codec import COLUMNS, embedding_hash, to_values
from sennit.stores.embedded.graph import Derived, derived

_PLACES: Final = COLUMNS.split(", ")[1:]
ID, CONTENT, EMBEDDING, PATH, TITLE, METADATA, TEXT = map(
    _PLACES.index, ("id", "content", "embedding", "path", "title", "metadata", "text")
)
"""Where values stand. What is bytes stands from CONTENT up to PATH, the two longest from METADATA on."""


class Prepared(NamedTuple):
    """A record ready to be written."""

    values: tuple[Any, ...]
    """Those of INSERT but for the row, in the order of COLUMNS."""
    graph: Derived

    @property
    def id(self) -> str:
        """Among all tenants."""
        out: str = self.values[ID]
        return out

    @property
    def content(self) -> bytes:
        """Changes when any field does."""
        out: bytes = self.values[CONTENT]
        return out

    @property
    def embedding(self) -> bytes:
        """What its vectors are filed under."""
        out: bytes = self.values[EMBEDDING]
        return out

    @property
    def embedding_text(self) -> str:
        """See Record."""
        return embedding_text(self.values[TITLE], self.values[TEXT])


Writables: TypeAlias = Sequence[Record | Prepared]
"""Records to be written, prepared by now or not."""


def prepared(record: Record | Prepared) -> Prepared:
    """The record as it is written."""
    if isinstance(record, Prepared):
        return record
    content = bytes.fromhex(record.content_hash)
    _, *values = to_values(record, 0, content, embedding_hash(record.embedding_text))
    return Prepared(tuple(values), derived(record))
