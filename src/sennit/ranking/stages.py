"""Stages: the steps between fusion and the cut to the limit. Each is a frozen value that a recipe lists.

A stage is a pure function from a ranking to a ranking; the current time is part of its input. It reports what it
drops, with the number that decided. `stage_from_dict` reads a stage from a settings table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar, Final, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sennit.records import Record
from sennit.results import Dropped

Keys: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


RECORD_FIELDS: Final = frozenset(("id", "collection", "kind", "path", "parent", "position", "timestamp"))
"""Fields of a record that a stage can read by name; any other name is a metadata field."""


def _no_scores(_: str, keys: Keys) -> Floats:
    return np.full(len(keys), np.nan)


def _no_neighbours(_: Keys) -> Mapping[int, Sequence[int]]:
    return {}


@dataclass(frozen=True)
class StageInput:
    """A ranking, best first, with everything a stage may read."""

    keys: Keys
    scores: Floats
    query: str
    limit: int
    now: datetime
    read: Callable[[Keys], Sequence[Record]]
    """Return the records of these keys, in their order."""
    vectors: Callable[[Keys], NDArray[np.float32]] = field(repr=False)
    """Return the vectors of these keys; zeros where there is none."""
    lists: tuple[str, ...] = ()
    """The names of the lists that the sources returned."""
    longest_list: int = 0
    """The number of candidates in the longest list."""
    list_scores: Callable[[str, Keys], Floats] = field(default=_no_scores, repr=False)
    """Return a source's scores of these records, whether it found them or not; nan where it has none."""
    adjacent: Callable[[Keys], Mapping[int, Sequence[int]]] = field(default=_no_neighbours, repr=False)
    """Return the adjacent records of the same parent, as far as they may be results."""
    explain: bool = True
    """Whether the search needs the reasons."""
    columns: Callable[[Keys, Sequence[str]], Sequence[tuple[Any, ...]]] | None = field(
        default=None, repr=False
    )
    """Return some fields of these records, which is cheaper than reading the records; see `values`."""

    def values(self, *names: str) -> Sequence[tuple[Any, ...]]:
        """Return these fields of the whole ranking: record fields, or top-level metadata fields."""
        if self.columns is not None:
            return self.columns(self.keys, names)
        return [read_fields(record, names) for record in self.records]

    def ids(self, keys: Keys) -> Sequence[str]:
        """Return the ids of these keys."""
        if self.columns is not None:
            return [name for (name,) in self.columns(keys, ("id",))]
        return [record.id for record in self.read(keys)]

    @cached_property
    def records(self) -> Sequence[Record]:
        """The records of the whole ranking."""
        return self.read(self.keys)


def read_fields(record: Record, names: Sequence[str]) -> tuple[Any, ...]:
    """Return these fields of a record: record fields, or top-level metadata fields."""
    return tuple(
        getattr(record, name) if name in RECORD_FIELDS else record.metadata.get(name) for name in names
    )


@dataclass(frozen=True, slots=True)
class StageOutput:
    """What a stage kept, best first, with reasons, and what it dropped."""

    keys: Keys
    scores: Floats
    dropped: Mapping[int, Dropped] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)


@runtime_checkable
class Stage(Protocol):
    """One step between fusion and the cut."""

    name: ClassVar[str]

    def apply(self, ranking: StageInput) -> StageOutput:
        """Return the ranking after this step."""
        ...


_STAGE_TYPES: dict[str, type[Any]] = {}


def stage(stage_type: type[Any]) -> type[Any]:
    """Register a type of stage under its name."""
    _STAGE_TYPES[stage_type.name] = stage_type
    return stage_type


def stage_from_dict(table: Mapping[str, Any]) -> Stage:
    """Read a stage from a settings table such as `{stage = "decay", half_life_days = 30}`."""
    options = dict(table)
    name = options.pop("stage", None)
    stage_type = _STAGE_TYPES.get(name) if isinstance(name, str) else None
    if stage_type is None:
        raise ValueError(f"unknown stage {name!r}; set stage to one of: {', '.join(sorted(_STAGE_TYPES))}")
    known = [item.name for item in fields(stage_type)]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(f"stage {name!r} has no setting {unknown[0]!r}; it takes: {', '.join(known)}")
    value: Stage = stage_type(**options)
    return value


def stage_to_dict(value: Stage) -> dict[str, Any]:
    """Return the table that `stage_from_dict` reads back as an equal value."""
    table: dict[str, Any] = {"stage": value.name}
    for item in fields(value):  # type: ignore[arg-type]
        content = getattr(value, item.name)
        table[item.name] = list(content) if isinstance(content, tuple) else content
    return table
