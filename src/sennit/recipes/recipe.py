"""A recipe: a frozen value that says which sources a search runs, how it fuses them and which stages follow."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.errors import InvalidInput
from sennit.filters import EVERYTHING, Exists, Filter, In, Range, parse_filter
from sennit.ranking.calibration import NO_BACKGROUND, Background
from sennit.ranking.decay import Decay
from sennit.ranking.fusion import RRF, Fusion, check_fusion, fusion_to_dict, named_sources
from sennit.ranking.stages import ListStage, RankingStage, ResultStage, Stage, check_stages, stage_to_dict
from sennit.search_parameters import LIMIT, MIN_RELEVANCE
from sennit.settings import Metric, Recency
from sennit.stores.contract import BM25

if TYPE_CHECKING:
    # Not imported at runtime: a new process that searches once needs none of it.
    from sennit.periods import QueryTime

DISTANCES: Final[Mapping[str, Callable[[NDArray[np.float64], Background], NDArray[np.float64]]]] = {
    "calibrated": lambda cosine, background: background.distance(cosine),
    "cosine": lambda cosine, _: 1.0 - cosine,
    "inner_product": lambda cosine, _: 1.0 - cosine,
    "l2_squared": lambda cosine, _: 2.0 - 2.0 * cosine,
    "l2": lambda cosine, _: np.sqrt(np.maximum(2.0 - 2.0 * cosine, 0.0)),
}
"""The distance of two unit vectors, by metric, computed from their cosine and the background of the search."""

MAX_LIMIT: Final = LIMIT.maximum


@dataclass(frozen=True, slots=True)
class CandidateCount:
    """How many candidates a source may return: times · limit + plus, and never fewer than at_least."""

    times: float = 1.0
    plus: int = 0
    at_least: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.times) and 0 < self.times <= 1000):
            raise InvalidInput(f"times must be above 0 and at most 1000, not {self.times!r}")
        for name in ("plus", "at_least"):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value <= 100_000:
                raise InvalidInput(f"{name} must be a whole number from 0 to 100,000, not {value!r}")

    def for_limit(self, limit: int) -> int:
        """Return the number for a search with this limit."""
        return max(math.ceil(self.times * limit) + self.plus, self.at_least, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceConfig:
    """One source of a recipe: its collections, filter, number of candidates and threshold. It yields one ranked list."""

    source: str
    name: str = ""
    """The name of the list in weights and traces; empty for the name of the source."""
    collections: tuple[str, ...] = ()
    """The collections it searches; empty for all."""
    where: str = ""
    """An additional filter."""
    per_collection: bool = False
    """Whether each collection of the search yields its own list, instead of one list for all."""
    uses_look_back: bool = False
    """Whether the look-back window of a search applies to this source."""
    knows_speakers: bool = False
    """Whether the name of a speaker in the query counts for what that speaker said, and less for texts with the name."""
    needs_topic: bool = False
    """Whether it has nothing to search for if the query asks only for recent conversations or for facts as such."""
    lists_recent: bool = False
    """Whether it is asked only if the query asks for conversations as such, and names no topic."""
    uses_period: bool = False
    """Whether it also finds candidates within the period that a query names."""
    candidates: CandidateCount = CandidateCount()
    min_score: float | None = None
    max_distance: float | None = None
    """Records at this distance or farther are not found; for sources whose score is a cosine."""
    metric: Metric = "cosine"

    def __post_init__(self) -> None:
        for label in ("source", "name"):
            if not isinstance(getattr(self, label), str):
                raise InvalidInput(f"A recipe's source needs a text as its {label}")
        if not self.source:
            raise InvalidInput("A recipe's source needs a name such as 'keyword' or 'vector'")
        if not self.name:
            object.__setattr__(self, "name", self.source)
        if isinstance(self.collections, str) or not all(isinstance(c, str) for c in self.collections):
            raise InvalidInput(f"collections must be a list of names, not {self.collections!r}")
        object.__setattr__(self, "collections", tuple(self.collections))
        if self.min_score is not None and not (
            isinstance(self.min_score, (int, float)) and math.isfinite(self.min_score)
        ):
            raise InvalidInput(f"min_score must be a number, not {self.min_score!r}")
        parse_filter(self.where or None)
        if self.metric not in DISTANCES:
            raise InvalidInput(f"metric must be one of {', '.join(DISTANCES)}, not {self.metric!r}")
        if self.max_distance is not None and not (
            isinstance(self.max_distance, (int, float)) and self.max_distance >= 0
        ):
            raise InvalidInput(f"max_distance must be a number of at least 0, not {self.max_distance!r}")

    def is_called_for(self, read_time: Callable[[], QueryTime]) -> bool:
        """Return whether a query has anything to ask the source; most sources need not read its time for that."""
        if not (self.needs_topic or self.lists_recent):
            return True
        time = read_time()
        return (time.has_topic or not self.needs_topic) and (time.lists_recent or not self.lists_recent)

    @property
    def is_plain(self) -> bool:
        """Whether what the source finds is the list as it is, whatever the query says about time."""
        return not (self.needs_topic or self.lists_recent or self.uses_period or self.has_threshold)

    @property
    def has_threshold(self) -> bool:
        """Whether a threshold on score or distance is set."""
        return self.min_score is not None or self.max_distance is not None

    def passes_threshold(
        self, scores: NDArray[np.float64], background: Background = NO_BACKGROUND
    ) -> NDArray[np.bool_]:
        """Return which scores pass the thresholds on score and distance."""
        passing = np.ones(len(scores), bool) if self.min_score is None else scores >= self.min_score
        if self.max_distance is not None:
            passing &= DISTANCES[self.metric](scores, background) < self.max_distance
        return passing

    def build_filter(self, where: Filter, since: datetime | None = None) -> Filter:
        """Combine the filter of a search with those of this source."""
        if since is not None and self.uses_look_back:
            # A record without a time may be recent, so it stays.
            where = (Range("timestamp", since.timestamp()) | ~Exists("timestamp")) & where
        if self.collections:
            in_collections = _collection_filter(self.collections)
            where = in_collections if where is EVERYTHING else in_collections & where
        return where & _parse_where(self.where) if self.where else where

    def expand(self, collections: Sequence[str]) -> Iterator[SourceConfig]:
        """Yield the sources that this one becomes in a search of these collections."""
        if not self.per_collection:
            yield self if self.collections else replace(self, collections=tuple(collections))
            return
        for collection in collections:
            yield replace(
                self, name=f"{self.name}:{collection}", collections=(collection,), per_collection=False
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How an assistant searches: its sources, their fusion, and the stages that follow."""

    name: str
    sources: tuple[SourceConfig, ...]
    fusion: Fusion
    stages: tuple[Stage, ...] = ()
    """The steps before fusion, after it and after the cut to the limit, in the order in which they run."""
    collections: tuple[str, ...] = ()
    """The collections a search covers; empty for all."""
    on_request: tuple[str, ...] = ()
    """Further collections that a search may include by name."""
    transform: bool = False
    """Whether the vector search gets keywords in place of the query, as [llm] transform makes them."""
    limit: int | None = None
    """The default number of results; None for the setting search.limit."""
    max_limit: int = MAX_LIMIT
    min_relevance: float = 0.0
    """Hits with a lower relevance are left out; a search may set its own."""
    bm25: BM25 | None = None
    """None for the [keyword] settings."""
    about: str = field(default="", compare=False)
    evidence: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What shows that a tuned recipe is better than the one it was made from."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidInput("A recipe needs a name")
        object.__setattr__(self, "sources", tuple(self.sources))
        if not self.sources:
            raise InvalidInput(f"Recipe {self.name!r} needs at least one source")
        if not all(isinstance(config, SourceConfig) for config in self.sources):
            raise InvalidInput(f"Recipe {self.name!r}: each source must be a SourceConfig(source=...)")
        if not isinstance(self.fusion, Fusion):
            raise InvalidInput(f"Recipe {self.name!r}: fusion must be a value such as RRF(k=60)")
        for label in ("collections", "on_request"):
            value = getattr(self, label)
            if isinstance(value, str) or not all(isinstance(name, str) and name for name in value):
                raise InvalidInput(f"Recipe {self.name!r}: {label} must be a list of names, not {value!r}")
            object.__setattr__(self, label, tuple(value))
        object.__setattr__(self, "stages", tuple(self.stages))
        try:
            check_stages(self.stages)
        except ValueError as error:
            raise InvalidInput(f"Recipe {self.name!r}: {error}") from error
        names = [config.name for config in self.sources]
        if len(set(names)) != len(names):
            raise InvalidInput(
                f"Recipe {self.name!r} has two sources named {_first_duplicate(names)!r}; give each its own name"
            )
        unknown = named_sources(self.fusion) - set(names)
        if unknown:
            raise InvalidInput(
                f"Recipe {self.name!r}: its fusion names the source {min(unknown)!r}, which the recipe does not "
                f"have. Its sources: {', '.join(names)}"
            )
        try:
            # Only a trial run shows whether the fusion has a setting for every source.
            check_fusion(self.fusion, names)
        except ValueError as error:
            raise InvalidInput(f"Recipe {self.name!r}: {error}") from error
        if type(self.transform) is not bool:
            raise InvalidInput(
                f"Recipe {self.name!r}: transform must be true or false, not {self.transform!r}"
            )
        for label, value in (("limit", self.limit), ("max_limit", self.max_limit)):
            if value is not None and (type(value) is not int or not 1 <= value <= MAX_LIMIT):
                raise InvalidInput(
                    f"Recipe {self.name!r}: {label} must be from 1 to {MAX_LIMIT}, not {value!r}"
                )
        try:
            MIN_RELEVANCE.check(self.min_relevance)
        except InvalidInput as error:
            raise InvalidInput(f"Recipe {self.name!r}: {error}") from error

    @property
    def score_label(self) -> str:
        """What its scores are called where they are shown."""
        return "RRF score" if isinstance(self.fusion, RRF) else "Score"

    @property
    def list_stages(self) -> tuple[ListStage, ...]:
        """The stages before fusion."""
        return tuple([stage for stage in self.stages if stage.runs == "before_fusion"])

    @property
    def ranking_stages(self) -> tuple[RankingStage, ...]:
        """The stages between fusion and the cut to the limit."""
        return tuple([stage for stage in self.stages if stage.runs == "after_fusion"])

    @property
    def result_stages(self) -> tuple[ResultStage, ...]:
        """The stages after the cut to the limit."""
        return tuple([stage for stage in self.stages if stage.runs == "after_cut"])

    def searched(self, include: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the collections that a search covers; empty for all."""
        if self.collections:
            return tuple(dict.fromkeys((*self.collections, *include)))
        if all(config.collections for config in self.sources):
            return tuple(dict.fromkeys(name for config in self.sources for name in config.collections))
        return ()

    def expand_sources(self, include: Sequence[str] = ()) -> tuple[SourceConfig, ...]:
        """Return the sources of a search that also includes these collections."""
        if not self.collections:
            return self.sources
        collections = self.searched(include)
        return tuple(config for source in self.sources for config in source.expand(collections))

    def with_recency(self, recency: Recency) -> Recipe:
        """Return the recipe with another recency in its stage `decay`; itself if it has no such stage."""
        stages = [
            replace(stage, recency=recency) if isinstance(stage, Decay) else stage for stage in self.stages
        ]
        return replace(self, stages=tuple(stages))

    def check_limit(self, limit: int) -> int:
        """Return the limit if this recipe allows it; raise InvalidInput if not."""
        if type(limit) is not int or not 1 <= limit <= self.max_limit:
            raise InvalidInput(
                f"limit must be a whole number from 1 to {self.max_limit} for recipe {self.name!r}, not {limit!r}"
            )
        return limit

    def to_dict(self) -> dict[str, Any]:
        """Return the recipe as a table of sennit.toml; `recipe_from_dict` reads it back."""
        out: dict[str, Any] = {
            "sources": [
                {
                    "source": config.source,
                    "name": config.name,
                    "collections": list(config.collections),
                    **({"where": config.where} if config.where else {}),
                    "per_collection": config.per_collection,
                    "uses_look_back": config.uses_look_back,
                    "knows_speakers": config.knows_speakers,
                    "needs_topic": config.needs_topic,
                    "lists_recent": config.lists_recent,
                    "uses_period": config.uses_period,
                    "candidates": {
                        "times": config.candidates.times,
                        "plus": config.candidates.plus,
                        "at_least": config.candidates.at_least,
                    },
                    **({} if config.min_score is None else {"min_score": config.min_score}),
                    **(
                        {}
                        if config.max_distance is None
                        else {"max_distance": config.max_distance, "metric": config.metric}
                    ),
                }
                for config in self.sources
            ],
            "fusion": fusion_to_dict(self.fusion),
            "stages": [stage_to_dict(stage) for stage in self.stages],
            "collections": list(self.collections),
            "on_request": list(self.on_request),
            "transform": self.transform,
            "max_limit": self.max_limit,
            "about": self.about,
        }
        if self.limit is not None:
            out["limit"] = self.limit
        if self.min_relevance:
            out["min_relevance"] = self.min_relevance
        if self.evidence:
            out["evidence"] = dict(self.evidence)
        if self.bm25 is not None:
            out["bm25"] = {f.name: getattr(self.bm25, f.name) for f in fields(BM25)}
        return out


@lru_cache(maxsize=256)
def _parse_where(where: str) -> Filter:
    return parse_filter(where)


@lru_cache(maxsize=256)
def _collection_filter(collections: tuple[str, ...]) -> Filter:
    return In("collection", collections)


def _first_duplicate(names: list[str]) -> str:
    return next(name for name in names if names.count(name) > 1)
