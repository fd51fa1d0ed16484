"""The response bodies, as pydantic models that document them. The serializers build the JSON without these models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sennit.apps.http.errors import ERROR_CODES


class ResponseModel(BaseModel):
    """The base of every response. A later version may add fields."""

    model_config = ConfigDict(extra="allow")


class ErrorDetail(ResponseModel):
    """What went wrong."""

    code: Literal[tuple(ERROR_CODES.values())]  # type: ignore[valid-type]
    message: str
    request_id: str


class ErrorResponse(ResponseModel):
    """The format of every error."""

    error: ErrorDetail


class DegradedSource(ResponseModel):
    """A source that failed. The response is built from the others."""

    source: str
    reason: str


class HintResponse(ResponseModel):
    """Why nothing was found, or what would find something."""

    code: str
    message: str
    command: Annotated[str, Field(description="A command of the command line; may be empty.")]


class ExcerptPart(ResponseModel):
    """A part of a line."""

    text: str
    match: Annotated[bool, Field(description="Whether it is a word of the query.")]


class ExcerptLineResponse(ResponseModel):
    """A line of an excerpt."""

    number: Annotated[int | None, Field(description="The line of the file; null if the text has no lines.")]
    verbatim: Annotated[bool, Field(description="Whether it is a line of the text; if not, its sentences.")]
    parts: list[ExcerptPart]


class HitResponse(ResponseModel):
    """A record that was found, with its rank and score."""

    rank: Annotated[int, Field(ge=1)]
    relevance: Annotated[
        float, Field(ge=0, le=1, description="The calibrated chance that it answers the query.")
    ]
    fits: Annotated[bool, Field(description="Whether it is relevant enough to count as an answer.")]
    score: Annotated[float, Field(description="What the hits are ordered by. Its scale is the recipe's.")]
    citation: Annotated[str, Field(description="Where the text is from: path with lines, URL, or id.")]
    sources: Annotated[list[str], Field(description="The candidate lists that contain it.")]
    id: str
    text: str
    title: str
    collection: str
    kind: str
    timestamp: str | None
    sensitivity: str
    scope: str
    metadata: dict[str, Any]
    project: Annotated[str, Field(description="The indexed folder that it comes from, by name.")] = ""
    revision: Annotated[
        str, Field(description="The git revision that was indexed, such as `main@1a2b3c4d-dirty`.")
    ] = ""
    passage: Annotated[
        str, Field(description="The text with its neighbours, if the request asked for them.")
    ] = ""
    excerpt: Annotated[
        list[ExcerptLineResponse], Field(description="With `excerpts`: what fits the query best.")
    ] = []
    explanation: Annotated[
        dict[str, Any], Field(description="With `explain`: how the record got its rank.")
    ] = {}


class SearchResponse(ResponseModel):
    """The hits, best first, and the sources that failed."""

    query_id: Annotated[str, Field(description="The id of this search, which feedback about it names.")]
    query: str
    recipe: str
    status: Annotated[str, Field(examples=["1,234 characters, 5 chunks found, 4 ms"])]
    milliseconds: float
    fits: Annotated[bool, Field(description="Whether any hit is relevant enough to count as an answer.")]
    hits: list[HitResponse]
    degraded: Annotated[list[DegradedSource], Field(description="Empty if every source answered.")]
    hints: Annotated[
        list[HintResponse], Field(description="Without hits: why, and what would find something.")
    ] = []
    project: Annotated[str, Field(description="The project that the search was limited to.")] = ""
    trace: Annotated[dict[str, Any], Field(description="With `explain`: what every stage did.")] = {}


class FeedbackResponse(ResponseModel):
    """What was recorded."""

    recorded: Annotated[int, Field(ge=0, description="How many actions were recorded.")]


class ForgottenResponse(ResponseModel):
    """What was removed."""

    removed: Annotated[int, Field(ge=0, description="How many searches were removed, with their feedback.")]


class FeedbackExportResponse(ResponseModel):
    """Recorded searches and what was done with their results, as User Behavior Insights has them."""

    queries: list[dict[str, Any]]
    events: list[dict[str, Any]]


class RecordResponse(ResponseModel):
    """A record with its citation."""

    id: str
    citation: Annotated[str, Field(description="Where the text is from: path with lines, URL, or id.")]
    text: str
    title: str
    collection: str
    kind: str
    timestamp: str | None
    sensitivity: str
    scope: str
    metadata: dict[str, Any]


class RecordsResponse(ResponseModel):
    """One page of records, in the order of their ids."""

    records: list[RecordResponse]
    total: Annotated[int, Field(description="How many records match, on all pages.")]
    next: Annotated[str | None, Field(description="The `after` of the next page; null on the last one.")]


class NamedCountResponse(ResponseModel):
    """A collection or a session, and how many records it has."""

    name: str
    records: int


class CollectionsResponse(ResponseModel):
    """The collections, the largest first."""

    collections: list[NamedCountResponse]


class ProjectResponse(ResponseModel):
    """An indexed folder that a search can be limited to."""

    name: Annotated[str, Field(description="Its name, which `project` of a request takes.")]
    path: str
    revision: Annotated[
        dict[str, Any] | None,
        Field(description="The git commit that was indexed: `commit`, `branch`, and whether it was `dirty`."),
    ]


class ProjectsResponse(ResponseModel):
    """The projects, by name."""

    projects: list[ProjectResponse]


class SessionsResponse(ResponseModel):
    """The sessions, by name."""

    sessions: list[NamedCountResponse]


class FolderResponse(ResponseModel):
    """An indexed folder."""

    project: Annotated[str, Field(description="Its name, which `project` of a request takes.")]
    revision: Annotated[
        dict[str, Any] | None,
        Field(description="The git commit that was indexed: `commit`, `branch`, and whether it was `dirty`."),
    ]
    path: str
    files: int
    records: int
    indexed_at: str | None


class ModelStatusResponse(ResponseModel):
    """An embedding model and its progress."""

    name: str
    state: str
    dimensions: int
    share: Annotated[float, Field(description="The share of records that have a vector, from 0 to 1.")]
    pending: Annotated[
        int | None, Field(description="Records without a vector; null unless the caller may see all records.")
    ]


class StatusResponse(ResponseModel):
    """What the database holds, as far as the caller may see it."""

    roles: Annotated[dict[str, str], Field(examples=[{"records": "sqlite", "keyword": "local"}])]
    records: int
    collections: list[NamedCountResponse]
    sessions: int
    folders: list[FolderResponse]
    models: list[ModelStatusResponse]
    pending_vectors: int
    last_error: str | None
    behind: Annotated[
        dict[str, int],
        Field(description="Changes that an index on a server has not applied yet. Only for the owner."),
    ]


class CitationResponse(ResponseModel):
    """A passage that an answer cites by number."""

    number: Annotated[int, Field(ge=1)]
    id: str
    title: str
    location: Annotated[str, Field(description="Path with lines, URL, or id.")]
    url: str | None
    project: Annotated[str, Field(description="The indexed folder that it comes from, by name.")]
    revision: Annotated[str, Field(description="The git revision that was indexed.")]


class PageResponse(ResponseModel):
    """A page with at least one hit."""

    name: str
    url: str | None
    score: float
    chunks: Annotated[list[dict[str, Any]], Field(description="Its records, in order.")]


class AskResponse(ResponseModel):
    """A generated answer with its citations."""

    query_id: Annotated[str, Field(description="The id of the search that the answer is made from.")]
    query: str
    text: str
    citations: Annotated[list[CitationResponse], Field(description="The passages that the text cites.")]
    removed_citations: Annotated[
        list[int], Field(description="Numbers that the model cited and that match no passage.")
    ]
    model: Annotated[
        str | None,
        Field(description="The model that wrote the text; null if it is made of sentences that were found."),
    ]
    pages: Annotated[list[PageResponse], Field(description="The pages that the answer is based on.")]
    examples: list[HitResponse]
    degraded: Annotated[list[DegradedSource], Field(description="Empty if nothing failed.")]
    editor_keywords: list[str]
    transform: Annotated[
        dict[str, Any], Field(description="How the question was rewritten for the vector search.")
    ]
    milliseconds: float
    prompt: Annotated[str, Field(description="With `write` false: the system prompt.")] = ""


class ContextItem(ResponseModel):
    """A turn of a conversation, or a fact."""

    id: str
    text: str
    source_session: str | None
    timestamp: str | None
    relevance: Annotated[
        float, Field(ge=0, le=1, description="The calibrated chance that it answers the query.")
    ]
    relevance_score: Annotated[float, Field(description="What the results are ordered by.")]
    entities: list[str]
    speaker: Annotated[str | None, Field(description="Null for a fact, which has no speaker.")]
    kind: str
    citation: str
    characters: Annotated[int, Field(description="Characters of its line in the block.")]
    shortened: Annotated[bool, Field(description="Whether the line has only the beginning of the text.")]
    in_block: Annotated[bool, Field(description="Whether the block has room for it.")]


class ContextResponse(ResponseModel):
    """What is remembered about a query, best first, and the same as a block for a system prompt."""

    query: str
    recipe: str
    milliseconds: float
    fits: Annotated[bool, Field(description="Whether any result is relevant enough to count as an answer.")]
    results: list[ContextItem]
    block: Annotated[str, Field(description="Empty if nothing is found.")]
    max_characters: Annotated[int, Field(description="The longest that a block can be.")]
    degraded: list[DegradedSource]


class SourceScore(ResponseModel):
    """The rank and score of a record in one source."""

    source: str
    rank: int | None
    score: float | None
    share: float


class WhyResponse(ResponseModel):
    """The stage and the number that decided about a record."""

    id: str
    kept: bool
    stage: str
    reason: str
    number: float | None
    needed: float | None
    rank: int | None
    sources: list[SourceScore]
    degraded: list[DegradedSource]


class ChangeResponse(ResponseModel):
    """A change of a search that admits a record. The changed search was run."""

    kind: Literal["limit", "weight", "filter", "threshold", "caller"]
    name: str
    before: Any
    after: Any
    message: str
    rank: Annotated[int, Field(description="The rank of the record in the changed search.")]


class AdmissionResponse(ResponseModel):
    """Why a record is in a result or not, and the smallest changes that would admit it."""

    record: RecordResponse
    why: WhyResponse
    changes: list[ChangeResponse]
    tried: Annotated[int, Field(description="How many changed searches were run.")]


class TrialResponse(SearchResponse):
    """The result of a search with a changed recipe."""

    similarity: Annotated[
        dict[str, Any] | None,
        Field(description="With the stage `mmr`: the Jaccard similarity of the first records, by `ids`."),
    ]


class JudgedQuery(ResponseModel):
    """A judged query, measured before and after a change, or by two recipes."""

    query: str
    before: float
    after: float
    first_changes: Annotated[bool, Field(description="Whether another record is first.")]


class JudgedTrialResponse(ResponseModel):
    """nDCG@10 before and after a change, or of two recipes, over the queries that the caller has judged."""

    before: float
    after: float
    queries: list[JudgedQuery]


class SourceTextResponse(ResponseModel):
    """The lines of a file around a record, or the stored text of the record."""

    path: str
    text: str
    first_line: int
    file: Annotated[bool, Field(description="Whether the text is from the file.")]
    problem: Annotated[str, Field(description="Why the file could not be read; empty if it could.")]


class PlanEntry(ResponseModel):
    """A code entity in a plan."""

    key: Annotated[str, Field(description="`path::Outer.inner`.")]
    reason: Annotated[str, Field(examples=["anchor:explicit_file_mention", "semantic:0.85"])]
    priority: Annotated[
        int, Field(description="The priority of an anchor; the score of a candidate in percent.")
    ]
    tokens: int
    position: Annotated[int, Field(ge=1)]
    path: str
    lines: list[int] | None
    preview: Annotated[str, Field(description="The first 200 characters.")]
    partial: Annotated[bool, Field(description="Whether it is shortened.")]
    text: Annotated[str, Field(description="The text in the prompt. Not part of an introspection.")] = ""


class DroppedPlanEntry(ResponseModel):
    """A code entity that is not in the plan although it was selected."""

    key: str
    selection_reason: Annotated[str, Field(description="Why it was selected.")]
    reason: Annotated[str, Field(description="Why it was dropped.")]
    tokens: int


class PlanWarning(ResponseModel):
    """A problem that makes the plan worse than it could be."""

    code: str
    message: str
    key: Annotated[str, Field(description="The entity that the warning is about, or empty.")]


class PlanBase(ResponseModel):
    """The entities of a prompt, in order, and those that were dropped."""

    query: str
    episode: str
    turn: Annotated[int, Field(description="From 1 within an episode; 0 without one.")]
    max_tokens: int
    max_entities: int
    tokenizer: Annotated[
        str, Field(description="The tokenizer that counted the tokens; `estimate` without one.")
    ]
    tokens: int
    entries: list[PlanEntry]
    dropped: list[DroppedPlanEntry]
    warnings: list[PlanWarning]


class PlanResponse(PlanBase):
    """A plan, and the block for the prompt."""

    prompt: str


class ReplayDifference(ResponseModel):
    """How the plan would differ today, by entity key."""

    added: list[str]
    removed: list[str]
    changed: list[str]


class IntrospectedEntity(ResponseModel):
    """A code entity of a stored plan."""

    entity_key: Annotated[str, Field(description="`path::Outer.inner`.")]
    reason: Annotated[str, Field(examples=["anchor:explicit_file_mention", "semantic:0.85"])]
    priority: Annotated[
        int, Field(description="The priority of an anchor; the score of a candidate in percent.")
    ]
    token_count: int
    included_at: Annotated[int, Field(ge=1, description="The position in the plan.")]
    content: Annotated[
        str, Field(description="The first 200 characters; empty if the entity has changed since or is gone.")
    ]
    content_hash: str
    partial: Annotated[bool, Field(description="Whether the plan has less than the whole entity.")]
    path: str
    lines: list[int] | None
    qualified: str
    language: str


class IntrospectedDrop(ResponseModel):
    """A code entity that was selected and dropped."""

    entity_key: str
    selection_reason: Annotated[str, Field(description="Why it was selected.")]
    reason: Annotated[str, Field(description="Why it was dropped.")]
    token_count: int


class IntrospectionResponse(ResponseModel):
    """A stored plan of an episode."""

    episode_id: str
    query: str
    turn: Annotated[int, Field(ge=1)]
    turns: Annotated[list[int], Field(description="All turns of the episode.")]
    max_tokens: int
    max_entities: int
    allow_partial: bool
    tokenizer: Annotated[
        str, Field(description="The tokenizer that counted the tokens; `estimate` without one.")
    ]
    token_count: Annotated[int, Field(description="The tokens of all entities.")]
    entities: list[IntrospectedEntity]
    dropped: list[IntrospectedDrop]
    warnings: list[PlanWarning]
    project: Annotated[
        list[str], Field(description="The projects that the plan is limited to; none for all.")
    ] = []
    replay: Annotated[ReplayDifference | None, Field(description="With `replay`.")] = None


class EpisodeTurnResponse(ResponseModel):
    """What one turn of an episode put into the prompt, in numbers."""

    turn: Annotated[int, Field(ge=1)]
    created: str
    query: str
    tokens: int
    max_tokens: int
    anchors: Annotated[int, Field(description="Entities that the query or the episode names.")]
    semantic: Annotated[int, Field(description="Entities that were found for the query.")]
    dropped: int


class EpisodeResponse(ResponseModel):
    """An episode and its turns, in order."""

    episode_id: str
    turns: list[EpisodeTurnResponse]


class EpisodesResponse(ResponseModel):
    """The episodes that the caller may see, the latest first."""

    episodes: list[EpisodeResponse]


class WriteResponse(ResponseModel):
    """The result of a write. The write is durable, and the next search sees it."""

    added: int
    updated: int
    unchanged: int
    ids: list[str]


class DeleteResponse(ResponseModel):
    """The number of removed records: the one that was named, and its chunks."""

    removed: Annotated[int, Field(ge=1)]


class SignInResponse(ResponseModel):
    """A token for the web page, valid until the service ends."""

    token: str


class OtherCaller(ResponseModel):
    """A caller whom the signed-in one may act for."""

    token: str
    clearance: str
    scopes: list[str]
    everything: bool


class CallerResponse(ResponseModel):
    """Who the token authenticates, or whom the request acts for."""

    token: Annotated[str, Field(description="The name of the token; empty where none is required.")]
    write: bool
    acting: Annotated[bool, Field(description="Whether the request acts for another caller.")]
    may_act: Annotated[
        bool, Field(description="Whether the signed-in caller may act for others of the tenant.")
    ]
    clearance: str
    scopes: list[str]
    everything: bool
    levels: Annotated[list[str], Field(description="The sensitivity levels, lowest first.")]
    saves_recipes: Annotated[bool, Field(description="Whether it may write recipes to the settings file.")]
    callers: Annotated[list[OtherCaller], Field(description="The tokens that it may act for.")]


class RecipeResponse(ResponseModel):
    """A recipe, as a table of sennit.toml."""

    name: str
    about: str
    sources: list[dict[str, Any]]
    fusion: dict[str, Any]
    stages: list[dict[str, Any]]


class RecipesResponse(ResponseModel):
    """Every recipe, and which one a search takes that names none."""

    default: str
    recipes: list[RecipeResponse]


class SavedRecipeResponse(ResponseModel):
    """A recipe as a table of sennit.toml, and whether it was saved."""

    name: str
    toml: str
    saved: bool
    file: Annotated[
        str | None,
        Field(description="The file it is written to; null if the caller may not save recipes here."),
    ]


class FieldsResponse(ResponseModel):
    """Names of fields, or values of one field with their number of records."""

    fields: list[str] = []
    values: list[NamedCountResponse] = []


class QuantilesResponse(ResponseModel):
    """Durations in milliseconds."""

    p50: Annotated[float, Field(description="The median.")]
    p95: float


class SourceHourResponse(QuantilesResponse):
    """A source in the last hour."""

    name: str
    searches: Annotated[int, Field(description="How often it was asked, of the searches that were kept.")]
    failed: int


class MinuteResponse(ResponseModel):
    """The searches of a minute."""

    minute: Annotated[int, Field(description="When it began, in seconds since 1970.")]
    searches: int
    p50: Annotated[float, Field(description="The median duration in milliseconds.")]
    p95: float
    degraded: Annotated[dict[str, int], Field(description="How often each source failed.")]
    sources: Annotated[
        dict[str, QuantilesResponse], Field(description="How long each source took that was asked.")
    ]


class StateResponse(ResponseModel):
    """The status, and the last hour of this process."""

    status: StatusResponse
    hour: list[MinuteResponse]
    sources: Annotated[list[SourceHourResponse], Field(description="Each source in the last hour.")]


class ReportResponse(ResponseModel):
    """A report for a bug, without credentials, addresses, paths, queries and records."""

    sennit: str
    python: str
    platform: str
    settings: dict[str, Any]
    hour: list[MinuteResponse]
    sources: list[SourceHourResponse]


class HealthResponse(ResponseModel):
    """The process responds."""

    status: Literal["alive"]


class EmbeddingProgress(ResponseModel):
    """How many records have a vector of one embedding model."""

    model: str
    state: str
    pending: Annotated[int, Field(description="Records without a vector yet.")]
    total: Annotated[int, Field(description="Records that need a vector.")]
    progress: Annotated[float, Field(ge=0, le=1, description="The fraction of records that have a vector.")]


class ReadinessResponse(ResponseModel):
    """Whether the service can search, and whether all vectors are built."""

    status: Literal["ready"]
    database: Literal["open"]
    vectors: Annotated[
        Literal["complete", "building", "none", "off"],
        Field(
            description="`building`: some records have no vector yet. The keyword source finds them already."
        ),
    ]
    models: Annotated[list[EmbeddingProgress], Field(description="Only with a token.")] = []
    last_error: Annotated[
        str | None, Field(description="The last error of the background maintenance. Only with a token.")
    ] = None
    roles: Annotated[dict[str, str], Field(description="What each role is bound to. Only with a token.")] = {}
    behind: Annotated[
        dict[str, int],
        Field(description="Changes that an index on a server has not applied yet. Only with a token."),
    ] = {}


ERROR_RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": code.replace("_", " ")}
    for status, code in ERROR_CODES.items()
    if status in (400, 401, 404, 408, 413, 415, 421, 422, 429, 500, 503, 504)
}
"""The errors that any route may return."""
