"""The recipes that come with sennit, under the settings in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sennit.context.expansion import GroupByPage
from sennit.ranking.answer_form import AnswerForm
from sennit.ranking.code import CodeRanking, PerFile
from sennit.ranking.decay import Decay
from sennit.ranking.dedupe import Dedupe
from sennit.ranking.diversity import MMR
from sennit.ranking.evidence import Evidence
from sennit.ranking.fusion import RRF, Weighted
from sennit.ranking.known_facts import KnownFacts
from sennit.ranking.latest import Latest
from sennit.ranking.overlaps import MergeOverlaps
from sennit.ranking.project import ProjectRanking
from sennit.ranking.rescore import Rescore
from sennit.ranking.window import Window
from sennit.recipes.recipe import CandidateCount, Recipe, SourceConfig
from sennit.records import CODE_COLLECTION, OUTLINE_COLLECTION
from sennit.settings import Settings

DEFAULT_CANDIDATES: Final = CandidateCount(times=3, at_least=50)
"""Fifty candidates from each source. With `Rescore`, more candidates change no figure: docs/quality.md."""

MEMORY_COLLECTIONS: Final = ("memory", "history", "facts", "entities", "default")
"""What was said and what is known, and records that name no collection. Others are searched on request."""

NO_CONVERSATIONS: Final = 'not collection in ("memory", "history", "facts", "code_files")'
"""A filter for what comes from files, each passage once."""

CODE_SEARCH: Final = Recipe(
    name="code",
    about="Code by keyword, meaning and file outline. The best result of each file comes first.",
    sources=tuple(
        SourceConfig(
            source=source,
            name=f"{prefix}{source}",
            collections=(collection,),
            candidates=CandidateCount(at_least=candidates),
        )
        # An entity counts with the outline of its file, so there are enough outlines for the files of all entities.
        for prefix, collection, candidates in (
            ("", CODE_COLLECTION, 50),
            ("outline_", OUTLINE_COLLECTION, 100),
        )
        for source in ("keyword", "vector")
    ),
    # Every list has weight 1, except that the vectors of single functions have half: most of a function's text is
    # names, which a word model does not know. Every other weighting we tried was worse, or better by chance.
    fusion=Weighted({"*": 1.0, "vector": 0.5}, "max"),
    stages=(Rescore(), CodeRanking(outlines=OUTLINE_COLLECTION), PerFile()),
    collections=(CODE_COLLECTION, OUTLINE_COLLECTION),
    limit=10,
)
"""The search part of the recipe `code`: entities, and outlines of files."""


def builtin_recipes(settings: Settings) -> dict[str, Recipe]:
    """Return every built-in recipe by name."""
    keyword = SourceConfig(source="keyword", candidates=DEFAULT_CANDIDATES)
    vector = SourceConfig(source="vector", candidates=DEFAULT_CANDIDATES)
    links = SourceConfig(source="links", candidates=DEFAULT_CANDIDATES)
    general = (
        Recipe(
            name="default",
            about="Keyword, meaning and links between titles together, for anything.",
            sources=(keyword, vector, links),
            # The best of the plain fusions on eight collections; docs/quality.md has the figures. Links add to it
            # where records have titles that others mention: docs/reference/graph.md. Cosines are compared with
            # their background, so that every model has the same voice: docs/design/relevance.md.
            fusion=Weighted(
                {"keyword": 0.3, "vector": 0.7, "links": 1.0},
                {"keyword": "max", "vector": "background", "links": "none"},
            ),
            stages=(Rescore(), ProjectRanking()),
        ),
        Recipe(
            name="rrf",
            about="Keyword and meaning by reciprocal rank; works when scores are not comparable.",
            sources=(keyword, vector),
            fusion=RRF(k=60, first_rank=1),
        ),
        Recipe(
            name="keyword",
            about="Exact words only.",
            sources=(keyword,),
            fusion=Weighted({"keyword": 1.0}, "none"),
        ),
        Recipe(
            name="vector",
            about="Meaning only.",
            sources=(vector,),
            fusion=Weighted({"vector": 1.0}, "none"),
        ),
    )
    return {
        recipe.name: recipe
        for recipe in (
            *general,
            *_docs(settings),
            _artifacts(settings),
            _memory(settings),
            _files(settings),
            CODE_SEARCH,
        )
    }


def _docs(settings: Settings) -> tuple[Recipe, Recipe]:
    docs = settings.docs
    candidates = CandidateCount(plus=docs.extra_candidates)
    sections = Recipe(
        name="docs",
        about="Pages of documentation, grouped by page.",
        sources=(
            SourceConfig(source="keyword", candidates=candidates),
            SourceConfig(source="vector", candidates=candidates),
        ),
        # A hit of one list gets only that list's share; BM25 is scaled to 0..1 first.
        fusion=RRF(k=60, first_rank=1)
        if docs.fusion == "rrf"
        else Weighted(
            {"keyword": docs.keyword_weight, "vector": docs.vector_weight},
            {"keyword": "max", "vector": "none"},
        ),
        collections=("docs",),
        on_request=("examples",),
        transform=True,
        stages=(GroupByPage(docs.examples_shorter_than),),
    )
    examples = replace(
        sections,
        name="examples",
        about="Finished examples of documentation.",
        collections=("examples",),
        on_request=("docs",),
        stages=(),
    )
    return sections, examples


def _files(settings: Settings) -> Recipe:
    files = settings.files
    return Recipe(
        name="files",
        about="A folder of text: exact matches by grep, and meaning.",
        sources=(
            SourceConfig(source="grep", candidates=DEFAULT_CANDIDATES),
            SourceConfig(
                source="vector",
                where=NO_CONVERSATIONS,
                candidates=DEFAULT_CANDIDATES,
                max_distance=files.vector_score_threshold,
                metric=files.metric,
            ),
        ),
        fusion=RRF(k=60, first_rank=1),
        stages=(MergeOverlaps(),),
        limit=10,
    )


def _artifacts(settings: Settings) -> Recipe:
    artifacts = settings.artifacts
    candidates = CandidateCount(times=artifacts.overfetch_multiplier)
    return Recipe(
        name="artifacts",
        about="Several collections of a knowledge base, one result per artifact.",
        sources=tuple(
            SourceConfig(source=source, candidates=candidates, per_collection=True)
            for source in dict.fromkeys(artifacts.sources)
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
    # Only the graph source finds facts.
    no_facts = "not (exists subject and exists relation and exists object)"
    evidence = (Evidence(neighbours=memory.neighbour_share),) if memory.evidence else ()
    return Recipe(
        name="memory",
        about="What was said and what is known, recent first, without repetition.",
        sources=(
            SourceConfig(
                source="keyword",
                where=no_facts,
                candidates=CandidateCount(times=memory.keyword_overfetch),
                uses_look_back=True,
                uses_period=True,
                knows_speakers=True,
                needs_topic=True,
            ),
            SourceConfig(
                source="vector",
                where=no_facts,
                candidates=CandidateCount(times=memory.vector_overfetch),
                uses_look_back=True,
                uses_period=True,
                needs_topic=True,
            ),
            SourceConfig(
                source="recent",
                where=no_facts,
                candidates=CandidateCount(),
                lists_recent=True,
                uses_look_back=True,
            ),
            SourceConfig(source="graph", candidates=CandidateCount(times=memory.graph_overfetch)),
        ),
        fusion=RRF(k=memory.rrf_constant, first_rank=1),
        stages=(
            *evidence,
            KnownFacts(),
            Window(),
            AnswerForm(),
            Latest(),
            Decay(memory.half_life_days, memory.evergreen_floor, memory.evergreen, memory.recency),
            MMR(memory.mmr_lambda, memory.mmr_depth, memory.mmr_similarity),
        ),
        collections=MEMORY_COLLECTIONS,
        limit=5,
    )


BUILTIN_RECIPES: Final[Mapping[str, Recipe]] = builtin_recipes(Settings())
"""The built-in recipes under the default settings."""
