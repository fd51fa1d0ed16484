"""What happens to a fused ranking before it is cut: each stage is a frozen value that a recipe names.

A stage is a pure function from a ranking to a ranking. What it drops it names, with the number that decided; the
time is given to it. `stage_from_dict` reads one from a settings table.
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


BUILT_IN: Final = frozenset(("id", "collection", "kind", "path", "parent", "position", "timestamp"))
"""Fields of a record that a stage may ask for by name; any other name is one of the metadata."""


def _no_scores(_: str, keys: Keys) -> Floats:
    return np.full(len(keys), np.nan)


def _nothing_beside(_: Keys) -> Mapping[int, Sequence[int]]:
    return {}


@dataclass(frozen=True)
class Ranked:
    """A ranking, best first, with what a stage may look at."""

    keys: Keys
    scores: Floats
    query: str
    limit: int
    now: datetime
    read: Callable[[Keys], Sequence[Record]]
    """The records of these keys, in their order."""
    vectors: Callable[[Keys], NDArray[np.float32]] = field(repr=False)
    """Their vectors, a row of zeros where there is none."""
    lists: tuple[str, ...] = ()
    """The lists that answered."""
    found: int = 0
    """How many candidates the longest of them has."""
    scores_of: Callable[[str, Keys], Floats] = field(default=_no_scores, repr=False)
    """What a list says of these records, whether it found them or not; nan where it says nothing."""
    beside: Callable[[Keys], Mapping[int, Sequence[int]]] = field(default=_nothing_beside, repr=False)
    """The records next to these in what they are a part of, where those may be results."""
    explain: bool = True
    """Whether somebody will look at what a stage has to say."""
    columns: Callable[[Keys, Sequence[str]], Sequence[tuple[Any, ...]]] | None = field(
        default=None, repr=False
    )
    """Some fields of these records, which costs less than the records; see `values`."""

    def values(self, *names: str) -> Sequence[tuple[Any, ...]]:
        """These fields of the whole ranking: built-in ones, and those of the metadata's first level."""
        if self.columns is not None:
            return self.columns(self.keys, names)
        return [value_of(record, names) for record in self.records]

    def ids(self, keys: Keys) -> Sequence[str]:
        """The ids of these keys."""
        if self.columns is not None:
            return [name for (name,) in self.columns(keys, ("id",))]
        return [record.id for record in self.read(keys)]

    @cached_property
    def records(self) -> Sequence[Record]:
        """The records of the whole ranking."""
        return self.read(self.keys)


def value_of(record: Record, names: Sequence[str]) -> tuple[Any, ...]:
    """Some fields of a record: built-in ones, and those of the metadata's first level."""
    return tuple(getattr(record, name) if name in BUILT_IN else record.metadata.get(name) for name in names)


@dataclass(frozen=True, slots=True)
class Staged:
    """What a stage left, best first; what it dropped, and what it has to say of what stayed."""

    keys: Keys
    scores: Floats
    dropped: Mapping[int, Dropped] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)


@runtime_checkable
class Stage(Protocol):
    """One step between fusion and the cut."""

    name: ClassVar[str]

    def apply(self, ranked: Ranked) -> Staged:
        """The ranking after this step."""
        ...


_KINDS: dict[str, type[Any]] = {}


def stage(kind: type[Any]) -> type[Any]:
    """Register a kind of stage under its name."""
    _KINDS[kind.name] = kind
    return kind


def stage_from_dict(table: Mapping[str, Any]) -> Stage:
    """A stage from a settings table such as `{stage = "decay", half_life_days = 30}`."""
    options = dict(table)
    name = options.pop("stage", None)
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"unknown stage {name!r}; set stage to one of: {', '.join(sorted(_KINDS))}")
    known = [item.name for item in fields(kind)]
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise ValueError(f"stage {name!r} has no setting {unknown[0]!r}; it takes: {', '.join(known)}")
    made: Stage = kind(**options)
    return made


def stage_to_dict(value: Stage) -> dict[str, Any]:
    """The table that `stage_from_dict` reads back as an equal value."""
    table: dict[str, Any] = {"stage": value.name}
    for item in fields(value):  # type: ignore[arg-type]
        content = getattr(value, item.name)
        table[item.name] = list(content) if isinstance(content, tuple) else content
    return table
