"""Stages: the steps of a recipe around its fusion. Each is a frozen value with a name, which a recipe lists.

A stage runs at one of three points, and its `apply` maps what stands there to the same: before fusion the lists of the
sources, after fusion the ranking, after the cut to the limit the result. What else it may read, the current time
included, is in its `StageContext`, so a stage is a pure function. It reports what it drops, with the number that
decided. `stage_from_dict` reads a stage from a settings table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import pairwise
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Literal,
    NamedTuple,
    NoReturn,
    Protocol,
    TypeAlias,
    runtime_checkable,
)

import numpy as np
from numpy.typing import NDArray

from sennit.errors import NotFound, SourceError
from sennit.records import Record
from sennit.results import Dropped, SearchResult

if TYPE_CHECKING:
    # Not imported at runtime: a new process that searches once needs none of it.
    from sennit.periods import QueryTime
    from sennit.ranking.ranker import Ranker

Keys: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


RECORD_FIELDS: Final = frozenset(("id", "collection", "kind", "path", "parent", "position", "timestamp"))
"""Fields of a record that a stage can read by name; any other name is a metadata field."""

RUNS: Final[Mapping[str, str]] = {
    "before_fusion": "before fusion",
    "after_fusion": "after fusion",
    "after_cut": "after the cut to the limit",
}
"""The points at which a stage can run, in order, in words."""


def _no_scores(_: str, keys: Keys) -> Floats:
    return np.full(len(keys), np.nan)


def _no_vectors(keys: Keys) -> NDArray[np.float32]:
    return np.zeros((len(keys), 0), np.float32)


def _no_neighbours(_: Keys) -> Mapping[int, Sequence[int]]:
    return {}


def no_ranker(name: str) -> NoReturn:
    """Raise NotFound: there are no rankers."""
    raise NotFound(f"There is no ranker {name!r}")


def _no_features(keys: Keys, _: Floats) -> Floats:
    return np.zeros((len(keys), 0))


def _no_siblings(_record: Record, _first: int, _last: int) -> Sequence[Record]:
    return ()


def _no_reranker(_query: str, _texts: Sequence[str], _seconds: float) -> Sequence[float]:
    raise SourceError("no reranker is configured; set rerank.provider and rerank.model")


def _no_siblings_of_kind(_record: Record, _kinds: Sequence[str]) -> Sequence[Record]:
    return ()


def _no_time() -> QueryTime:
    from sennit.periods import NO_TIME

    return NO_TIME


@dataclass(frozen=True, slots=True, kw_only=True)
class StageContext:
    """The search that a stage works for, and what it may read of the caller's snapshot."""

    query: str
    limit: int
    now: datetime
    records: Callable[[Iterable[int]], Mapping[int, Record]] = field(repr=False)
    """Return the records of these keys."""
    explain: bool = True
    """Whether the search needs the reasons."""
    read_time: Callable[[], QueryTime] = field(default=_no_time, repr=False)
    """Return what the query says about time; see `time`."""
    columns: Callable[[Keys, Sequence[str]], Sequence[tuple[Any, ...]]] | None = field(
        default=None, repr=False
    )
    """Return some fields of these records, which is cheaper than reading the records; see `values`."""
    speakers: Callable[[], frozenset[str]] = field(default=frozenset, repr=False)
    """Return the words of the query that are names of speakers."""
    fact_matches: Mapping[int, float] = field(default_factory=dict, repr=False)
    """How well facts match the query, from 0 to 1, by key."""
    vectors: Callable[[Keys], NDArray[np.float32]] = field(default=_no_vectors, repr=False)
    """Return the vectors of these keys; zeros where there is none."""
    list_scores: Callable[[str, Keys], Floats] = field(default=_no_scores, repr=False)
    """Return a source's scores of these records, whether it found them or not; nan where it has none."""
    adjacent: Callable[[Keys], Mapping[int, Sequence[int]]] = field(default=_no_neighbours, repr=False)
    """Return the adjacent records of the same parent, as far as they may be results."""
    siblings: Callable[[Record, int, int], Sequence[Record]] = field(default=_no_siblings, repr=False)
    """Return the records of the same parent from one position to another, in order."""
    siblings_of_kind: Callable[[Record, Sequence[str]], Sequence[Record]] = field(
        default=_no_siblings_of_kind, repr=False
    )
    """Return the records of the same parent that are of the given kinds, in order."""
    rerank: Callable[[str, Sequence[str], float], Sequence[float]] = field(default=_no_reranker, repr=False)
    """Return how well each text answers a query; raise SourceError if there is no answer within these seconds."""
    warn: Callable[[str, str], None] = field(default=lambda _stage, _reason: None, repr=False)
    """Report that a stage could not do its work, and why; the answer says so."""

    find_ranker: Callable[[str], Ranker] = field(default=no_ranker, repr=False)
    """Return the learned ranker of a name; raises a SennitError if there is none that fits the search."""

    @property
    def time(self) -> QueryTime:
        """What the query says about time."""
        return self.read_time()

    def read(self, keys: Keys) -> list[Record]:
        """Return the records of these keys, in their order."""
        records = self.records(keys.tolist())
        return [records[key] for key in keys.tolist()]

    def values(self, keys: Keys, *names: str) -> Sequence[tuple[Any, ...]]:
        """Return these fields of records: record fields, or top-level metadata fields."""
        if self.columns is not None:
            return self.columns(keys, names)
        return [read_fields(record, names) for record in self.read(keys)]

    def ids(self, keys: Keys) -> list[str]:
        """Return the ids of these keys."""
        return [name for (name,) in self.values(keys, "id")]


