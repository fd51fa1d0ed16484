"""The recipes that come with sennit, by the settings in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sennit.ranking.decay import Decay
from sennit.ranking.dedupe import Dedupe
from sennit.ranking.diversity import MMR
from sennit.ranking.evidence import Evidence
from sennit.ranking.fusion import RRF, Weighted
from sennit.recipes.code import CODE_SEARCH
from sennit.recipes.values import Pool, Recipe, SourceUse
from sennit.settings import Settings

DEEP: Final = Pool(times=3, at_least=50)
"""Fifty candidates from each source. With completed scores, deeper pools change no figure: docs/quality.md."""


def built_in(settings: Settings) -> dict[str, Recipe]:
    """Every built-in recipe by its name."""
    plain = (
        Recipe(
            name="default",
            about="Keyword, meaning and links between titles together, for anything.",
            sources=(
                SourceUse(source="keyword", pool=DEEP),
                SourceUse(source="vector", pool=DEEP),
                SourceUse(source="links", pool=DEEP),
            ),
            # The best of the plain fusions on eight collections; docs/quality.md has ours. Links come on top, where
            # records have titles that others mention: docs/graph.md.
            fusion=Weighted(
                {"keyword": 0.3, "vector": 0.7, "links": 1.0},
                {"keyword": "max", "vector": "none", "links": "none"},
            ),
            complete=True,
        ),
        Recipe(
            name="rrf",
            about="Keyword and meaning by reciprocal rank: needs no scores that compare.",
            sources=(SourceUse(source="keyword", pool=DEEP), SourceUse(source="vector", pool=DEEP)),
            fusion=RRF(k=60, first_rank=1),
        ),
        Recipe(
            name="keyword",
            about="Exact words only.",
            sources=(SourceUse(source="keyword", pool=DEEP),),
            fusion=Weighted({"keyword": 1.0}, "none"),
        ),
        Recipe(
            name="vector",
            about="Meaning only.",
            sources=(SourceUse(source="vector", pool=DEEP),),
            fusion=Weighted({"vector": 1.0}, "none"),
        ),
    )
    return {
        recipe.name: recipe
        for recipe in (
            *plain,
            *_docs(settings),
            _artifacts(settings),
            _memory(settings),
            _files(settings),
            CODE_SEARCH,
        )
    }


def _docs(settings: Settings) -> tuple[Recipe, Recipe]:
    docs = settings.docs
    pool = Pool(plus=docs.more)
    sections = Recipe(
        name="docs",
        about="Pages of documentation, organised by page.",
        sources=(SourceUse(source="keyword", pool=pool), SourceUse(source="vector", pool=pool)),
        # A hit in one list only gets that list's share; BM25 is brought to 0..1 first.
        fusion=RRF(k=60, first_rank=1)
        if docs.fusion == "rrf"
        else Weighted(
            {"keyword": docs.keyword_weight, "vector": docs.vector_weight},
            {"keyword": "max", "vector": "none"},
        ),
        collections=("docs",),
        reads_as="pages",
        by_page=True,
        short_examples=docs.short_examples,
    )
    examples = replace(
        sections,
        name="examples",
        about="Finished examples of documentation.",
        collections=("examples",),
        by_page=False,
    )
    return sections, examples


def _files(settings: Settings) -> Recipe:
    files = settings.files
    return Recipe(
        name="files",
        about="A folder of text: exact matches by grep, and meaning.",
        sources=(
            SourceUse(source="grep", pool=DEEP),
            SourceUse(
                source="vector", pool=DEEP, max_distance=files.vector_score_threshold, metric=files.metric
            ),
        ),
        fusion=RRF(k=60, first_rank=1),
        join_places=True,
        limit=10,
    )


def _artifacts(settings: Settings) -> Recipe:
    artifacts = settings.artifacts
    pool = Pool(times=artifacts.overfetch_multiplier)
    return Recipe(
        name="artifacts",
        about="Several collections of a knowledge base, one answer per artifact.",
        sources=(
            SourceUse(source="vector", pool=pool, per_collection=True),
            SourceUse(source="keyword", pool=pool, per_collection=True),
        ),
        fusion=RRF(k=artifacts.rrf_constant, first_rank=0),
        stages=(Dedupe(),),
        collections=artifacts.collections,
        on_request=artifacts.on_request,
        limit=5,
        max_limit=artifacts.max_hybrid_search_results,
    )


def _memory(settings: Settings) -> Recipe:
    memory = settings.memory
    said = "not (exists subject and exists relation and exists object)"  # facts are the graph's to find
    evidence = (Evidence(neighbours=memory.neighbour_share),) if memory.evidence else ()
    return Recipe(
        name="memory",
        about="What was said and what is known, the recent before the old, each thing once.",
        sources=(
            SourceUse(source="keyword", where=said, pool=Pool(times=memory.keyword_pool), looks_back=True),
            SourceUse(source="vector", where=said, pool=Pool(times=memory.vector_pool), looks_back=True),
            SourceUse(source="graph", pool=Pool(times=memory.graph_pool)),
        ),
        fusion=RRF(k=memory.rrf_constant, first_rank=1),
        stages=(
            *evidence,
            Decay(memory.half_life_days, memory.evergreen_floor, memory.evergreen),
            MMR(memory.mmr_lambda, memory.mmr_over, memory.mmr_similarity),
        ),
        limit=10,
    )


BUILT_IN: Final[Mapping[str, Recipe]] = built_in(Settings())
"""By the default settings."""
