"""The trace of a search: what every stage did to every candidate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sennit.records import Json, shorten

Keys: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Degraded:
    """A source that failed or answered only in part, and why."""

    source: str
    reason: str

    def __str__(self) -> str:
        return f"{self.source}: {self.reason}"

    def to_dict(self) -> dict[str, Json]:
        return {"source": self.source, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class SourceScore:
    """A record in one source: its rank from 1 (None if the source did not find it), its score and its share."""

    source: str
    rank: int | None
    score: float | None
    share: float
    """What this source adds to the fused score."""
    match_reason: str = ""
    """Why the source found it, in words."""
    background: float | None = None
    """What its cosine was compared with: the mean cosine of the query with a sample of the records."""
    normalised: float | None = None
    """The cosine above the background, as the fusion weights it."""

    def to_dict(self) -> dict[str, Json]:
        out: dict[str, Json] = {
            "source": self.source,
            "rank": self.rank,
            "score": self.score,
            "share": self.share,
        }
        if self.background is not None:
            out |= {"background": self.background, "normalised": self.normalised}
        return out | {"match_reason": self.match_reason} if self.match_reason else out


@dataclass(frozen=True, slots=True)
class Adjustment:
    """What a stage after fusion did to one record."""

    stage: str
    before: float
    after: float
    reason: str
    shares: Mapping[str, float] = field(default_factory=dict)
    """What each feature adds, by a stage that computes scores from features."""

    def to_dict(self) -> dict[str, Json]:
        return {
            "stage": self.stage,
            "before": self.before,
            "after": self.after,
            "reason": self.reason,
            **({"shares": dict(self.shares)} if self.shares else {}),
        }


@dataclass(frozen=True, slots=True)
class RelevanceTrace:
    """What the relevance of a hit was estimated from."""

    relevance: float
    coverage: float | None
    """The share of the query's information (idf) that the text has; None for a query without terms."""
    lift: float | None
    """How far its cosine is above the background, with an allowance for the size of the database; None without one."""
    linked: bool
    """Whether another record that was found mentions it."""
    best: float
    """The best match of the answer: coverage plus twice the lift."""

    def to_dict(self) -> dict[str, Json]:
        return {
            "relevance": self.relevance,
            "coverage": self.coverage,
            "lift": self.lift,
            "linked": self.linked,
            "best": self.best,
        }


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a record has its rank."""

    source_scores: tuple[SourceScore, ...]
    fused: float
    adjustments: tuple[Adjustment, ...]
    score: float
    displaced: tuple[str, ...] = ()
    """The ids of records that a stage dropped in favour of this one."""
    relevance: RelevanceTrace | None = None
    """None for a candidate that is no hit."""

    def to_dict(self) -> dict[str, Json]:
        return {
            "sources": [source_score.to_dict() for source_score in self.source_scores],
            "fused": self.fused,
            "adjustments": [adjustment.to_dict() for adjustment in self.adjustments],
            "score": self.score,
            "displaced": list(self.displaced),
            **({"relevance": self.relevance.to_dict()} if self.relevance is not None else {}),
        }


@dataclass(frozen=True, slots=True)
class SourceTrace:
    """What one source returned."""

    name: str
    source: str
    candidates: int
    """How many candidates it was allowed to return."""
    keys: Keys
    scores: Floats
    milliseconds: float
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Dropped:
    """A record that a stage dropped: the number that decided, and the number it would have needed."""

    stage: str
    reason: str
    number: float
    needed: float
    lost_to: int | None = None


@dataclass(frozen=True, slots=True)
class ListStageTrace:
    """What one stage before fusion did: why it changed a list's entry for a record, and what it dropped."""

    name: str
    dropped: Mapping[int, Dropped] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)
    milliseconds: float = 0.0


@dataclass(frozen=True, slots=True)
class StageTrace:
    """What one stage after fusion did: the keys and scores it kept, in order, and what it dropped."""

    name: str
    keys: Keys
    scores: Floats
    dropped: Mapping[int, Dropped] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)
    milliseconds: float = 0.0
    shares: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    """What each feature adds to the score of a candidate; so for the next, the features themselves."""
    features: Mapping[int, tuple[float, ...]] = field(default_factory=dict)


