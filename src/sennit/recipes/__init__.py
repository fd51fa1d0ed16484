"""Recipes: which sources a search runs, how it fuses them, and which stages follow."""

from sennit.recipes.builtin import BUILTIN_RECIPES, DEFAULT_CANDIDATES, builtin_recipes
from sennit.recipes.loader import find_recipe, load_recipes, recipe_from_dict
from sennit.recipes.recipe import DISTANCES, MAX_LIMIT, CandidateCount, Recipe, SourceConfig

__all__ = [
    "BUILTIN_RECIPES",
    "DEFAULT_CANDIDATES",
    "DISTANCES",
    "MAX_LIMIT",
    "CandidateCount",
    "Recipe",
    "SourceConfig",
    "builtin_recipes",
    "find_recipe",
    "load_recipes",
    "recipe_from_dict",
]
