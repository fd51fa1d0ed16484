"""A recipe with the changes that a request wants."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sennit.errors import InvalidInput
from sennit.recipes import Recipe, find_recipe, recipe_from_dict

if TYPE_CHECKING:
    from sennit.apps.http import requests
    from sennit.apps.http.request_context import RequestContext


def changed_recipe(body: requests.RecipeBody | requests.TrialBody, context: RequestContext) -> Recipe:
    """Return the recipe of a body with another fusion, other stages and other thresholds."""
    name = body.recipe or context.db.settings.search.recipe
    recipe = find_recipe(name, context.db.recipes)
    table: dict[str, Any] = {"base": name}
    if body.fusion is not None:
        table["fusion"] = body.fusion
    if body.stages is not None:
        table["stages"] = body.stages
    if len(table) > 1:
        recipe = recipe_from_dict(name, table, context.db.recipes)
    if "min_relevance" in body.model_fields_set:
        recipe = replace(recipe, min_relevance=body.min_relevance)
    return _with_thresholds(recipe, body.thresholds) if body.thresholds else recipe


def _with_thresholds(recipe: Recipe, thresholds: dict[str, requests.Threshold]) -> Recipe:
    unknown = sorted(thresholds.keys() - {source.name for source in recipe.sources})
    if unknown:
        raise InvalidInput(
            f"Recipe {recipe.name!r} has no source {unknown[0][:80]!r} to set a threshold for. "
            f"Its sources: {', '.join(source.name for source in recipe.sources)}"
        )
    sources = [
        replace(source, **dict(thresholds[source.name])) if source.name in thresholds else source
        for source in recipe.sources
    ]
    return replace(recipe, sources=tuple(sources))
