"""Loads recipes from the tables of sennit.toml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Final

import sennit.ranking.rerank  # noqa: F401 - registers the stage, which no built-in recipe has
from sennit.errors import InvalidInput, NotFound, suggest
from sennit.ranking.fusion import fusion_from_dict
from sennit.ranking.stages import stage_from_dict
from sennit.recipes.builtin import BUILTIN_RECIPES, DEFAULT_CANDIDATES, builtin_recipes
from sennit.recipes.recipe import CandidateCount, Recipe, SourceConfig
from sennit.search_parameters import RECIPE
from sennit.settings import Settings
from sennit.stores.contract import BM25

FORMER_SETTINGS: Final[Mapping[str, str]] = {
    "rescore_missing": '{stage = "rescore"}',
    "merge_overlaps": '{stage = "merge_overlaps"}',
    "group_by_page": '{stage = "group_by_page"}',
    "examples_shorter_than": '{stage = "group_by_page", examples_shorter_than = N}',
}
"""Settings of a recipe that are stages now."""


def load_recipes(settings: Settings) -> dict[str, Recipe]:
    """Return the built-in recipes under these settings, and those that the settings define."""
    known = builtin_recipes(settings)
    return {
        **known,
        **{name: recipe_from_dict(name, table, known) for name, table in settings.recipes.items()},
    }


def recipe_from_dict(
    name: str, table: Mapping[str, Any], known_recipes: Mapping[str, Recipe] = BUILTIN_RECIPES
) -> Recipe:
    """Read a recipe from a `[recipes.name]` table. `base` names a recipe whose other parts it keeps."""
    known = {f.name for f in fields(Recipe)} | {"base"}
    unknown = sorted(set(table) - known)
    if unknown:
        if unknown[0] in FORMER_SETTINGS:
            raise InvalidInput(
                f"Recipe {name!r} has no setting {unknown[0]!r}. It is a stage: to use it, add "
                f"{FORMER_SETTINGS[unknown[0]]} to the recipe's stages"
            )
        raise InvalidInput(
            f"Recipe {name!r} has no setting {unknown[0]!r}. Settings: {', '.join(sorted(known))}"
        )
    parts: dict[str, Any] = {key: value for key, value in table.items() if key not in ("base", "name")}
    try:
        if "sources" in parts:
            parts["sources"] = tuple(_read_source(entry) for entry in parts["sources"])
        if "fusion" in parts:
            parts["fusion"] = fusion_from_dict(parts["fusion"])
        if "stages" in parts:
            parts["stages"] = tuple(stage_from_dict(entry) for entry in parts["stages"])
        if not isinstance(parts.get("evidence", {}), Mapping):
            raise InvalidInput(f"evidence must be a table, not {parts['evidence']!r}")
        if "bm25" in parts:
            parts["bm25"] = BM25(**parts["bm25"])
        if "base" in table:
            # The evidence for a recipe says nothing about those that are made from it.
            return replace(find_recipe(table["base"], known_recipes), name=name, **{"evidence": {}, **parts})
        missing = [key for key in ("sources", "fusion") if key not in parts]
        if missing:
            raise InvalidInput(f'it needs {missing[0]!r}, or a recipe to start from such as base = "default"')
        return Recipe(name=name, **parts)
    except (InvalidInput, ValueError, TypeError) as error:
        raise InvalidInput(f"Recipe {name!r}: {error}") from error


def find_recipe(name: object, recipes: Mapping[str, Recipe]) -> Recipe:
    """Return the recipe with this name."""
    recipe = recipes.get(name) if isinstance(name, str) else None
    if recipe is None:
        advice = suggest(RECIPE.check(name), recipes) if isinstance(name, str) else ""
        raise NotFound(f"There is no recipe {name!r}. {advice}Recipes: {', '.join(sorted(recipes))}")
    return recipe


def _read_source(entry: object) -> SourceConfig:
    if isinstance(entry, str):
        return SourceConfig(source=entry, candidates=DEFAULT_CANDIDATES)
    if not isinstance(entry, Mapping):
        raise InvalidInput(f"a source must be a name or a table, not {entry!r}")
    known = {f.name for f in fields(SourceConfig)}
    unknown = sorted(set(entry) - known)
    if unknown:
        raise InvalidInput(f"a source has no setting {unknown[0]!r}. Settings: {', '.join(sorted(known))}")
    parts = dict(entry)
    parts["candidates"] = (
        CandidateCount(**parts["candidates"]) if "candidates" in parts else DEFAULT_CANDIDATES
    )
    return SourceConfig(**parts)
