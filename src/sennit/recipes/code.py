"""The search part of the recipe `code`: entities and outlines of files, by their words and by their meaning."""

from __future__ import annotations

from typing import Final

from sennit.ranking.code import CodeSense, PerFile
from sennit.ranking.fusion import Weighted
from sennit.recipes.values import Pool, Recipe, SourceUse

ENTITIES: Final = "code"
OUTLINES: Final = "code_files"

CODE_SEARCH: Final = Recipe(
    name="code",
    about="Code by its words, its meaning and the outline of its file, one result per file first.",
    sources=tuple(
        SourceUse(source=source, name=f"{part}{source}", collections=(collection,), pool=Pool(at_least=50))
        for part, collection in (("", ENTITIES), ("outline_", OUTLINES))
        for source in ("keyword", "vector")
    ),
    # Equal shares of the best of each list, but of the meaning of single functions half: names, which a model of words
    # does not know, are most of their text. Every other weighting we tried was worse, or better by chance.
    fusion=Weighted({"*": 1.0, "vector": 0.5}, "max"),
    stages=(CodeSense(outlines=OUTLINES), PerFile()),
    collections=(ENTITIES, OUTLINES),
    reads_as="code",
    limit=10,
)
