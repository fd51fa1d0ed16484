"""The trace of a search, from which everything is explained."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sennit.records import Json

Keys: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


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
    note: str = ""
    """What the source has to say of it."""

    def to_dict(self) -> dict[str, Json]:
        out: dict[str, Json] = {
            "source": self.source,
            "rank": self.rank,
            "score": self.score,
            "share": self.share,
        }
        return out | {"note": self.note} if self.note else out


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
    describe: Callable[[], Mapping[str, Any]] = field(repr=False)
    state: Mapping[str, Json]
    """Contract version, text analysis, embedding model and, for who sees everything, the number of the last
    change."""
    sources: tuple[SourceTrace, ...]
    fused_keys: Keys
    fused_scores: Floats
    shares: Floats
    """[source, candidate]"""
    ranks: Any
    source_scores: Floats
    stages: tuple[StageTrace, ...]
    names: Callable[[Keys], Sequence[str]] = field(repr=False)
    milliseconds: Mapping[str, float]
    notes: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """What a source has to say of a record it found, by source and key."""
    gave_way: Mapping[int, int] = field(default_factory=dict)
    """Candidates that are the same place as another, which stands for both."""
    transform: Mapping[str, Json] = field(default_factory=dict)
    """How the question was put to the sources, where not by its own words alone."""

    @cached_property
    def recipe(self) -> Mapping[str, Any]:
        """The recipe with every setting that it ran by."""
        return self.describe()

    @cached_property
    def ids(self) -> Mapping[int, str]:
        """The id of every candidate."""
        return dict(zip(self.candidates.tolist(), self.names(self.candidates), strict=True))

    @cached_property
    def candidates(self) -> Keys:
        """What the sources found, and what a stage brought."""
        brought = [key for stage in self.stages for key in stage.keys.tolist() if key not in self._places]
        return np.array([*self.fused_keys.tolist(), *dict.fromkeys(brought)], np.int64)

    @cached_property
    def _places(self) -> dict[int, int]:
        return {key: place for place, key in enumerate(self.fused_keys.tolist())}

    def explain(self, key: int) -> Explanation | None:
        """The explanation of a candidate; None when nothing found it."""
        place = self._places.get(key)
        if place is None and key not in self.ids:
            return None
        answered = [source for source in self.sources if source.error is None] if place is not None else []
        standings = tuple(
            Standing(
                source.name,
                int(self.ranks[at, place]) + 1 if self.ranks[at, place] >= 0 else None,
                None if math.isnan(self.source_scores[at, place]) else float(self.source_scores[at, place]),
                float(self.shares[at, place]),
                self.notes.get((source.name, key), ""),
            )
            for at, source in enumerate(answered)
        )
        score = fused = 0.0 if place is None else float(self.fused_scores[place])
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
            **({"transform": dict(self.transform)} if self.transform else {}),
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
                for key in self.candidates.tolist()
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
