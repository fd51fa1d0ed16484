"""The recipes of an open database by name, and a recipe as a table of sennit.toml."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sennit.errors import InvalidInput
from sennit.recipes.recipe import Recipe

MAX_NAME_CHARACTERS: Final = 100


class RecipeBook(Mapping[str, Recipe]):
    """The recipes of an open database, by name. A recipe that is added is seen by all who hold the book."""

    def __init__(self, recipes: Mapping[str, Recipe]) -> None:
        self._recipes = dict(recipes)

    def __getitem__(self, name: str) -> Recipe:
        return self._recipes[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._recipes)

    def __len__(self) -> int:
        return len(self._recipes)

    def add(self, recipe: Recipe) -> None:
        """Add a recipe under a name that no other has."""
        if recipe.name in self._recipes:
            raise InvalidInput(f"There is a recipe {recipe.name!r} already. Choose another name.")
        # A new table, because another thread may be going through the old one.
        self._recipes = {**self._recipes, recipe.name: recipe}


def recipe_to_table(recipe: Recipe, base: Recipe | None = None) -> dict[str, Any]:
    """Return the `[recipes.NAME]` table of a recipe; with a built-in `base`, only what differs from that."""
    table = recipe.to_dict()
    if base is None:
        return table
    inherited = base.to_dict()
    return {"base": base.name} | {key: value for key, value in table.items() if inherited.get(key) != value}


def check_recipe_name(name: str) -> str:
    """Return the name of a new recipe, without space around it; raise if it cannot be one."""
    name = name.strip()
    if not name or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise InvalidInput(
            f"The name of a recipe has 1 to {MAX_NAME_CHARACTERS} printable characters, not {name[:40]!r}."
        )
    return name