def read_fields(record: Record, names: Sequence[str]) -> tuple[Any, ...]:
    """Return these fields of a record: record fields, or top-level metadata fields."""
    return tuple(
        getattr(record, name) if name in RECORD_FIELDS else record.metadata.get(name) for name in names
    )


# Before fusion


class CandidateList(NamedTuple):
    """What one source found, best first."""

    name: str
    keys: Keys
    scores: Floats
    rescore: Callable[[Keys], Floats] | None = None
    """Return the source's scores of records that it did not find; nan for what the list may not have. None if the
    list can have no others."""
    collections: tuple[str, ...] = ()
    """The collections that the list is limited to; empty for all."""


@dataclass(frozen=True, slots=True)
class ListStageOutput:
    """The lists after a stage, with reasons, and what is in no list any more."""

    lists: Sequence[CandidateList]
    dropped: Mapping[int, Dropped] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)
    merged_into: Mapping[int, int] = field(default_factory=dict)
    """Which key stands for which in a list that had it."""


@runtime_checkable
class ListStage(Protocol):
    """A step before fusion."""

    name: ClassVar[str]
    runs: ClassVar[Literal["before_fusion"]]

    def apply(self, lists: Sequence[CandidateList], context: StageContext) -> ListStageOutput:
        """Return the lists after this step, in the same order."""
        ...


# After fusion


@dataclass(frozen=True, slots=True)
class Ranking:
    """The candidates, best first, and the lists that were fused."""

    keys: Keys
    scores: Floats
    lists: Sequence[CandidateList] = ()
    features: Callable[[Keys, Floats], Floats] = field(default=_no_features, repr=False)
    """Return the features of the first candidates, best first, given their keys and scores; see `ranking.features`."""


@dataclass(frozen=True, slots=True)
class StageOutput:
    """What a stage kept, best first, with reasons, and what it dropped."""

    keys: Keys
    scores: Floats
    dropped: Mapping[int, Dropped] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)
    shares: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    """What each feature adds to a score."""
    features: Mapping[int, tuple[float, ...]] = field(default_factory=dict)
    """The features that a score was computed from."""
    degraded: str = ""
    """Why the stage could not do its work; empty if it did."""


@runtime_checkable
class RankingStage(Protocol):
    """A step between fusion and the cut."""

    name: ClassVar[str]
    runs: ClassVar[Literal["after_fusion"]]

    def apply(self, ranking: Ranking, context: StageContext) -> StageOutput:
        """Return the ranking after this step."""
        ...


# After the cut


@dataclass(frozen=True, slots=True)
class ResultStageOutput:
    """The result after a stage, with reasons by key."""

    result: SearchResult
    reasons: Mapping[int, str] = field(default_factory=dict)


@runtime_checkable
class ResultStage(Protocol):
    """A step after the cut. It adds to the result and keeps the order of its hits."""

    name: ClassVar[str]
    runs: ClassVar[Literal["after_cut"]]

    def apply(self, result: SearchResult, context: StageContext) -> ResultStageOutput:
        """Return the result after this step."""
        ...


Stage: TypeAlias = ListStage | RankingStage | ResultStage


def check_stages(stages: Sequence[Stage]) -> None:
    """Raise ValueError unless every value is a stage and they stand in the order in which they run."""
    points = list(RUNS)
    for stage in stages:
        if not isinstance(stage, Stage) or stage.runs not in RUNS:
            raise ValueError(f"each stage must be a value such as Dedupe(), not {stage!r}")
    for earlier, later in pairwise(stages):
        if points.index(later.runs) < points.index(earlier.runs):
            raise ValueError(
                f"stage {later.name!r} runs {RUNS[later.runs]}, so list it before {earlier.name!r}, "
                f"which runs {RUNS[earlier.runs]}"
            )


_STAGE_TYPES: dict[str, type[Any]] = {}


def stage(stage_type: type[Any]) -> type[Any]:
    """Register a type of stage under its name."""
    _STAGE_TYPES[stage_type.name] = stage_type
    return stage_type


def known_stages() -> list[str]:
    """Return the names of all types of stage."""
    return sorted(_STAGE_TYPES)


def stage_from_dict(table: Mapping[str, Any]) -> Stage:
    """Read a stage from a settings table such as `{stage = "decay", half_life_days = 30}`."""
    options = dict(table)
    name = options.pop("stage", None)
    stage_type = _STAGE_TYPES.get(name) if isinstance(name, str) else None
    if stage_type is None:
        raise ValueError(f"unknown stage {name!r}; set stage to one of: {', '.join(known_stages())}")
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
