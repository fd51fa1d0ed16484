"""What a recipe is: a frozen value that the one pipeline runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.errors import InvalidInput
from sennit.filters import EVERYTHING, Filter, In, Range, parse_filter
from sennit.ranking.fusion import Fusion, fusion_to_dict, sources_named, try_out
from sennit.ranking.stages import Stage, stage_to_dict
from sennit.settings import Metric
from sennit.stores.contract import BM25

DISTANCES: Final[Mapping[str, Callable[[NDArray[np.float64]], NDArray[np.float64]]]] = {
    "cosine": lambda cosine: 1.0 - cosine,
    "inner_product": lambda cosine: 1.0 - cosine,
    "squared_l2": lambda cosine: 2.0 - 2.0 * cosine,
    "l2": lambda cosine: np.sqrt(np.maximum(2.0 - 2.0 * cosine, 0.0)),
}
"""The distance of two unit vectors from their cosine, by metric."""

MAX_LIMIT: Final = 1000


@dataclass(frozen=True, slots=True)
class Pool:
    """How many records a source is asked for: times · limit + plus, and never fewer than at_least."""

    times: float = 1.0
    plus: int = 0
    at_least: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.times) and 0 < self.times <= 1000):
            raise InvalidInput(f"A pool's times must be above 0 and at most 1000, not {self.times!r}")
        for name in ("plus", "at_least"):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value <= 100_000:
                raise InvalidInput(f"A pool's {name} must be a whole number from 0 to 100,000, not {value!r}")

    def size(self, limit: int) -> int:
        return max(math.ceil(self.times * limit) + self.plus, self.at_least, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceUse:
    """One list of a recipe: which source, in which collections, how deep, and from which score on."""

    source: str
    name: str = ""
    """What the list is called in weights and traces; the source's own name when empty."""
    collections: tuple[str, ...] = ()
    """Empty: all."""
    where: str = ""
    """A filter of its own."""
    per_collection: bool = False
    """A list of its own for each collection that the search is over, instead of one for all of them."""
    looks_back: bool = False
    """Whether a search that looks back some hours asks this list for nothing older."""
    pool: Pool = Pool()
    min_score: float | None = None
    max_distance: float | None = None
    """What is this far from the question, or farther, is not found; for sources whose score is a cosine."""
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

    @property
    def has_threshold(self) -> bool:
        """Whether a score can be too low, or too far away, to be found."""
        return self.min_score is not None or self.max_distance is not None

    def near_enough(self, scores: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which scores are high enough, and near enough, to be found."""
        enough = np.ones(len(scores), bool) if self.min_score is None else scores >= self.min_score
        if self.max_distance is not None:
            enough &= DISTANCES[self.metric](scores) < self.max_distance
        return enough

    def narrowed(self, where: Filter, since: datetime | None = None) -> Filter:
        """What is asked of the source when this is asked of the search."""
        if since is not None and self.looks_back:
            where = Range("timestamp", since.timestamp()) & where
        if self.collections:
            within = _within(self.collections)
            where = within if where is EVERYTHING else within & where
        return where & _parsed(self.where) if self.where else where

    def over(self, collections: Sequence[str]) -> Iterator[SourceUse]:
        """The lists that this one is, where a search is over these collections."""
        if not self.per_collection:
            yield self if self.collections else replace(self, collections=tuple(collections))
            return
        for collection in collections:
            yield replace(
                self, name=f"{self.name}:{collection}", collections=(collection,), per_collection=False
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How an assistant searches: which sources, how their answers become one."""

    name: str
    sources: tuple[SourceUse, ...]
    fusion: Fusion
    stages: tuple[Stage, ...] = ()
    """Steps between fusion and the cut to the limit."""
    collections: tuple[str, ...] = ()
    """What a search is over; empty: everything."""
    on_request: tuple[str, ...] = ()
    """Collections that a search may also name."""
    reads_as: str = "text"
    """How files become records when they are indexed for this recipe: text, pages or code."""
    by_page: bool = False
    """Whether results are organised by page."""
    short_examples: int = 500
    """A page's examples come along if they have fewer characters."""
    join_places: bool = False
    """Whether answers of different sources that overlap in one file are one result."""
    limit: int | None = None
    """Results when the caller names no number; None: the setting search.limit."""
    max_limit: int = MAX_LIMIT
    complete: bool = False
    """Whether each source also scores what only the others found, so that no share is missing from a sum."""
    bm25: BM25 | None = None
    """None: the [keyword] settings."""
    about: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidInput("A recipe needs a name")
        object.__setattr__(self, "sources", tuple(self.sources))
        if not self.sources:
            raise InvalidInput(f"Recipe {self.name!r} needs at least one source")
        if not all(isinstance(use, SourceUse) for use in self.sources):
            raise InvalidInput(f"Recipe {self.name!r}: each of its sources is a SourceUse(source=...)")
        if not isinstance(self.fusion, Fusion):
            raise InvalidInput(f"Recipe {self.name!r}: its fusion is a value such as RRF(k=60)")
        for label in ("collections", "on_request"):
            value = getattr(self, label)
            if isinstance(value, str) or not all(isinstance(name, str) and name for name in value):
                raise InvalidInput(f"Recipe {self.name!r}: {label} must be a list of names, not {value!r}")
            object.__setattr__(self, label, tuple(value))
        object.__setattr__(self, "stages", tuple(self.stages))
        if not all(isinstance(step, Stage) for step in self.stages):
            raise InvalidInput(f"Recipe {self.name!r}: each of its stages is a value such as Dedupe()")
        names = [use.name for use in self.sources]
        if len(set(names)) != len(names):
            raise InvalidInput(
                f"Recipe {self.name!r} has two lists called {_twice(names)!r}; name them apart"
            )
        unknown = sources_named(self.fusion) - set(names)
        if unknown:
            raise InvalidInput(
                f"Recipe {self.name!r}: its fusion names the source {min(unknown)!r}, which it does not "
                f"search. It searches: {', '.join(names)}"
            )
        try:
            # What fusion needs to know of each source shows when it is tried.
            try_out(self.fusion, names)
        except ValueError as error:
            raise InvalidInput(f"Recipe {self.name!r}: {error}") from error
        for label, value in (("limit", self.limit), ("max_limit", self.max_limit)):
            if value is not None and (type(value) is not int or not 1 <= value <= MAX_LIMIT):
                raise InvalidInput(
                    f"Recipe {self.name!r}: {label} must be from 1 to {MAX_LIMIT}, not {value!r}"
                )

    def lists(self, include: Sequence[str] = ()) -> tuple[SourceUse, ...]:
        """The lists of a search that also names these collections."""
        if not self.collections:
            return self.sources
        over = tuple(dict.fromkeys((*self.collections, *include)))
        return tuple(one for use in self.sources for one in use.over(over))

    def checked_limit(self, limit: int) -> int:
        """The limit, if this recipe allows it."""
        if type(limit) is not int or not 1 <= limit <= self.max_limit:
            raise InvalidInput(
                f"limit must be a whole number from 1 to {self.max_limit} for recipe {self.name!r}, not {limit!r}"
            )
        return limit

    def to_dict(self) -> dict[str, Any]:
        """The recipe as a table of sennit.toml has it; `recipe_from_dict` gives it back."""
        out: dict[str, Any] = {
            "sources": [
                {
                    "source": use.source,
                    "name": use.name,
                    "collections": list(use.collections),
                    **({"where": use.where} if use.where else {}),
                    "per_collection": use.per_collection,
                    "looks_back": use.looks_back,
                    "pool": {"times": use.pool.times, "plus": use.pool.plus, "at_least": use.pool.at_least},
                    **({} if use.min_score is None else {"min_score": use.min_score}),
                    **(
                        {}
                        if use.max_distance is None
                        else {"max_distance": use.max_distance, "metric": use.metric}
                    ),
                }
                for use in self.sources
            ],
            "fusion": fusion_to_dict(self.fusion),
            "stages": [stage_to_dict(step) for step in self.stages],
            "collections": list(self.collections),
            "on_request": list(self.on_request),
            "reads_as": self.reads_as,
            "by_page": self.by_page,
            "short_examples": self.short_examples,
            "join_places": self.join_places,
            "complete": self.complete,
            "max_limit": self.max_limit,
            "about": self.about,
        }
        if self.limit is not None:
            out["limit"] = self.limit
        if self.bm25 is not None:
            out["bm25"] = {f.name: getattr(self.bm25, f.name) for f in fields(BM25)}
        return out


@lru_cache(maxsize=256)
def _parsed(where: str) -> Filter:
    return parse_filter(where)


@lru_cache(maxsize=256)
def _within(collections: tuple[str, ...]) -> Filter:
    return In("collection", collections)


def _twice(names: list[str]) -> str:
    return next(name for name in names if names.count(name) > 1)
