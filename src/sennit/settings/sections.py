"""Every setting, declared once: its name, type, default, range and meaning are one field below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from sennit.settings.rules import Rule, Section

Provider: TypeAlias = Literal["static", "onnx", "openai", "ollama", "none"]
LanguageProvider: TypeAlias = Literal["none", "anthropic", "openai", "ollama"]
Transform: TypeAlias = Literal["auto", "offline", "none"]
DocsFusion: TypeAlias = Literal["weighted", "rrf"]
Similarity: TypeAlias = Literal["jaccard", "cosine"]
CodeProvider: TypeAlias = Literal["", "openai", "local", "none"]
Metric: TypeAlias = Literal["cosine", "l2", "squared_l2", "inner_product"]

_ADDRESS: Final = Rule(
    "Address of a server other than the provider's own, such as an OpenAI-compatible or Ollama one.",
    pattern=r"(?i:https?)://[^\x00-\x20\x7f/@?#\\]+(/[^\x00-\x20\x7f@?#\\]*)?",
    expects="an http:// or https:// address without user, password, query or fragment",
    hide="[@?#]",
    sensitive=True,
)
_KEY_VARIABLE: Final = Rule(
    "The name of the environment variable that holds the API key.",
    pattern=r"[A-Za-z_][A-Za-z0-9_]*",
    expects="the name of an environment variable such as OPENAI_API_KEY, and not the key itself",
    hide=".",
    sensitive=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings(Section):
    """Which model turns text into vectors, and how it is asked."""

    name: ClassVar[str] = "embedding"

    provider: Annotated[
        Provider,
        Rule(
            "Who computes vectors: static ships with sennit and needs no network; none leaves keyword search.",
            sensitive=("onnx", "openai", "ollama"),
        ),
    ] = "static"
    model: Annotated[
        str,
        Rule(
            "The provider's name of the model, or the folder of an ONNX model; empty: its own.",
            sensitive=True,
        ),
    ] = ""
    dimensions: Annotated[
        int | None,
        Rule(
            "Keep this many leading dimensions and normalise again (Matryoshka models).", least=1, most=65536
        ),
    ] = None
    base_url: Annotated[str | None, _ADDRESS] = None
    api_key_env: Annotated[str | None, _KEY_VARIABLE] = None
    timeout: Annotated[float, Rule("Seconds to wait for one remote answer.", least=0.001, most=3600)] = 30.0
    retries: Annotated[int, Rule("Further attempts when a remote model fails.", least=0, most=20)] = 3
    batch: Annotated[
        int | None,
        Rule("Texts given to the model at once; by default as many as it asks for.", least=1, most=4096),
    ] = None
    query_prefix: Annotated[str, Rule("Put before a query, for models trained with one.")] = ""
    document_prefix: Annotated[str, Rule("Put before a record's text, for models trained with one.")] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageSettings(Section):
    """Which language model answers questions and turns them into keywords, and how it is asked."""

    name: ClassVar[str] = "llm"

    provider: Annotated[
        LanguageProvider,
        Rule(
            "Who writes answers; none: they are put together from sentences that were found.",
            sensitive=("anthropic", "openai", "ollama"),
        ),
    ] = "none"
    model: Annotated[str, Rule("The provider's name of the model.", sensitive=True)] = ""
    base_url: Annotated[str | None, _ADDRESS] = None
    api_key_env: Annotated[str | None, _KEY_VARIABLE] = None
    timeout: Annotated[float, Rule("Seconds for a whole answer.", least=0.001, most=3600)] = 60.0
    transform_timeout: Annotated[
        float,
        Rule("Seconds for the keywords of a question; then it is searched as it is.", least=0.001, most=600),
    ] = 3.0
    transform: Annotated[
        Transform,
        Rule(
            "Who turns a question into keywords for the search by meaning: auto is the language model where "
            "there is one, and offline, which needs none, where not."
        ),
    ] = "auto"
    retries: Annotated[int, Rule("Further attempts within the time.", least=0, most=20)] = 2
    max_tokens: Annotated[int, Rule("The length of an answer, at most.", least=1, most=100_000)] = 1024
    prompt_characters: Annotated[
        int, Rule("The length of the system prompt, at most.", least=2000, most=10**6)
    ] = 24_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordSettings(Section):
    """BM25, as docs/ranking-contract.md states it."""

    name: ClassVar[str] = "keyword"

    k1: Annotated[float, Rule("How much a repeated term adds; 0: nothing.", least=0, most=100)] = 1.2
    b: Annotated[
        float, Rule("How much a long text is discounted, from not at all to fully.", least=0, most=1)
    ] = 0.4
    title_weight: Annotated[float, Rule("What a term in the title counts.", least=0, most=1000)] = 2.0
    text_weight: Annotated[float, Rule("What a term in the text counts.", least=0, most=1000)] = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings(Section):
    """What a search does when it is not told otherwise."""

    name: ClassVar[str] = "search"

    recipe: Annotated[
        str, Rule("The recipe used when none is named.", pattern=".+", expects="the name of a recipe")
    ] = "default"
    limit: Annotated[int, Rule("Results returned when no limit is given.", least=1, most=1000)] = 10
    deadline: Annotated[
        float,
        Rule(
            "Seconds a search waits for its sources; a later one is reported as missing.",
            least=0.001,
            most=600,
        ),
    ] = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings(Section):
    """How the database keeps its indexes."""

    name: ClassVar[str] = "store"

    fold_at: Annotated[
        int,
        Rule(
            "New records that may wait, scored one by one, until the indexes take them in.",
            least=1,
            most=10**6,
        ),
    ] = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacySettings(Section):
    """Who sees what. Without a caller, a search sees the least: the lowest level, and what is open to everyone."""

    name: ClassVar[str] = "privacy"

    open: Annotated[
        bool,
        Rule("One user, no secrets from oneself: who names no caller sees every record.", sensitive=(True,)),
    ] = False
    levels: Annotated[tuple[str, ...], Rule("Sensitivity levels, the lowest first.", sensitive=True)] = (
        "normal",
        "sensitive",
        "private",
    )
    everyone: Annotated[tuple[str, ...], Rule("Scopes that every caller sees.", sensitive=True)] = ("public",)
    clearance: Annotated[
        str, Rule("The level that a search without a caller reaches; empty: the lowest.", sensitive=True)
    ] = ""
    scopes: Annotated[
        tuple[str, ...], Rule("Further scopes that a search without a caller sees.", sensitive=True)
    ] = ()
    tenant: Annotated[str, Rule("The tenant of a search without a caller.", sensitive=True)] = ""
    apart: Annotated[
        bool,
        Rule(
            "Vector search is an exact scan of what the caller may see, in which other records have no part; "
            "slower from 8,192 records on.",
            sensitive=(False,),
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DocsSettings(Section):
    """The recipe `docs`: pages of documentation beside an editor."""

    name: ClassVar[str] = "docs"

    fusion: Annotated[DocsFusion, Rule("weighted adds shares of similarity; rrf goes by ranks.")] = "weighted"
    vector_weight: Annotated[float, Rule("The share of meaning.", least=0, most=100)] = 0.7
    keyword_weight: Annotated[float, Rule("The share of words.", least=0, most=100)] = 0.3
    more: Annotated[
        int, Rule("Each source is asked for so many more than the limit.", least=0, most=1000)
    ] = 5
    short_examples: Annotated[
        int, Rule("A page's examples come along if they have fewer characters.", least=0, most=10**6)
    ] = 500
    editor_keywords: Annotated[
        int, Rule("Keywords of the open editor that join a question, at most.", least=0, most=100)
    ] = 10
    editor_weight: Annotated[
        float, Rule("What the editor counts beside the question, which is 1.", least=0, most=10)
    ] = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSettings(Section):
    """The recipe `files`: which folders may be searched and read, and how near a chunk must be."""

    name: ClassVar[str] = "files"

    folders: Annotated[
        tuple[str, ...],
        Rule(
            "Folders that grep and read may open; empty: those that were indexed, or the one that holds .sennit.",
            sensitive=True,
        ),
    ] = ()
    metric: Annotated[
        Metric,
        Rule(
            "What a distance is: cosine 1 - cos, inner_product 1 - dot, l2 the length of the difference, "
            "squared_l2 its square."
        ),
    ] = "cosine"
    vector_score_threshold: Annotated[
        float, Rule("Chunks at this distance or farther are not results.", least=0, most=4)
    ] = 0.5
    sensitivity: Annotated[str, Rule("The level of files that are found by grep.")] = "normal"
    scope: Annotated[str, Rule("The scope of files that are found by grep.")] = "public"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactsSettings(Section):
    """The recipe `artifacts`: several collections, one answer."""

    name: ClassVar[str] = "artifacts"

    rrf_constant: Annotated[int, Rule("k in 1 / (k + rank), rank from 0.", least=1, most=10_000)] = 60
    overfetch_multiplier: Annotated[
        int, Rule("Each collection is asked for this many times the limit.", least=1, most=100)
    ] = 3
    max_hybrid_search_results: Annotated[int, Rule("The largest limit.", least=1, most=1000)] = 50
    collections: Annotated[tuple[str, ...], Rule("Collections that are always searched.")] = (
        "artifacts",
        "artifact_chunks",
    )
    on_request: Annotated[tuple[str, ...], Rule("Collections that are searched when they are named.")] = (
        "memory",
        "history",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings(Section):
    """The recipe `memory`: what was said and what is known, fading with time."""

    name: ClassVar[str] = "memory"

    rrf_constant: Annotated[int, Rule("k in 1 / (k + rank), rank from 1.", least=1, most=10_000)] = 60
    keyword_pool: Annotated[float, Rule("Keyword candidates per result.", least=0.1, most=100)] = 4.0
    vector_pool: Annotated[float, Rule("Vector candidates per result.", least=0.1, most=100)] = 2.0
    graph_pool: Annotated[float, Rule("Facts per result.", least=0.1, most=100)] = 1.0
    look_back_hours: Annotated[
        float, Rule("How far back a search looks that asks to look back.", least=0.01, most=1e6)
    ] = 168.0
    half_life_days: Annotated[float, Rule("After so many days, half as much.", least=0.01, most=1e6)] = 30.0
    evergreen: Annotated[tuple[str, ...], Rule("Kinds that never fade below the floor.")] = (
        "person",
        "place",
        "relationship",
    )
    evergreen_floor: Annotated[float, Rule("The least that is left of those.", least=0, most=1)] = 0.3
    mmr_lambda: Annotated[float, Rule("1: relevance alone; 0: variety alone.", least=0, most=1)] = 0.7
    mmr_over: Annotated[int, Rule("How many of the best are put in a varied order.", least=1, most=1000)] = 20
    mmr_similarity: Annotated[Similarity, Rule("What makes two texts alike: shared words, or meaning.")] = (
        "jaccard"
    )
    evidence: Annotated[
        bool,
        Rule(
            "Where there are enough candidates, order by scores and by the turns next to them; see docs/memory.md."
        ),
    ] = True
    neighbour_share: Annotated[
        float, Rule("The share of the best neighbouring turn's evidence that a turn gains.", least=0, most=1)
    ] = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class HydrationSettings(Section):
    """Plans of code for a prompt: what is named first, then what is near in meaning, within a budget."""

    name: ClassVar[str] = "hydration"

    enable_file_mention_anchors: Annotated[bool, Rule("Take in files that the question names.")] = True
    enable_symbol_mention_anchors: Annotated[
        bool, Rule("Take in symbols that the question names, and what is around them.")
    ] = True
    enable_previous_hydration_anchors: Annotated[
        bool, Rule("Take in what earlier turns of the episode took in.")
    ] = True
    enable_semantic_ranking: Annotated[
        bool, Rule("Fill what is left with what is near in meaning, or else in words.")
    ] = True
    semantic_threshold: Annotated[
        float,
        Rule(
            "Entities with a cosine above this are near; 'sennit doctor' says what it means.",
            least=-1,
            most=1,
        ),
    ] = 0.7
    semantic_budget_tokens: Annotated[
        int, Rule("Tokens of a plan for which none are named.", least=1, most=10**7)
    ] = 4000
    semantic_budget_entities: Annotated[
        int, Rule("Entities of a plan for which none are named.", least=1, most=10_000)
    ] = 10
    embedding_provider: Annotated[
        CodeProvider,
        Rule(
            "Whose vectors are asked: empty for the database's own, openai or local for only such, none for no one."
        ),
    ] = ""
    embedding_model: Annotated[str, Rule("Only vectors of the model of this name are asked; empty: any.")] = (
        ""
    )
    embedding_cache_ttl: Annotated[
        int,
        Rule("Seconds for which the vector of a question by a remote model is kept.", least=0, most=10**9),
    ] = 86400


SECTIONS: Final = (
    EmbeddingSettings,
    LanguageSettings,
    KeywordSettings,
    SearchSettings,
    StoreSettings,
    PrivacySettings,
    DocsSettings,
    FilesSettings,
    ArtifactsSettings,
    MemorySettings,
    HydrationSettings,
)
