"""From what a caller asks to a plan that the pipeline can run; what cannot be used is refused here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from sennit.errors import InvalidInput, NotFound
from sennit.filters import Equal, Filter, parse_filter
from sennit.pipeline import Plan
from sennit.privacy import Caller
from sennit.recipes import Recipe, find_recipe
from sennit.records import is_unicode
from sennit.settings import Settings
from sennit.stores.contract import BM25
from sennit.stores.embedded.snapshot import Snapshot

MAX_QUERY_CHARACTERS: Final = 100_000
"""A question; a longer text is a document, and belongs into the database."""

MAX_NEIGHBOURS: Final = 50
MAX_HOURS: Final = 1e6

FilterLike = Filter | Mapping[str, object] | str | None


class Planner:
    """Makes plans by the settings in force."""

    def __init__(self, settings: Settings, recipes: Mapping[str, Recipe]) -> None:
        keyword = settings.keyword
        self._bm25 = BM25(keyword.k1, keyword.b, keyword.text_weight, keyword.title_weight)
        self._settings = settings
        self._recipes = recipes
        find_recipe(settings.search.recipe, recipes)

    def plan(
        self,
        query: str,
        recipe: str | Recipe | None,
        limit: int | None,
        filters: FilterLike,
        caller: Caller,
        include: Sequence[str],
        neighbours: int,
        look_back: float | bool = False,
        *,
        explain: bool,
    ) -> Plan:
        """Everything a search needs to know, checked."""
        checked_query(query)
        settings = self._settings.search
        chosen = (
            recipe if isinstance(recipe, Recipe) else find_recipe(recipe or settings.recipe, self._recipes)
        )
        if limit is None:
            limit = min(chosen.limit or settings.limit, chosen.max_limit)
        if isinstance(include, str) or not all(isinstance(name, str) for name in include):
            raise InvalidInput(f"include must be a list of collection names, not {include!r}")
        if include and not chosen.collections:
            raise InvalidInput(f"Recipe {chosen.name!r} searches every collection; it takes no include")
        if type(neighbours) is not int or not 0 <= neighbours <= MAX_NEIGHBOURS:
            raise InvalidInput(f"neighbours must be from 0 to {MAX_NEIGHBOURS}, not {neighbours!r}")
        return Plan(
            chosen,
            chosen.lists(include),
            chosen.checked_limit(limit),
            parse_filter(filters),
            chosen.bm25 or self._bm25,
            settings.deadline,
            explain,
            neighbours,
            self._since(look_back),
            caller.everything and not caller.tenant,
        )

    def _since(self, look_back: float | bool) -> datetime | None:
        if look_back is False:
            return None
        hours = self._settings.memory.look_back_hours if look_back is True else look_back
        if not isinstance(hours, (int, float)) or not 0 < hours <= MAX_HOURS:
            raise InvalidInput(f"look_back must be True or hours above 0, not {look_back!r}")
        return datetime.now(UTC) - timedelta(hours=hours)


def checked_query(query: object) -> None:
    """Refuse what is no question."""
    if not isinstance(query, str):
        raise InvalidInput(f"The query must be a string, not {type(query).__name__}")
    if not is_unicode(query):
        raise InvalidInput("The query has a lone surrogate; it is not valid Unicode")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise InvalidInput(
            f"The query has {len(query):,} characters; the most is {MAX_QUERY_CHARACTERS:,}. "
            "Search for a part of it."
        )


def check_included(recipe: Recipe, include: Sequence[str], snapshot: Snapshot) -> None:
    """A collection that a search names must be one that the recipe knows or that has something to see."""
    known = (*recipe.collections, *recipe.on_request)
    for name in include:
        if name not in known and not snapshot.count(Equal("collection", name)):
            raise NotFound(f"There is no collection {name!r} to include. Known are: {', '.join(known)}")
