"""What is configured: a recipe is a frozen value that the one pipeline runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from weft.errors import InvalidInput, NotFound
from weft.ranking.fusion import (
    RRF,
    Fusion,
    Weighted,
    fusion_from_dict,
    fusion_to_dict,
    sources_named,
    try_out,
)
from weft.stores.contract import BM25

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
    pool: Pool = Pool()
    min_score: float | None = None

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How an assistant searches: which sources, how their answers become one."""

    name: str
    sources: tuple[SourceUse, ...]
    fusion: Fusion
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

    def checked_limit(self, limit: int) -> int:
        """The limit, if this recipe allows it."""
        if type(limit) is not int or not 1 <= limit <= self.max_limit:
            raise InvalidInput(
                f"limit must be a whole number from 1 to {self.max_limit} for recipe {self.name!r}, not {limit!r}"
            )
        return limit

    def to_dict(self) -> dict[str, Any]:
        """The recipe as a table of weft.toml has it; `recipe_from_dict` gives it back."""
        out: dict[str, Any] = {
            "sources": [
                {
                    "source": use.source,
                    "name": use.name,
                    "collections": list(use.collections),
                    "pool": {"times": use.pool.times, "plus": use.pool.plus, "at_least": use.pool.at_least},
                    **({} if use.min_score is None else {"min_score": use.min_score}),
                }
                for use in self.sources
            ],
            "fusion": fusion_to_dict(self.fusion),
            "complete": self.complete,
            "max_limit": self.max_limit,
            "about": self.about,
        }
        if self.limit is not None:
            out["limit"] = self.limit
        if self.bm25 is not None:
            out["bm25"] = {f.name: getattr(self.bm25, f.name) for f in fields(BM25)}
        return out


DEEP: Final = Pool(times=3, at_least=50)
"""Fifty candidates from each source. With completed scores, deeper pools change no figure: docs/quality.md."""

BUILT_IN: Final[Mapping[str, Recipe]] = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="default",
            about="Keyword and meaning together, for anything.",
            sources=(SourceUse(source="keyword", pool=DEEP), SourceUse(source="vector", pool=DEEP)),
            # The best of the plain fusions on eight collections; docs/quality.md has ours.
            fusion=Weighted({"keyword": 0.3, "vector": 0.7}, {"keyword": "max", "vector": "none"}),
            complete=True,
        ),
        Recipe(
            name="rrf",
            about="Keyword and meaning by reciprocal rank: needs no scores that compare.",
            sources=(SourceUse(source="keyword", pool=DEEP), SourceUse(source="vector", pool=DEEP)),
            fusion=RRF(k=60, first_rank=1),
        ),
        Recipe(
            name="keyword",
            about="Exact words only.",
            sources=(SourceUse(source="keyword", pool=DEEP),),
            fusion=Weighted({"keyword": 1.0}, "none"),
        ),
        Recipe(
            name="vector",
            about="Meaning only.",
            sources=(SourceUse(source="vector", pool=DEEP),),
            fusion=Weighted({"vector": 1.0}, "none"),
        ),
    )
}


def recipe_from_dict(name: str, table: Mapping[str, Any]) -> Recipe:
    """A recipe from a `[recipes.name]` table. `base` names a recipe whose other parts it keeps."""
    known = {f.name for f in fields(Recipe)} | {"base"}
    unknown = sorted(set(table) - known)
    if unknown:
        raise InvalidInput(
            f"Recipe {name!r} has no setting {unknown[0]!r}. Settings: {', '.join(sorted(known))}"
        )
    parts: dict[str, Any] = {key: value for key, value in table.items() if key not in ("base", "name")}
    try:
        if "sources" in parts:
            parts["sources"] = tuple(_source_use(entry) for entry in parts["sources"])
        if "fusion" in parts:
            parts["fusion"] = fusion_from_dict(parts["fusion"])
        if "bm25" in parts:
            parts["bm25"] = BM25(**parts["bm25"])
        if "base" in table:
            return replace(find_recipe(table["base"], BUILT_IN), name=name, **parts)
        missing = [key for key in ("sources", "fusion") if key not in parts]
        if missing:
            raise InvalidInput(f'it needs {missing[0]!r}, or base = "default" to start from')
        return Recipe(name=name, **parts)
    except (InvalidInput, ValueError, TypeError) as error:
        raise InvalidInput(f"Recipe {name!r}: {error}") from error


def find_recipe(name: object, recipes: Mapping[str, Recipe]) -> Recipe:
    """The recipe of this name."""
    recipe = recipes.get(name) if isinstance(name, str) else None
    if recipe is None:
        raise NotFound(f"There is no recipe {name!r}. Recipes: {', '.join(sorted(recipes))}")
    return recipe


def _source_use(entry: object) -> SourceUse:
    if isinstance(entry, str):
        return SourceUse(source=entry, pool=DEEP)
    if not isinstance(entry, Mapping):
        raise InvalidInput(f"a source is a name or a table, not {entry!r}")
    known = {f.name for f in fields(SourceUse)}
    unknown = sorted(set(entry) - known)
    if unknown:
        raise InvalidInput(f"a source has no setting {unknown[0]!r}. Settings: {', '.join(sorted(known))}")
    parts = dict(entry)
    parts["pool"] = Pool(**parts["pool"]) if "pool" in parts else DEEP
    return SourceUse(**parts)


def _twice(names: list[str]) -> str:
    return next(name for name in names if names.count(name) > 1)
