"""What a record contributes to the knowledge graph: its names, and the edges of a fact."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from sennit.facts import ended_at, is_fact, weight_of
from sennit.graph.names import name_hash, record_names
from sennit.records import Record

NEVER: Final = (1 << 63) - 1
"""`valid_until` of a fact that has not ended."""

EdgeRow = tuple[int, int, float, int, int, int | None]
"""The columns of `edges`: name, valid_until, negative_weight, negative_row, other_name, valid_from."""

NameRow = tuple[int, int]
"""The columns of `names` without the row: the hash of a name and its flags."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class GraphRows(NamedTuple):
    """The names and edges of one record, without the record's key."""

    names: Sequence[NameRow]
    edges: Sequence[EdgeRow]
    """As if the record's row were 0."""


def derive_graph_rows(record: Record) -> GraphRows:
    """The names and facts of a record."""
    has_names = record.title or "aliases" in record.metadata
    return GraphRows(
        record_names(record) if has_names else [], list(edge_rows(0, record)) if record.metadata else []
    )


def edge_rows(row: int, record: Record) -> Iterator[EdgeRow]:
    """The edges of a fact, one from each endpoint."""
    if not is_fact(record):
        return
    subject, object_ = (name_hash(str(record.metadata[field])) for field in ("subject", "object"))
    if subject is None or object_ is None:
        return
    ended = ended_at(record)
    until = NEVER if ended is None else microseconds(ended)
    start = None if record.timestamp is None else microseconds(record.timestamp)
    for name, other in {(subject, object_), (object_, subject)}:
        yield name, until, -weight_of(record), -row, other, start


def microseconds(value: datetime) -> int:
    """Microseconds since 1970."""
    return (value - _EPOCH) // timedelta(microseconds=1)
