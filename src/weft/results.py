"""What flows: hits, results, and the trace from which everything is explained."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

from weft.records import Json, Record

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Keys = NDArray[np.int64]
    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Degraded:
    """A source that did not answer, and why; the rest did."""

    source: str
    reason: str

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"

    def to_dict(self) -> dict[str, Json]:
        return {"source": self.source, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class Standing:
    """How a record stood in one source: rank from 1 (None when not among those found), score, share."""

    source: str
    rank: int | None
    score: float | None
    share: float
    """What this source added to the fused score."""

    def to_dict(self) -> dict[str, Json]:
        return {"source": self.source, "rank": self.rank, "score": self.score, "share": self.share}


@dataclass(frozen=True, slots=True)
class Adjustment:
    """What a stage after fusion did to one record."""

    stage: str
    before: float
    after: float
    reason: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a record is where it is."""

    standings: tuple[Standing, ...]
    fused: float
    adjustments: tuple[Adjustment, ...]
    score: float
    displaced: tuple[str, ...] = ()
    """Ids of records that gave way to this one."""

    def to_dict(self) -> dict[str, Json]:
        return {
            "sources": [standing.to_dict() for standing in self.standings],
            "fused": self.fused,
            "adjustments": [
                {"stage": a.stage, "before": a.before, "after": a.after, "reason": a.reason}
                for a in self.adjustments
            ],
            "score": self.score,
            "displaced": list(self.displaced),
        }


@dataclass(frozen=True, slots=True)
class Hit:
    """One result."""

    record: Record
    score: float
    rank: int
    explanation: Explanation | None = None

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def text(self) -> str:
        return self.record.text

    @property
    def title(self) -> str:
        return self.record.title

    @property
    def collection(self) -> str:
        return self.record.collection

    @property
    def metadata(self) -> Mapping[str, Json]:
        return self.record.metadata

    @property
    def citation(self) -> str:
        """Where the text really is: path with lines, address, or id."""
        return citation(self.record)

    def to_dict(self) -> dict[str, Json]:
        out: dict[str, Json] = {
            "rank": self.rank,
            "score": self.score,
            "citation": self.citation,
            **self.record.to_dict(),
        }
        if self.explanation is not None:
            out["explanation"] = self.explanation.to_dict()
        return out


def citation(record: Record) -> str:
    """Where a record's text really is."""
    place = record.path or record.url
    if place is None:
        return record.id
    if record.lines is None:
        return place
    first, last = record.lines
    return f"{place}:{first}" if first == last else f"{place}:{first}-{last}"


