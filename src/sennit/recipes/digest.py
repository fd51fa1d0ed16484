"""A digest of what in a recipe decides the features of its candidates, so that a ranker knows the recipe again."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from itertools import takewhile
from typing import Final

from sennit.ranking.learned import Learned
from sennit.ranking.stages import Stage, stage_to_dict
from sennit.recipes.recipe import Recipe
from sennit.stores.contract import BM25

MAX_CACHED: Final = 64

_DECIDING: Final = ("sources", "fusion", "collections", "transform")


def digest_recipe(recipe: Recipe, bm25: BM25) -> str:
    """Return the digest of the sources, the fusion and the stages up to the cut or to a learned ranker."""
    table = recipe.to_dict()
    stages: tuple[Stage, ...] = (*recipe.list_stages, *recipe.ranking_stages)
    before = takewhile(lambda stage: not isinstance(stage, Learned), stages)
    value = {
        **{name: table[name] for name in _DECIDING},
        "stages": [stage_to_dict(stage) for stage in before],
        "bm25": asdict(bm25),
    }
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class RecipeDigests:
    """Digests of the recipes of a process, each computed once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Recipe, BM25, str]] = {}

    def of(self, recipe: Recipe, bm25: BM25) -> str:
        """Return the digest of a recipe, which is recognised as an object, because comparing values would cost more."""
        known = self._known.get(id(recipe))
        if known is None or known[0] is not recipe or known[1] != bm25:
            if len(self._known) >= MAX_CACHED:
                self._known.clear()
            known = self._known[id(recipe)] = recipe, bm25, digest_recipe(recipe, bm25)
        return known[2]
