"""The request bodies, as pydantic models that validate and document them. The caller's identity is not part of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from sennit.apps.http.limits import (
    MAX_BATCH_ITEMS,
    MAX_EDITOR_CHARACTERS,
    MAX_KEYWORDS,
    MAX_QUERY_CHARACTERS,
)
from sennit.engine.hydration_service import MAX_PLAN_ENTITIES, MAX_PLAN_TOKENS
from sennit.engine.search_planner import MAX_NEIGHBOURS
from sennit.facts import MAX_WEIGHT
from sennit.recipes.recipe import MAX_LIMIT
from sennit.records import MAX_ID_BYTES

MAX_INT64: Final = (1 << 63) - 1
"""The largest integer that SQLite stores."""

Name = Annotated[str, Field(min_length=1, max_length=MAX_ID_BYTES)]
Query = Annotated[
    str, Field(max_length=MAX_QUERY_CHARACTERS, description="A question or a few words, in any language.")
]
Limit = Annotated[
    int, Field(ge=1, le=MAX_LIMIT, description="Maximum number of results. Default: the recipe's limit.")
]
Timestamp = Annotated[
    str | int | float, Field(description="ISO 8601, or seconds since 1970. Without a time zone: UTC.")
]
Metadata = Annotated[dict[str, Any], Field(description="Further fields, which filters can use.")]
Filters = Annotated[
    dict[str, Any] | str,
    Field(
        description='Return only records that match: {"kind": "note", "timestamp": {"gte": "2026-01-01"}}, or as text '
        "`kind = 'note' and timestamp >= 2026-01-01`."
    ),
]
Recipe = Annotated[
    str,
    Field(
        min_length=1, max_length=200, description="The recipe to search with. Default: the service's recipe."
    ),
]
Sensitivity = Annotated[Name, Field(description="A sensitivity level that you are cleared for.")]
Scope = Annotated[Name, Field(description="Who may see the record: one of your scopes, or `public`.")]


class RequestBody(BaseModel):
    """The base of every body. Values are not coerced, and an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class SearchBody(RequestBody):
    """A search."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "when did we pick March?", "limit": 5},
                {"query": "vineyard", "filters": {"artifact_type": "report"}, "explain": True},
            ]
        }
    )

    query: Query
    recipe: Recipe | None = None
    limit: Limit | None = None
    filters: Filters | None = None
    include: Annotated[
        list[Name],
        Field(max_length=100, description="Optional collections of the recipe to search as well."),
    ] = []
    keywords: (
        Annotated[
            list[str],
            Field(
                max_length=MAX_KEYWORDS,
                description="Texts to match exactly. Default: extracted from the query.",
            ),
        ]
        | None
    ) = None
    neighbours: Annotated[
        int,
        Field(
            ge=0, le=MAX_NEIGHBOURS, description="Chunks to add before and after each chunk that is found."
        ),
    ] = 0
    explain: Annotated[bool, Field(description="Return what every stage did to every candidate.")] = False


class AskBody(RequestBody):
    """A question to answer in words."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "How do I retry a job?"},
                {"query": "what is wrong here?", "editor": "@task(retry=3)\ndef send(): ...", "stream": True},
            ]
        }
    )

    query: Query
    recipe: Annotated[Recipe, Field(description="The recipe to search with. Default: `docs`.")] | None = None
    limit: (
        Annotated[Limit, Field(description="Maximum number of sections to answer from. Default: 5.")] | None
    ) = None
    filters: Filters | None = None
    editor: (
        Annotated[
            str, Field(max_length=MAX_EDITOR_CHARACTERS, description="The code open in the user's editor.")
        ]
        | None
    ) = None
    language: (
        Annotated[Name, Field(description="The programming language of `editor`. Default: detected.")] | None
    ) = None
    transform: Annotated[
        bool, Field(description="Whether a language model rewrites the question for the vector search.")
    ] = True
    write: Annotated[
        bool,
        Field(description="False: return the `prompt` and the sources, without generating an answer."),
    ] = True
    stream: Annotated[bool, Field(description="Stream the answer as server-sent events.")] = False


