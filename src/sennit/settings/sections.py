"""Every setting, declared once: one field holds its name, type, default, range and meaning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from sennit.search_parameters import LIMIT, LOOK_BACK
from sennit.settings.connections import address, variable_of
from sennit.settings.setting import FieldSpec, Section

Provider: TypeAlias = Literal["static", "onnx", "openai", "ollama", "given", "none"]
LanguageProvider: TypeAlias = Literal["none", "anthropic", "openai", "ollama"]
RerankProvider: TypeAlias = Literal["none", "onnx", "cohere", "jina", "tei"]
Transform: TypeAlias = Literal["auto", "offline", "none"]
DocsFusion: TypeAlias = Literal["weighted", "rrf"]
Similarity: TypeAlias = Literal["jaccard", "cosine"]
Recency: TypeAlias = float | Literal["auto"]
RecordedFeedback: TypeAlias = Literal["given", "all", "off"]
CodeProvider: TypeAlias = Literal["", "openai", "local", "none"]
SemanticMetric: TypeAlias = Literal["calibrated", "cosine"]
Metric: TypeAlias = Literal["calibrated", "cosine", "l2", "l2_squared", "inner_product"]

_ADDRESS: Final = address(
    "The address of a server other than the provider's own, for example an OpenAI-compatible server or Ollama."
)
_KEY_VARIABLE: Final = variable_of("the API key", "OPENAI_API_KEY")


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingSettings(Section):
    """The embedding model."""

    name: ClassVar[str] = "embedding"

    provider: Annotated[
        Provider,
        FieldSpec(
            "What computes vectors: static ships with sennit and needs no network; given takes those that come with the "
            "records; none disables vector search.",
            sensitive=("onnx", "openai", "ollama"),
        ),
    ] = "static"
    model: Annotated[
        str,
        FieldSpec(
            "The provider's name of the model, or the folder of an ONNX model; empty: the provider's default.",
            sensitive=True,
        ),
    ] = ""
    dimensions: Annotated[
        int | None,
        FieldSpec(
            "Keep this many leading dimensions and normalise again (for Matryoshka models).",
            minimum=1,
            maximum=65536,
        ),
    ] = None
    base_url: Annotated[str | None, _ADDRESS] = None
    api_key_env: Annotated[str | None, _KEY_VARIABLE] = None
    timeout: Annotated[
        float, FieldSpec("Seconds to wait for one response of a remote model.", minimum=0.001, maximum=3600)
    ] = 30.0
    retries: Annotated[int, FieldSpec("Retries when a remote model fails.", minimum=0, maximum=20)] = 3
    batch: Annotated[
        int | None,
        FieldSpec("Texts in one batch; by default the batch size of the model.", minimum=1, maximum=4096),
    ] = None
    query_prefix: Annotated[
        str, FieldSpec("A prefix for queries, for models that were trained with one.")
    ] = ""
    document_prefix: Annotated[
        str, FieldSpec("A prefix for the texts of records, for models that were trained with one.")
    ] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageSettings(Section):
    """The language model, which answers questions and turns them into keywords."""

    name: ClassVar[str] = "llm"

    provider: Annotated[
        LanguageProvider,
        FieldSpec(
            "What writes answers; with none, an answer consists of retrieved sentences.",
            sensitive=("anthropic", "openai", "ollama"),
        ),
    ] = "none"
    model: Annotated[str, FieldSpec("The provider's name of the model.", sensitive=True)] = ""
    base_url: Annotated[str | None, _ADDRESS] = None
    api_key_env: Annotated[str | None, _KEY_VARIABLE] = None
    timeout: Annotated[float, FieldSpec("Seconds for a whole answer.", minimum=0.001, maximum=3600)] = 60.0
    transform_timeout: Annotated[
        float,
        FieldSpec(
            "Seconds for turning a question into keywords; after that, the question is searched as it is.",
            minimum=0.001,
            maximum=600,
        ),
    ] = 3.0
    transform: Annotated[
        Transform,
        FieldSpec(
            "What turns a question into keywords for the vector search: auto takes the language model if one is "
            "configured, else the offline method."
        ),
    ] = "auto"
    retries: Annotated[int, FieldSpec("Retries within the time-out.", minimum=0, maximum=20)] = 2
    max_tokens: Annotated[
        int, FieldSpec("The maximum length of an answer in tokens.", minimum=1, maximum=100_000)
    ] = 1024
    prompt_characters: Annotated[
        int, FieldSpec("The maximum length of the system prompt in characters.", minimum=2000, maximum=10**6)
    ] = 24_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankSettings(Section):
    """The reranker of the stage `rerank`."""

    name: ClassVar[str] = "rerank"

    provider: Annotated[
        RerankProvider,
        FieldSpec(
            "What scores the candidates: a cross-encoder in ONNX format, or a server of the form of Cohere, Jina or "
            "text-embeddings-inference (tei).",
            sensitive=("onnx", "cohere", "jina", "tei"),
        ),
    ] = "none"
    model: Annotated[
        str, FieldSpec("The folder of an ONNX model, or the server's name of the model.", sensitive=True)
    ] = ""
    base_url: Annotated[str | None, address("The address of a server other than the provider's own.")] = None
    api_key_env: Annotated[str | None, variable_of("the API key", "COHERE_API_KEY")] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordSettings(Section):
    """BM25, as docs/ranking-contract.md states it."""

    name: ClassVar[str] = "keyword"

    k1: Annotated[
        float,
        FieldSpec("Term frequency saturation; with 0, repetition adds nothing.", minimum=0, maximum=100),
    ] = 1.2
    b: Annotated[
        float, FieldSpec("Length normalisation, from 0 (none) to 1 (full).", minimum=0, maximum=1)
    ] = 0.4
    title_weight: Annotated[
        float, FieldSpec("The weight of a term in the title.", minimum=0, maximum=1000)
    ] = 2.0
    text_weight: Annotated[float, FieldSpec("The weight of a term in the text.", minimum=0, maximum=1000)] = (
        1.0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings(Section):
    """Defaults of a search."""

    name: ClassVar[str] = "search"

    recipe: Annotated[
        str,
        FieldSpec("The recipe of a search that names none.", pattern=".+", expected="the name of a recipe"),
    ] = "default"
    limit: Annotated[
        int, FieldSpec("The number of results when no limit is given.", minimum=1, maximum=LIMIT.maximum)
    ] = 10
    deadline: Annotated[
        float,
        FieldSpec(
            "Seconds that a search waits for its sources; a source that takes longer is reported as missing.",
            minimum=0.001,
            maximum=600,
        ),
    ] = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSettings(Section):
    """The indexes of a database."""

    name: ClassVar[str] = "store"

    flush_at: Annotated[
        int,
        FieldSpec(
            "The number of buffered records at which an index flushes them into a segment.",
            minimum=1,
            maximum=10**6,
        ),
    ] = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivacySettings(Section):
    """Who may see what. By default, a search without a caller sees only the lowest level and the public scopes."""

    name: ClassVar[str] = "privacy"

    open: Annotated[
        bool,
        FieldSpec(
            "For a database with one user: a search without a caller sees every record.", sensitive=(True,)
        ),
    ] = False
    levels: Annotated[
        tuple[str, ...], FieldSpec("The sensitivity levels, the lowest first.", sensitive=True)
    ] = (
        "normal",
        "sensitive",
        "private",
    )
    everyone: Annotated[tuple[str, ...], FieldSpec("Scopes that every caller sees.", sensitive=True)] = (
        "public",
    )
    clearance: Annotated[
        str, FieldSpec("The clearance of a search without a caller; empty: the lowest level.", sensitive=True)
    ] = ""
    scopes: Annotated[
        tuple[str, ...], FieldSpec("Further scopes that a search without a caller sees.", sensitive=True)
    ] = ()
    tenant: Annotated[str, FieldSpec("The tenant of a search without a caller.", sensitive=True)] = ""
    exact_vectors: Annotated[
        bool,
        FieldSpec(
            "Vector search scans exactly the records that the caller may see, so hidden records cannot influence it; "
            "slower from 8,192 records on.",
            sensitive=(False,),
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackSettings(Section):
    """What is recorded about searches and about what people do with the results."""

    name: ClassVar[str] = "feedback"

    record: Annotated[
        RecordedFeedback,
        FieldSpec(
            "Which searches are recorded, with their query: given, those that a caller gives feedback about; all, every "
            "search; off, none, and feedback is refused.",
            sensitive=("all",),
        ),
    ] = "given"
    days: Annotated[
        int, FieldSpec("Days after which what was recorded is removed.", minimum=1, maximum=3650)
    ] = 90
    features: Annotated[
        bool,
        FieldSpec(
            "Record the features of what was shown too, for learning; every search is then computed with its trace."
        ),
    ] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DocsSettings(Section):
    """The recipe `docs`: pages of documentation, with the code in an editor as context."""

    name: ClassVar[str] = "docs"

    fusion: Annotated[
        DocsFusion, FieldSpec("weighted adds weighted similarities; rrf adds reciprocal ranks.")
    ] = "weighted"
    vector_weight: Annotated[
        float, FieldSpec("The weight of the vector similarity.", minimum=0, maximum=100)
    ] = 0.7
    keyword_weight: Annotated[
        float, FieldSpec("The weight of the keyword similarity.", minimum=0, maximum=100)
    ] = 0.3
    extra_candidates: Annotated[
        int, FieldSpec("Candidates that each source fetches beyond the limit.", minimum=0, maximum=1000)
    ] = 5
    examples_shorter_than: Annotated[
        int,
        FieldSpec(
            "The examples of a page are included if they have fewer characters.", minimum=0, maximum=10**6
        ),
    ] = 500
    editor_keywords: Annotated[
        int,
        FieldSpec(
            "The maximum number of keywords from the editor that augment a question.", minimum=0, maximum=100
        ),
    ] = 10
    editor_weight: Annotated[
        float, FieldSpec("The weight of the editor keywords; the question has 1.", minimum=0, maximum=10)
    ] = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestSettings(Section):
    """Which files of a folder are indexed."""

    name: ClassVar[str] = "ingest"

    default_ignores: Annotated[
        bool,
        FieldSpec(
            "Ignore virtual environments, installed packages, caches, build output, lock files and generated files."
        ),
    ] = True
    exclude: Annotated[
        tuple[str, ...], FieldSpec("Files and folders that are not indexed: patterns as in .gitignore.")
    ] = ()
    max_bytes: Annotated[int, FieldSpec("Larger files are skipped.", minimum=1, maximum=2**40)] = (
        32 * 1024 * 1024
    )
    unused_vector_days: Annotated[
        float,
        FieldSpec(
            "How many days the vector of a text that has left the files is kept, in case a branch brings it back.",
            minimum=0,
            maximum=36500,
        ),
    ] = 14.0
    unused_vector_bytes: Annotated[
        int,
        FieldSpec(
            "How many bytes of such vectors are kept at most; the oldest are deleted first.",
            minimum=0,
            maximum=2**50,
        ),
    ] = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSettings(Section):
    """The recipe `files`: the folders that may be searched and read, and the distance threshold."""

    name: ClassVar[str] = "files"

    folders: Annotated[
        tuple[str, ...],
        FieldSpec(
            "Folders that grep and read may open; empty: the indexed folders, or else the one that holds .sennit.",
            sensitive=True,
        ),
    ] = ()
    metric: Annotated[
        Metric,
        FieldSpec(
            "The distance: calibrated means the same for every model, with 95 % of true answers below 0.5; cosine is "
            "1 - cos, inner_product is 1 - dot, l2 is the length of the difference, l2_squared is its square."
        ),
    ] = "calibrated"
    vector_score_threshold: Annotated[
        float, FieldSpec("Chunks at this distance or farther are discarded.", minimum=0, maximum=4)
    ] = 0.5
    sensitivity: Annotated[str, FieldSpec("The sensitivity level of files that are not indexed.")] = "normal"
    scope: Annotated[str, FieldSpec("The scope of files that are not indexed.")] = "public"


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactsSettings(Section):
    """The recipe `artifacts`: several collections in one ranking."""

    name: ClassVar[str] = "artifacts"

    rrf_constant: Annotated[
        int,
        FieldSpec(
            "k in 1 / (k + rank), rank from 0.", minimum=1, maximum=10_000, plain_variable="RRF_CONSTANT"
        ),
    ] = 60
    overfetch_multiplier: Annotated[
        int,
        FieldSpec(
            "Each collection fetches this many times the limit.",
            minimum=1,
            maximum=100,
            plain_variable="OVERFETCH_MULTIPLIER",
        ),
    ] = 3
    max_hybrid_search_results: Annotated[
        int,
        FieldSpec(
            "The largest limit of a search.",
            minimum=1,
            maximum=LIMIT.maximum,
            plain_variable="MAX_HYBRID_SEARCH_RESULTS",
        ),
    ] = 50
    sources: Annotated[
        tuple[str, ...],
        FieldSpec("How each collection is searched; each way gives a list.", items=("vector", "keyword")),
    ] = ("vector", "keyword")
    collections: Annotated[tuple[str, ...], FieldSpec("Collections that are always searched.")] = (
        "artifacts",
        "artifact_chunks",
    )
    on_request: Annotated[tuple[str, ...], FieldSpec("Collections that are searched on request.")] = (
        "memory",
        "history",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings(Section):
    """The recipe `memory`: conversations and facts, with decay over time."""

    name: ClassVar[str] = "memory"

    rrf_constant: Annotated[
        int, FieldSpec("k in 1 / (k + rank), rank from 1.", minimum=1, maximum=10_000)
    ] = 60
    keyword_overfetch: Annotated[
        float, FieldSpec("Keyword candidates per result.", minimum=0.1, maximum=100)
    ] = 4.0
    vector_overfetch: Annotated[
        float, FieldSpec("Vector candidates per result.", minimum=0.1, maximum=100)
    ] = 2.0
    graph_overfetch: Annotated[float, FieldSpec("Facts per result.", minimum=0.1, maximum=100)] = 1.0
    look_back_hours: Annotated[
        float, FieldSpec("The default look-back window in hours.", minimum=0.01, maximum=LOOK_BACK.maximum)
    ] = 168.0
    half_life_days: Annotated[
        float, FieldSpec("The half-life of a score in days.", minimum=0.01, maximum=1e6)
    ] = 30.0
    recency: Annotated[
        Recency,
        FieldSpec(
            "How much age counts: 1 multiplies a score by its decay factor, 0 ignores age; auto is 0.1, and 1 where "
            "the question asks for what is recent.",
            minimum=0,
            maximum=1,
        ),
    ] = "auto"
    evergreen: Annotated[tuple[str, ...], FieldSpec("Kinds that do not decay below the floor.")] = (
        "person",
        "place",
        "relationship",
    )
    evergreen_floor: Annotated[
        float, FieldSpec("The floor of the decay factor for evergreen kinds.", minimum=0, maximum=1)
    ] = 0.3
    mmr_lambda: Annotated[
        float, FieldSpec("MMR: 1 is relevance alone, 0 is diversity alone.", minimum=0, maximum=1)
    ] = 0.7
    mmr_depth: Annotated[
        int, FieldSpec("The number of best results that MMR reorders.", minimum=1, maximum=1000)
    ] = 20
    mmr_similarity: Annotated[
        Similarity, FieldSpec("The similarity that MMR uses: shared words (jaccard) or vectors (cosine).")
    ] = "jaccard"
    evidence: Annotated[
        bool,
        FieldSpec(
            "With enough candidates, order by scores and by neighbouring turns; see docs/reference/recipe-memory.md."
        ),
    ] = True
    neighbour_share: Annotated[
        float,
        FieldSpec(
            "The share of the best neighbouring turn's evidence that a turn gains.", minimum=0, maximum=1
        ),
    ] = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class HydrationSettings(Section):
    """Plans of code for a prompt: entities that the query names, then semantic candidates, within a budget."""

    name: ClassVar[str] = "hydration"

    enable_file_mention_anchors: Annotated[bool, FieldSpec("Anchor the files that the query names.")] = True
    enable_symbol_mention_anchors: Annotated[
        bool, FieldSpec("Anchor the symbols that the query names, their types, callers and callees.")
    ] = True
    enable_previous_hydration_anchors: Annotated[
        bool, FieldSpec("Anchor the entities of earlier turns of the episode.")
    ] = True
    enable_semantic_ranking: Annotated[
        bool, FieldSpec("Add semantic candidates, or else keyword candidates, within the rest of the budget.")
    ] = True
    semantic_threshold: Annotated[
        float,
        FieldSpec(
            "Candidates have a similarity to the query above this.",
            minimum=-1,
            maximum=1,
        ),
    ] = 0.7
    semantic_metric: Annotated[
        SemanticMetric,
        FieldSpec(
            "The scale of the threshold: calibrated, the same for every model, or cosine, the model's own."
        ),
    ] = "calibrated"
    semantic_budget_tokens: Annotated[
        int,
        FieldSpec(
            "The most tokens of semantic candidates, and of a whole plan without max_tokens.",
            minimum=1,
            maximum=10**7,
        ),
    ] = 4000
    semantic_budget_entities: Annotated[
        int,
        FieldSpec(
            "The most semantic candidates of a plan; max_entities overrides it.", minimum=1, maximum=10_000
        ),
    ] = 10
    embedding_provider: Annotated[
        CodeProvider,
        FieldSpec(
            "Which vectors are used: empty for those of the database, openai or local for these only, none for none."
        ),
    ] = ""
    embedding_model: Annotated[str, FieldSpec("Use only the vectors of this model; empty: any model.")] = ""
    embedding_cache_ttl: Annotated[
        int,
        FieldSpec(
            "Seconds for which the query vector of a remote model is cached.", minimum=0, maximum=10**9
        ),
    ] = 86400


SECTIONS: Final = (
    EmbeddingSettings,
    LanguageSettings,
    RerankSettings,
    KeywordSettings,
    SearchSettings,
    StoreSettings,
    PrivacySettings,
    FeedbackSettings,
    DocsSettings,
    IngestSettings,
    FilesSettings,
    ArtifactsSettings,
    MemorySettings,
    HydrationSettings,
)
