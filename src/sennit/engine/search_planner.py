"""Turn the arguments of a search into a plan for the pipeline, and refuse invalid ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from sennit.engine.validation import check_query
from sennit.errors import InvalidInput
from sennit.filters import Filter, parse_filter
from sennit.pipeline import SearchPlan
from sennit.privacy import Caller
from sennit.recipes import Recipe, find_recipe
from sennit.settings import Settings
from sennit.stores.contract import BM25

MAX_NEIGHBOURS: Final = 50
MAX_LOOK_BACK_HOURS: Final = 1e6

FilterLike = Filter | Mapping[str, object] | str | None


class SearchPlanner:
    """Makes search plans from arguments and settings."""

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
    ) -> SearchPlan:
        """Return a checked plan."""
        check_query(query)
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
        return SearchPlan(
            chosen,
            chosen.expand_sources(include),
            chosen.check_limit(limit),
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
        if not isinstance(hours, (int, float)) or not 0 < hours <= MAX_LOOK_BACK_HOURS:
            raise InvalidInput(f"look_back must be True or hours above 0, not {look_back!r}")
        return datetime.now(UTC) - timedelta(hours=hours)