@dataclass(frozen=True, repr=False, eq=False)
class Trace:
    """What every stage did to every candidate, and what is needed to replay the search."""

    query: str
    limit: int
    filter: str
    describe_recipe: Callable[[], Mapping[str, Any]] = field(repr=False)
    state: Mapping[str, Json]
    """The contract version, text analysis, embedding model and, for a caller who sees everything, the number of the
    last change."""
    sources: tuple[SourceTrace, ...]
    fused_keys: Keys
    fused_scores: Floats
    shares: Floats
    """[source, candidate]: what each source adds to the fused score; so for the next two."""
    ranks: Any
    """From 0; -1 where the source did not find the candidate."""
    raw_scores: Floats
    """The source's own score; nan where it has none."""
    stages: tuple[StageTrace, ...]
    """The stages between fusion and the cut to the limit, and the cut itself."""
    read_ids: Callable[[Keys], Sequence[str]] = field(repr=False)
    milliseconds: Mapping[str, float]
    match_reasons: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Why a source found a record, by list name and key."""
    list_stages: tuple[ListStageTrace, ...] = ()
    """The stages before fusion."""
    background: float = 0.0
    """The mean cosine of the query with a sample of the records; 0 without vectors."""
    backgrounds: Mapping[str, tuple[float, Callable[[float], float]]] = field(default_factory=dict)
    """By list whose cosines the fusion compares with a background: the background, and how it normalises a cosine."""
    result_stages: tuple[StageTrace, ...] = ()
    """The stages after the cut."""
    relevance: Mapping[int, RelevanceTrace] = field(default_factory=dict)
    """What the relevance of each hit was estimated from."""
    transform: Mapping[str, Json] = field(default_factory=dict)
    """How the query was rewritten; empty if it was not."""
    time: Mapping[str, Json] = field(default_factory=dict)
    """How time counted: `now`, `recency`, the words that ask for what is `recent`, the `period` that the query names,
    and since when a look-back window reaches; empty for a recipe that does not look at time."""

    def __repr__(self) -> str:
        stages: tuple[ListStageTrace | StageTrace, ...] = (
            *self.list_stages,
            *self.stages,
            *self.result_stages,
        )
        return (
            f"<Trace {shorten(self.query)}: {len(self.candidates)} candidates of "
            f"{', '.join(source.name for source in self.sources)}; {', '.join(stage.name for stage in stages)}>"
        )

    def __getstate__(self) -> dict[str, Any]:
        """A copy for another process has the recipe and the ids, and not what would compute them."""
        state = {**vars(self), "recipe": self.recipe, "ids": self.ids}
        return {name: value for name, value in state.items() if name not in ("describe_recipe", "read_ids")}

    @cached_property
    def recipe(self) -> Mapping[str, Any]:
        """The recipe with every setting in force."""
        return self.describe_recipe()

    @cached_property
    def ids(self) -> Mapping[int, str]:
        """The id of every candidate."""
        return dict(zip(self.candidates.tolist(), self.read_ids(self.candidates), strict=True))

    @cached_property
    def candidates(self) -> Keys:
        """What the sources found, and what a stage added."""
        dropped = [key for stage in self.list_stages for key in stage.dropped]
        added = [key for stage in self.stages for key in stage.keys.tolist()]
        others = dict.fromkeys(key for key in (*dropped, *added) if key not in self._columns)
        return np.array([*self.fused_keys.tolist(), *others], np.int64)

    @cached_property
    def _columns(self) -> dict[int, int]:
        """The column of each fused candidate in the arrays."""
        return {key: column for column, key in enumerate(self.fused_keys.tolist())}

    def column_of(self, key: int) -> int | None:
        """Return the column of a candidate in the arrays; None for what no source found."""
        return self._columns.get(key)

    def explain(self, key: int) -> Explanation | None:
        """Return the explanation of a candidate; None for any other record."""
        column = self._columns.get(key)
        if column is None and key not in self.ids:
            return None
        answered = [source for source in self.sources if source.error is None] if column is not None else []
        source_scores = tuple(
            SourceScore(
                source.name,
                int(self.ranks[at, column]) + 1 if self.ranks[at, column] >= 0 else None,
                None if math.isnan(self.raw_scores[at, column]) else float(self.raw_scores[at, column]),
                float(self.shares[at, column]),
                self.match_reasons.get((source.name, key), ""),
                *self._normalised(source.name, float(self.raw_scores[at, column])),
            )
            for at, source in enumerate(answered)
        )
        score = fused = 0.0 if column is None else float(self.fused_scores[column])
        adjustments = []
        for stage in (*self.stages, *self.result_stages):
            at = [i for i, other in enumerate(stage.keys.tolist()) if other == key]
            after = float(stage.scores[at[0]]) if at else score
            if after != score or key in stage.reasons:
                adjustments.append(
                    Adjustment(
                        stage.name, score, after, stage.reasons.get(key, ""), stage.shares.get(key, {})
                    )
                )
            score = after
        displaced = tuple(
            self.ids[loser]
            for stage in self._dropping_stages
            for loser, drop in stage.dropped.items()
            if drop.lost_to == key
        )
        return Explanation(
            source_scores, fused, tuple(adjustments), score, displaced, self.relevance.get(key)
        )

    def _normalised(self, name: str, score: float) -> tuple[float | None, float | None]:
        """Return the background of a list and the score above it; None where there is none."""
        if name not in self.backgrounds or math.isnan(score):
            return None, None
        background, normalise = self.backgrounds[name]
        return background, normalise(score)

    def dropped(self, key: int) -> Dropped | None:
        """Return how a stage dropped a candidate; None if none did."""
        return next((stage.dropped[key] for stage in self._dropping_stages if key in stage.dropped), None)

    @property
    def _dropping_stages(self) -> tuple[ListStageTrace | StageTrace, ...]:
        """The stages that can drop a candidate, in order."""
        return (*self.list_stages, *self.stages)

    def remarks(self, key: int) -> list[str]:
        """Return what the stages did to a record, each with its stage."""
        stages: tuple[ListStageTrace | StageTrace, ...] = (
            *self.list_stages,
            *self.stages,
            *self.result_stages,
        )
        return [f"{stage.name}: {stage.reasons[key]}" for stage in stages if key in stage.reasons]

    def to_dict(self) -> dict[str, Json]:
        """The trace as JSON values. The `order` of a stage has the positions of what it kept among the candidates."""
        positions = {key: at for at, key in enumerate(self.candidates.tolist())}
        return {
            "query": self.query,
            "limit": self.limit,
            "filter": self.filter,
            "recipe": dict(self.recipe),
            "state": dict(self.state),
            "milliseconds": dict(self.milliseconds),
            **({"transform": dict(self.transform)} if self.transform else {}),
            **({"time": dict(self.time)} if self.time else {}),
            "sources": [
                {
                    "name": source.name,
                    "source": source.source,
                    "candidates": source.candidates,
                    "found": len(source.keys),
                    "milliseconds": source.milliseconds,
                    "error": source.error,
                }
                for source in self.sources
            ],
            "stages": [
                {
                    "stage": stage.name,
                    "runs": runs,
                    "changed": len(stage.reasons),
                    "dropped": len(stage.dropped),
                    "milliseconds": stage.milliseconds,
                    **(
                        {"order": [positions[key] for key in stage.keys.tolist()]}
                        if isinstance(stage, StageTrace)
                        else {}
                    ),
                }
                for runs, stages in (
                    ("before_fusion", self.list_stages),
                    ("after_fusion", self.stages),
                    ("after_cut", self.result_stages),
                )
                for stage in stages
            ],
            "candidates": [
                {"id": self.ids[key], **explanation.to_dict(), **self._describe_outcome(key)}
                for key in self.candidates.tolist()
                if (explanation := self.explain(key)) is not None
            ],
        }

    def _describe_outcome(self, key: int) -> dict[str, Json]:
        drop = self.dropped(key)
        if drop is None:
            return {"kept": True}
        outcome: dict[str, Json] = {
            "kept": False,
            "stage": drop.stage,
            "reason": drop.reason,
            "number": drop.number,
            "needed": drop.needed,
        }
        if drop.lost_to is not None:
            outcome["lost_to"] = self.ids[drop.lost_to]
        return outcome
