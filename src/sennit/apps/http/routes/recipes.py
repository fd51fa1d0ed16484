"""Recipes: what there are, and saving one that was tuned on the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from fastapi import APIRouter, Response

from sennit.apps.http import requests, responses
from sennit.apps.http.bodies import JSON_TYPE, StrictRoute
from sennit.apps.http.changed_recipes import changed_recipe
from sennit.apps.http.errors import HttpError
from sennit.apps.http.request_context import ReadRequest, RequestContext
from sennit.apps.http.serializers import encode_json
from sennit.errors import InvalidInput
from sennit.recipes import (
    BUILTIN_RECIPES,
    Recipe,
    check_recipe_name,
    find_recipe,
    recipe_to_table,
)
from sennit.settings import table_to_toml

router: Final = APIRouter(tags=["page"], route_class=StrictRoute, responses=responses.ERROR_RESPONSES)

_FORBIDDEN: Final = {"model": responses.ErrorResponse, "description": "forbidden"}


@router.get("/v1/recipes", summary="List recipes", responses={200: {"model": responses.RecipesResponse}})
async def list_recipes(context: ReadRequest) -> Response:
    """Every recipe with all its settings, as a table of sennit.toml."""
    recipes: list[dict[str, Any]] = [
        {"name": name, **recipe.to_dict()} for name, recipe in context.db.recipes.items()
    ]
    default = context.db.settings.search.recipe
    return Response(encode_json({"default": default, "recipes": recipes}), media_type=JSON_TYPE)


@router.post(
    "/v1/recipes",
    summary="Save a recipe",
    responses={200: {"model": responses.SavedRecipeResponse}, 403: _FORBIDDEN},
)
async def save_recipe(body: requests.SaveRecipeBody, context: ReadRequest) -> Response:
    """Show a changed recipe as a table of sennit.toml, and with `write` append it there. It is then usable at once.

    Writing needs a service that was started for it (`sennit open`, or `sennit serve --save-recipes`) and the token of
    an administrator: one that sees everything and may write. The table is appended to the settings file of the user
    who runs the service; nothing else in it changes.
    """
    target = context.principal.recipe_file
    if body.write and target is None:
        raise HttpError(
            403,
            "Recipes are saved only by a token that sees everything and may write, on a service started with "
            "'sennit open' or 'sennit serve --save-recipes'. Copy the table into sennit.toml instead.",
        )

    def work() -> bytes:
        recipe, table = _make_recipe(body, context)
        name = recipe.name
        toml = table_to_toml("recipes", name, table)
        if body.write and target is not None:
            toml = target.append("recipes", name, table)
            context.db.admin.add_recipe(recipe)
        return encode_json(
            {
                "name": name,
                "toml": toml,
                "saved": body.write,
                "file": None if target is None else str(target.path),
            }
        )

    return Response(await context.run(work), media_type=JSON_TYPE)


def _make_recipe(body: requests.SaveRecipeBody, context: RequestContext) -> tuple[Recipe, dict[str, Any]]:
    """The new recipe, and its table."""
    name = check_recipe_name(body.name)
    if name in context.db.recipes:
        raise InvalidInput(f"There is a recipe {name!r} already. Choose another name.")
    is_builtin = body.recipe in BUILTIN_RECIPES and body.recipe not in context.db.settings.recipes
    base = find_recipe(body.recipe, context.db.recipes) if is_builtin else None
    recipe = replace(changed_recipe(body, context), name=name, about=f"Tuned from {body.recipe}.")
    return recipe, recipe_to_table(recipe, base)
