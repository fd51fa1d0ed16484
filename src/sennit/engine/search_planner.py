"""Turn the request of a search into a plan for the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from sennit.engine.search_request import SearchRequest
from sennit.errors import InvalidInput
from sennit.pipeline import SearchPlan
from sennit.privacy import Caller
from sennit.recipes import Recipe, find_recipe
from sennit.settings import Settings
from sennit.stores.contract import BM25


class SearchPlanner:
    """Makes search plans from requests and settings."""

    def __init__(self, settings: Settings, recipes: Mapping[str, Recipe], default_caller: Caller) -> None:
        keyword = settings.keyword
        self._bm25 = BM25(keyword.k1, keyword.b, keyword.text_weight, keyword.title_weight)
        self._settings = settings
        self._recipes = recipes
        self._default_caller = default_caller
        find_recipe(settings.search.recipe, recipes)

    def plan(self, request: SearchRequest) -> SearchPlan:
        """Return the plan of a request; raise if its recipe does not allow what it asks for."""
        settings = self._settings.search
        recipe = request.recipe
        if not isinstance(recipe, Recipe):
            recipe = find_recipe(recipe or settings.recipe, self._recipes)
        if request.recency is not None:
            recipe = recipe.with_recency(request.recency)
        limit = request.limit
        if limit is None:
            limit = min(recipe.limit or settings.limit, recipe.max_limit)
        if request.include and not recipe.collections:
            raise InvalidInput(f"Recipe {recipe.name!r} searches every collection; it takes no include")
        caller = self._default_caller if request.caller is None else request.caller
        return SearchPlan(
            recipe,
            recipe.expand_sources(request.include),
            recipe.check_limit(limit),
            request.build_filter(),
            recipe.bm25 or self._bm25,
            settings.deadline,
            request.explain,
            request.neighbours,
            self._since(request),
            request.min_relevance or recipe.min_relevance,
            caller.everything and not caller.tenant,
        )

    def _since(self, request: SearchRequest) -> datetime | None:
        if request.look_back is False:
            return None
        hours = self._settings.memory.look_back_hours if request.look_back is True else request.look_back
        return (request.now or datetime.now(UTC)) - timedelta(hours=hours)
