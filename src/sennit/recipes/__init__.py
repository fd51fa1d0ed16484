"""What is configured: a recipe says which sources are asked, how their answers become one, and what follows."""

from sennit.recipes.builtin import BUILT_IN, DEEP, built_in
from sennit.recipes.reading import all_recipes, find_recipe, recipe_from_dict
from sennit.recipes.values import DISTANCES, MAX_LIMIT, Pool, Recipe, SourceUse

__all__ = [
    "BUILT_IN",
    "DEEP",
    "DISTANCES",
    "MAX_LIMIT",
    "Pool",
    "Recipe",
    "SourceUse",
    "all_recipes",
    "built_in",
    "find_recipe",
    "recipe_from_dict",
]
