"""Entities of code as one caller sees them, from the records of one moment."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final

from sennit.filters import Equal, Filter, In
from sennit.hydration import Unit
from sennit.records import Record, full_id
from sennit.stores.embedded.files import FileTable
from sennit.stores.embedded.snapshot import Snapshot
from sennit.stores.embedded.sqlite import SqlitePool

CODE: Final = "code"
"""The collection of entities."""

OVERLAP: Final = 2
"""Lines that a part of a long entity may repeat from the part before."""


class StoreCatalogue:
    """What a snapshot holds of code. An entity that is several records is one unit."""

    def __init__(self, snapshot: Snapshot, tenant: str, database: SqlitePool) -> None:
        self.snapshot = snapshot
        self._tenant = tenant
        self._database = database

    def files(self, names: frozenset[str]) -> Sequence[str]:
        with self._database.read() as connection:
            return FileTable.called(connection, names)

    def in_file(self, path: str) -> Sequence[Unit]:
        parts = self.snapshot.parts_of(path, CODE)
        return [joined(list(group)) for _, group in groupby(parts, _key)]

    def named(self, names: Iterable[str]) -> Sequence[Unit]:
        return self._where(In("name", tuple(sorted(set(names)))))

    def calling(self, name: str) -> Sequence[Unit]:
        return self._where(Equal("calls", name))

    def with_keys(self, keys: Iterable[str]) -> Sequence[Unit]:
        rows = [self.snapshot.key_of(full_id(self._tenant, key)) for key in keys]
        wanted = [row for row in rows if row is not None]
        units = self.units(wanted)
        return [units[row] for row in wanted if row in units]

    def units(self, rows: Iterable[int]) -> dict[int, Unit]:
        """The unit that each record is, or is a part of."""
        return {
            row: self._whole(record)
            for row, record in self.snapshot.records(rows).items()
            if record.collection == CODE
        }

    def _where(self, where: Filter) -> list[Unit]:
        found = self.snapshot.passing(Equal("collection", CODE) & where)
        return [self._whole(record) for record in found if _number(record, "part") in (0, 1)]

    def _whole(self, record: Record) -> Unit:
        part, parts = _number(record, "part"), _number(record, "parts")
        if not part or record.position is None:
            return joined([record])
        first = record.position - part + 1
        near = self.snapshot.siblings(record, first, first + parts - 1)
        return joined([one for one in near if _key(one) == _key(record)])


def joined(parts: Sequence[Record]) -> Unit:
    """One unit of the records that an entity was cut into, in order."""
    first = parts[0]
    lines = first.text.split("\n")
    for part in parts[1:]:
        more = part.text.split("\n")
        repeated = next((n for n in range(OVERLAP, 0, -1) if lines[-n:] == more[:n]), 0)
        lines += more[repeated:]
    last = parts[-1].lines or first.lines
    return Unit(
        key=_key(first),
        path=first.path or "",
        text="\n".join(lines),
        lines=(first.lines[0], max(first.lines[1], last[1])) if first.lines and last else first.lines,
        kind=first.kind,
        name=_text(first, "name"),
        qualified=_text(first, "qualified"),
        signature=_text(first, "signature"),
        language=_text(first, "language"),
        outer=_text(first, "outer"),
        calls=_texts(first, "calls"),
    )


def _key(record: Record) -> str:
    """The id of an entity, of which further parts have ids that end in their number."""
    part = _number(record, "part")
    return record.id.removesuffix(f"#{part}") if part > 1 else record.id


def _number(record: Record, name: str) -> int:
    value = record.metadata.get(name)
    return value if type(value) is int else 0


def _text(record: Record, name: str) -> str:
    value = record.metadata.get(name)
    return value if isinstance(value, str) else ""


def _texts(record: Record, name: str) -> tuple[str, ...]:
    value = record.metadata.get(name)
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, (list, tuple)) else ()
