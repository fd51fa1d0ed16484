"""The code entities that a caller may see, read from one snapshot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import query_terms
from sennit.filters import Equal, Filter, In
from sennit.hydration import CodeUnit
from sennit.places import Places
from sennit.records import CODE_COLLECTION, OUTLINE_COLLECTION, Record, full_id
from sennit.stores.contract import Backend, Floats, Keys, Snapshot

MAX_FILES: Final = 100_000
"""Files whose names are compared with the words of a query."""

MAX_OVERLAP_LINES: Final = 2
"""Lines that a part of a long entity may repeat from the part before."""


class StoreCatalogue:
    """The code in a snapshot. An entity that is stored as several records is one unit."""

    def __init__(self, snapshot: Snapshot, tenant: str, backend: Backend, places: Places) -> None:
        self.snapshot = snapshot
        self._tenant = tenant
        self._backend = backend
        self._places = places

    def document_share(self, term: int) -> float:
        """Return the share of records that contain a term, given by its hash."""
        return self._backend.keyword.document_share(self.snapshot, term)

    def cosines(self, query: NDArray[np.float32], keys: Keys) -> Floats:
        """Return the cosine of each record with the vector of a query; nan without a vector."""
        return self._backend.vector.scores(self.snapshot, query, keys)

    def files_named(self, names: frozenset[str]) -> Sequence[str]:
        return self._backend.records.files.places_named(names)

    def paths(self) -> Sequence[str]:
        outlines = self.snapshot.sample(Equal("collection", OUTLINE_COLLECTION), MAX_FILES)
        return sorted(place for (place,) in self.snapshot.columns(outlines, ("parent",)) if place)

    def occurrences(self, word: str) -> tuple[int, int]:
        of = self.snapshot.count()
        share = max((self.document_share(term.hash) for term in query_terms(word)), default=1.0)
        return round(share * of), of

    def in_file(self, path: str) -> Sequence[CodeUnit]:
        parts = self.snapshot.children(path, CODE_COLLECTION)
        return [self._join(list(group)) for _, group in groupby(parts, _key)]

    def entities_named(self, names: Iterable[str]) -> Sequence[CodeUnit]:
        return self._where(In("name", tuple(sorted(set(names)))))

    def callers_of(self, name: str) -> Sequence[CodeUnit]:
        return self._where(Equal("calls", name))

    def with_keys(self, keys: Iterable[str]) -> Sequence[CodeUnit]:
        wanted = self.rows(keys)
        units = self.units(wanted)
        return [units[row] for row in wanted if row in units]

    def rows(self, keys: Iterable[str]) -> list[int]:
        """Return the first record of each entity that there still is."""
        found = (self.snapshot.find_key(full_id(self._tenant, key)) for key in keys)
        return [row for row in found if row is not None]

    def units(self, rows: Iterable[int]) -> dict[int, CodeUnit]:
        """Return the unit of each record."""
        return {
            row: self._unit_of(record)
            for row, record in self.snapshot.records(rows).items()
            if record.collection == CODE_COLLECTION
        }

    def _where(self, where: Filter) -> list[CodeUnit]:
        found = self.snapshot.records_matching(Equal("collection", CODE_COLLECTION) & where)
        return [self._unit_of(record) for record in found if _number(record, "part") in (0, 1)]

    def _unit_of(self, record: Record) -> CodeUnit:
        part, parts = _number(record, "part"), _number(record, "parts")
        if not part or record.position is None:
            return self._join([record])
        first = record.position - part + 1
        near = self.snapshot.siblings(record, first, first + parts - 1)
        return self._join([one for one in near if _key(one) == _key(record)])

    def _join(self, parts: Sequence[Record]) -> CodeUnit:
        unit = join_parts(parts)
        return replace(unit, location=self._places.show(parts[0]) or unit.path)


def join_parts(parts: Sequence[Record]) -> CodeUnit:
    """Join the records that an entity was split into, in order."""
    first = parts[0]
    lines = first.text.split("\n")
    for part in parts[1:]:
        more = part.text.split("\n")
        repeated = next((n for n in range(MAX_OVERLAP_LINES, 0, -1) if lines[-n:] == more[:n]), 0)
        lines += more[repeated:]
    last = parts[-1].lines or first.lines
    return CodeUnit(
        key=_key(first),
        path=first.parent or first.path or "",
        text="\n".join(lines),
        lines=(first.lines[0], max(first.lines[1], last[1])) if first.lines and last else first.lines,
        kind=first.kind,
        name=_text(first, "name"),
        qualified=_text(first, "qualified"),
        signature=_text(first, "signature"),
        doc=_text(first, "doc"),
        language=_text(first, "language"),
        outer=_text(first, "outer"),
        calls=_texts(first, "calls"),
    )


def _key(record: Record) -> str:
    """Return the key of an entity. The ids of its second and further parts end in their number."""
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
