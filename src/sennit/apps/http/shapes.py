"""What callers are answered, as it is documented. Answers are built from the engine's own values, not through these."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from sennit.apps.http.errors import CODES


class Shape(BaseModel):
    """An object with these fields, perhaps with further ones in a later version."""

    model_config = ConfigDict(extra="allow")


class ErrorDetail(Shape):
    """What went wrong."""

    code: Literal[tuple(CODES.values())]  # type: ignore[valid-type]
    message: str
    request_id: str


class Error(Shape):
    """Every error has this form."""

    error: ErrorDetail


class Missing(Shape):
    """A source that did not answer; the others did."""

    source: str
    reason: str


class Found(Shape):
    """A result: its place, and the record."""

    rank: Annotated[int, Field(ge=1)]
    score: float
    citation: Annotated[str, Field(description="Where the text is: path with lines, address, or id.")]
    sources: Annotated[list[str], Field(description="The lists that found it.")]
    id: str
    text: str
    title: str
    collection: str
    kind: str
    timestamp: str | None
    sensitivity: str
    scope: str
    metadata: dict[str, Any]
    passage: Annotated[str, Field(description="The text with its neighbours, where they were asked for.")] = (
        ""
    )
    explanation: Annotated[dict[str, Any], Field(description="With `explain`: why it is where it is.")] = {}


class SearchAnswer(Shape):
    """Results in order, and which sources were missing."""

    query: str
    recipe: str
    status: Annotated[str, Field(examples=["1,234 characters, 5 chunks found, 4 ms"])]
    milliseconds: float
    hits: list[Found]
    degraded: Annotated[list[Missing], Field(description="Empty when every source answered.")]
    trace: Annotated[dict[str, Any], Field(description="With `explain`: what every stage did.")] = {}


class Cited(Shape):
    """A passage that an answer cites by its number."""

    number: Annotated[int, Field(ge=1)]
    id: str
    title: str
    place: Annotated[str, Field(description="Path with lines, address, or id.")]
    url: str | None


class FoundPage(Shape):
    """A page of which something was found."""

    name: str
    url: str | None
    score: float
    chunks: Annotated[list[dict[str, Any]], Field(description="Its records, in order.")]


class AskAnswer(Shape):
    """An answer in words, and where each statement is from."""

    query: str
    text: str
    citations: Annotated[list[Cited], Field(description="Those that the text has.")]
    removed_citations: Annotated[
        list[int], Field(description="Numbers that the model cited and that are no passage.")
    ]
    model: Annotated[
        str | None,
        Field(description="Who wrote it; null: it is put together from sentences that were found."),
    ]
    pages: Annotated[list[FoundPage], Field(description="What it was answered from.")]
    examples: list[Found]
    degraded: Annotated[list[Missing], Field(description="Empty when everything answered.")]
    editor_keywords: list[str]
    transform: Annotated[dict[str, Any], Field(description="How the question was put to the search.")]
    milliseconds: float
    prompt: Annotated[str, Field(description="With `write` false: the system prompt.")] = ""


class Remembered(Shape):
    """Something said or known."""

    id: str
    text: str
    source_session: str | None
    timestamp: str | None
    relevance_score: float
    entities: list[str]
    speaker: Annotated[str | None, Field(description="Null for a fact: nobody said it, it is known.")]
    kind: str
    citation: str


class ContextAnswer(Shape):
    """What is remembered, the best first."""

    query: str
    recipe: str
    milliseconds: float
    results: list[Remembered]
    degraded: list[Missing]


class Standing(Shape):
    """How a record stood in one source."""

    source: str
    rank: int | None
    score: float | None
    share: float


class WhyAnswer(Shape):
    """The stage and the number that decided."""

    id: str
    kept: bool
    stage: str
    reason: str
    number: float | None
    needed: float | None
    rank: int | None
    sources: list[Standing]
    degraded: list[Missing]


class PlannedEntity(Shape):
    """An entity of code in a plan."""

    key: Annotated[str, Field(description="`path::Outer.inner`.")]
    reason: Annotated[str, Field(examples=["anchor:explicit_file_mention", "semantic:0.85"])]
    priority: Annotated[int, Field(description="Of an anchor; 0 for what is near the question.")]
    tokens: int
    position: Annotated[int, Field(ge=1)]
    path: str
    lines: list[int] | None
    preview: Annotated[str, Field(description="The first 200 characters.")]
    partial: Annotated[bool, Field(description="Whether parts of it are left out.")]
    text: Annotated[str, Field(description="As the prompt has it; not in an introspection.")] = ""


class DroppedEntity(Shape):
    """An entity that was wanted and is not in the plan."""

    key: str
    wanted: Annotated[str, Field(description="The reason it would have had.")]
    reason: Annotated[str, Field(description="Why it is not there.")]
    tokens: int


class Warned(Shape):
    """What went less well than it could."""

    code: str
    message: str
    key: Annotated[str, Field(description="The entity it is about, or empty.")]


class Planned(Shape):
    """What goes into a prompt, in order, and what does not."""

    query: str
    episode: str
    turn: Annotated[int, Field(description="From 1 within an episode; 0 without one.")]
    max_tokens: int
    max_entities: int
    tokenizer: Annotated[str, Field(description="What counted the tokens; `estimate`: nothing did.")]
    tokens: int
    entries: list[PlannedEntity]
    dropped: list[DroppedEntity]
    warnings: list[Warned]


class PlanAnswer(Planned):
    """A plan, and the block for the prompt."""

    prompt: str


class Replayed(Shape):
    """What the same question would bring today, by key."""

    added: list[str]
    removed: list[str]
    changed: list[str]


class IntrospectionAnswer(Planned):
    """A plan of an episode."""

    turns: Annotated[list[int], Field(description="The turns that there are.")]
    replay: Annotated[Replayed | None, Field(description="With `replay`.")] = None


class Kept(Shape):
    """What a write came to; it is durable, and the next search sees it."""

    added: int
    updated: int
    unchanged: int
    ids: list[str]


class Removed(Shape):
    """How many records are gone: the one that was named, and the fragments of it."""

    removed: Annotated[int, Field(ge=1)]


class Alive(Shape):
    """The process answers."""

    status: Literal["alive"]


class Backlog(Shape):
    """How far the vectors of an embedding model are."""

    model: str
    state: str
    waiting: Annotated[int, Field(description="Records without a vector yet.")]
    records: Annotated[int, Field(description="Records that are to have one.")]
    share: Annotated[float, Field(ge=0, le=1)]


class Ready(Shape):
    """Whether searches are answered, and how completely."""

    status: Literal["ready"]
    database: Literal["open"]
    vectors: Annotated[
        Literal["complete", "building", "none", "off"],
        Field(description="`building`: records still wait for one; the keyword source has them already."),
    ]
    models: Annotated[list[Backlog], Field(description="For callers with a token.")] = []
    last_error: Annotated[
        str | None, Field(description="Of the background work; for callers with a token.")
    ] = None


PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Error, "description": code.replace("_", " ")}
    for status, code in CODES.items()
    if status in (400, 401, 404, 408, 413, 415, 421, 422, 429, 500, 503, 504)
}
"""What any address may answer besides what it is for."""