@dataclass(frozen=True, slots=True)
class SourceTrace:
    """What one source answered."""

    name: str
    source: str
    pool: int
    keys: Keys
    scores: Floats
    milliseconds: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A record that a stage let go: the number that decided, and what it would have needed."""

    stage: str
    reason: str
    number: float
    needed: float
    lost_to: int | None = None


@dataclass(frozen=True, slots=True)
class StageTrace:
    """What one stage after fusion did: the keys and scores it left, in order, and what it dropped."""

    name: str
    keys: Keys
    scores: Floats
    dropped: Mapping[int, Dropped] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Trace:
    """What every stage did to every candidate, and what is needed to replay it."""

    query: str
    limit: int
    filter: str
    recipe: Mapping[str, Any]
    state: Mapping[str, Json]
    """Contract version, text analysis, embedding model and change number of the database."""
    sources: tuple[SourceTrace, ...]
    fused_keys: Keys
    fused_scores: Floats
    shares: Floats
    """[source, candidate]"""
    ranks: Any
    source_scores: Floats
    stages: tuple[StageTrace, ...]
    ids: Mapping[int, str]
    milliseconds: Mapping[str, float]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {key: place for place, key in enumerate(self.fused_keys.tolist())}

    def explain(self, key: int) -> Explanation | None:
        """The explanation of a candidate; None when no source found it."""
        place = self._places.get(key)
        if place is None:
            return None
        answered = [source for source in self.sources if source.error is None]
        standings = tuple(
            Standing(
                source.name,
                int(self.ranks[at, place]) + 1 if self.ranks[at, place] >= 0 else None,
                None if math.isnan(self.source_scores[at, place]) else float(self.source_scores[at, place]),
                float(self.shares[at, place]),
            )
            for at, source in enumerate(answered)
        )
        score = fused = float(self.fused_scores[place])
        adjustments = []
        for stage in self.stages:
            at = [i for i, other in enumerate(stage.keys.tolist()) if other == key]
            after = float(stage.scores[at[0]]) if at else score
            if after != score or key in stage.reasons:
                adjustments.append(Adjustment(stage.name, score, after, stage.reasons.get(key, "")))
            score = after
        displaced = tuple(
            self.ids[loser]
            for stage in self.stages
            for loser, drop in stage.dropped.items()
            if drop.lost_to == key
        )
        return Explanation(standings, fused, tuple(adjustments), score, displaced)

    def dropped(self, key: int) -> Dropped | None:
        """The stage that dropped a candidate, if one did."""
        return next((stage.dropped[key] for stage in self.stages if key in stage.dropped), None)

    def to_dict(self) -> dict[str, Json]:
        """The trace as JSON values."""
        return {
            "query": self.query,
            "limit": self.limit,
            "filter": self.filter,
            "recipe": dict(self.recipe),
            "state": dict(self.state),
            "milliseconds": dict(self.milliseconds),
            "sources": [
                {
                    "name": source.name,
                    "source": source.source,
                    "pool": source.pool,
                    "found": len(source.keys),
                    "milliseconds": source.milliseconds,
                    "error": source.error,
                }
                for source in self.sources
            ],
            "candidates": [
                {"id": self.ids[key], **explanation.to_dict(), **self._fate(key)}
                for key in self.fused_keys.tolist()
                if (explanation := self.explain(key)) is not None
            ],
        }

    def _fate(self, key: int) -> dict[str, Json]:
        drop = self.dropped(key)
        if drop is None:
            return {"kept": True}
        fate: dict[str, Json] = {
            "kept": False,
            "stage": drop.stage,
            "reason": drop.reason,
            "number": drop.number,
            "needed": drop.needed,
        }
        if drop.lost_to is not None:
            fate["lost_to"] = self.ids[drop.lost_to]
        return fate


@dataclass(frozen=True, slots=True)
class Result(Sequence[Hit]):
    """The answer to a search: its hits in order, what was missing, and how it came about."""

    query: str
    recipe: str
    hits: tuple[Hit, ...]
    degraded: tuple[Degraded, ...] = ()
    trace: Trace | None = None
    milliseconds: float = 0.0

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def to_dict(self) -> dict[str, Json]:
        out: dict[str, Json] = {
            "query": self.query,
            "recipe": self.recipe,
            "hits": [hit.to_dict() for hit in self.hits],
            "degraded": [source.to_dict() for source in self.degraded],
            "milliseconds": self.milliseconds,
        }
        if self.trace is not None:
            out["trace"] = self.trace.to_dict()
        return out


@dataclass(frozen=True, slots=True)
class Why:
    """Why a record is in an answer or not: the stage and the number that decided."""

    id: str
    kept: bool
    stage: str
    reason: str
    number: float | None
    needed: float | None
    rank: int | None
    standings: tuple[Standing, ...]
    degraded: tuple[Degraded, ...] = ()

    def to_dict(self) -> dict[str, Json]:
        return {
            "id": self.id,
            "kept": self.kept,
            "stage": self.stage,
            "reason": self.reason,
            "number": self.number,
            "needed": self.needed,
            "rank": self.rank,
            "sources": [standing.to_dict() for standing in self.standings],
            "degraded": [source.to_dict() for source in self.degraded],
        }