class PlanBody(RequestBody):
    """A request for the code that belongs in a prompt."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "Fix the authentication bug in auth.go", "max_tokens": 4000}]
        }
    )

    query: Query
    episode: (
        Annotated[
            Name,
            Field(
                description="Build on the earlier turns of this episode, and store the plan. Needs write access."
            ),
        ]
        | None
    ) = None
    max_tokens: (
        Annotated[int, Field(ge=1, le=MAX_PLAN_TOKENS, description="Default: from the settings.")] | None
    ) = None
    max_entities: (
        Annotated[int, Field(ge=1, le=MAX_PLAN_ENTITIES, description="Default: from the settings.")] | None
    ) = None
    allow_partial: Annotated[
        bool,
        Field(description="Shorten an entity that does not fit to its signature and most relevant lines."),
    ] = False


class NewRecord(RequestBody):
    """A record to store. It replaces a record with the same id."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": "m1",
                    "text": "We picked March for the trip.",
                    "collection": "memory",
                    "metadata": {"artifact_type": "note"},
                }
            ]
        }
    )

    id: Name
    text: str
    collection: Name = "default"
    title: str = ""
    kind: str = ""
    path: Annotated[str, Field(min_length=1)] | None = None
    url: Annotated[str, Field(min_length=1)] | None = None
    lines: (
        Annotated[list[Annotated[int, Field(ge=1, le=MAX_INT64)]], Field(min_length=2, max_length=2)] | None
    ) = None
    parent: Annotated[str, Field(min_length=1)] | None = None
    position: Annotated[int, Field(ge=0, le=MAX_INT64)] | None = None
    timestamp: Timestamp | None = None
    sensitivity: Sensitivity = "normal"
    scope: Scope = "public"
    metadata: Metadata = {}


class NewFact(RequestBody):
    """A fact to store: a subject, a relation and an object."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "subject": "Rajesh",
                    "relation": "planning",
                    "object": "Priya",
                    "text": "planning vacation to Goa in March",
                }
            ]
        }
    )

    subject: Name
    relation: Name
    object: Name
    text: Annotated[str, Field(description="The relation in words. Default: its name.")] = ""
    weight: Annotated[float, Field(ge=0, le=MAX_WEIGHT)] = 1.0
    timestamp: Annotated[Timestamp, Field(description="Valid from.")] | None = None
    superseded_at: Annotated[Timestamp, Field(description="Valid until.")] | None = None
    sources: Annotated[
        list[Name], Field(max_length=1000, description="Ids of the records the fact was extracted from.")
    ] = []
    supersedes: Annotated[
        list[Name],
        Field(max_length=1000, description="Ids of facts whose validity ends where this one begins."),
    ] = []
    kind: str = ""
    id: Annotated[str, Field(max_length=MAX_ID_BYTES)] = ""
    collection: Name = "facts"
    sensitivity: Sensitivity = "normal"
    scope: Scope = "public"
    metadata: Metadata = {}


class NewTurn(RequestBody):
    """A turn of a conversation to store."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "session": "2026-03-03",
                    "speaker": "Rajesh",
                    "text": "I told Priya we can do March for vacation",
                    "timestamp": "2026-03-03T18:00:00Z",
                    "entities": ["Priya"],
                    "position": 2,
                }
            ]
        }
    )

    session: Annotated[Name, Field(description="The conversation that the turn belongs to.")]
    text: str
    speaker: str = ""
    timestamp: Annotated[Timestamp, Field(description="When it was said. Default: now.")] | None = None
    entities: Annotated[list[Name], Field(max_length=1000, description="Who and what it mentions.")] = []
    position: (
        Annotated[
            int,
            Field(
                ge=0,
                le=MAX_INT64,
                description="The turn's position in the conversation, which determines its neighbours.",
            ),
        ]
        | None
    ) = None
    kind: str = ""
    id: Annotated[
        str,
        Field(
            max_length=MAX_ID_BYTES,
            description="Default: a hash of the other fields, so that a repeated turn is stored once.",
        ),
    ] = ""
    sensitivity: Sensitivity = "normal"
    scope: Scope = "public"
    metadata: Metadata = {}


Item = TypeVar("Item")


def _tag(value: Any) -> str:
    return "many" if isinstance(value, list) else "one"


OneOrMany = Annotated[
    Annotated[Item, Tag("one")]
    | Annotated[list[Item], Field(min_length=1, max_length=MAX_BATCH_ITEMS), Tag("many")],
    Discriminator(_tag),
]
"""An item, or a list of items."""


def as_list(given: Item | Sequence[Item]) -> list[Item]:
    """The items of a OneOrMany body."""
    return list(given) if isinstance(given, list) else [given]  # type: ignore[list-item]
