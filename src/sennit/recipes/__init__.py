"""Recipes: which sources a search runs, how it fuses them, and which stages follow."""

from sennit.recipes.book import RecipeBook, check_recipe_name, recipe_to_table
from sennit.recipes.builtin import BUILTIN_RECIPES, DEFAULT_CANDIDATES, builtin_recipes
from sennit.recipes.digest import RecipeDigests, digest_recipe
from sennit.recipes.loader import find_recipe, load_recipes, recipe_from_dict
from sennit.recipes.recipe import DISTANCES, MAX_LIMIT, CandidateCount, Recipe, SourceConfig

__all__ = [
    "BUILTIN_RECIPES",
    "DEFAULT_CANDIDATES",
    "DISTANCES",
    "MAX_LIMIT",
    "CandidateCount",
    "Recipe",
    "RecipeBook",
    "RecipeDigests",
    "SourceConfig",
    "builtin_recipes",
    "check_recipe_name",
    "digest_recipe",
    "find_recipe",
    "load_recipes",
    "recipe_from_dict",
    "recipe_to_table",
]
