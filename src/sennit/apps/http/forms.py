"""What callers send, as the service checks and documents it. Who they are is no part of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from sennit.apps.http.limits import MAX_BATCH, MAX_EDITOR, MAX_KEYWORDS, MAX_QUERY
from sennit.engine.hydration import MOST_ENTITIES, MOST_TOKENS
from sennit.engine.planning import MAX_NEIGHBOURS
from sennit.facts import MAX_WEIGHT
from sennit.recipes.values import MAX_LIMIT
from sennit.records import MAX_ID_BYTES

LARGEST: Final = (1 << 63) - 1

Name = Annotated[str, Field(min_length=1, max_length=MAX_ID_BYTES)]
Query = Annotated[str, Field(max_length=MAX_QUERY, description="A question or a few words, in any language.")]
Limit = Annotated[int, Field(ge=1, le=MAX_LIMIT, description="How many results; default: the recipe's own.")]
Moment = Annotated[
    str | int | float, Field(description="ISO 8601, or seconds since 1970. Without zone: UTC.")
]
Metadata = Annotated[dict[str, Any], Field(description="Anything else that is known, for filters.")]
Filters = Annotated[
    dict[str, Any] | str,
    Field(
        description='Only records that pass: {"kind": "note", "timestamp": {"gte": "2026-01-01"}}, or as text '
        "`kind = 'note' and timestamp >= 2026-01-01`."
    ),
]
Recipe = Annotated[
    str, Field(min_length=1, max_length=200, description="How to search; default: the service's.")
]
Sensitivity = Annotated[Name, Field(description="A level; you must be cleared for it.")]
Scope = Annotated[Name, Field(description="Who may see it; it must be one of yours, or everyone's.")]


class Form(BaseModel):
    """Values as they are sent: nothing is guessed, and an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Search(Form):
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
        Field(max_length=100, description="Further collections of a recipe that has some on request."),
    ] = []
    keywords: (
        Annotated[
            list[str],
            Field(
                max_length=MAX_KEYWORDS,
                description="Texts to be found exactly; left out: taken from the query.",
            ),
        ]
        | None
    ) = None
    neighbours: Annotated[
        int, Field(ge=0, le=MAX_NEIGHBOURS, description="Parts before and after a found part.")
    ] = 0
    explain: Annotated[bool, Field(description="What every stage did to every candidate.")] = False


class Ask(Form):
    """A question to be answered in words."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "How do I retry a job?"},
                {"query": "what is wrong here?", "editor": "@task(retry=3)\ndef send(): ...", "stream": True},
            ]
        }
    )

    query: Query
    recipe: Annotated[Recipe, Field(description="How to search; default: `docs`.")] | None = None
    limit: Annotated[Limit, Field(description="How many sections to answer from; default: 5.")] | None = None
    filters: Filters | None = None
    editor: (
        Annotated[str, Field(max_length=MAX_EDITOR, description="The code in the editor beside it.")] | None
    ) = None
    language: (
        Annotated[Name, Field(description="The language of that code; left out: by its looks.")] | None
    ) = None
    transform: Annotated[
        bool, Field(description="False: the search by meaning gets the question as it is.")
    ] = True
    write: Annotated[
        bool,
        Field(description="False: only the `prompt` that an answer would be written by, and its material."),
    ] = True
    stream: Annotated[bool, Field(description="The answer in parts, as server-sent events.")] = False


class Plan(Form):
    """A plan of code for a prompt."""

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
                description="Builds on the earlier turns of this episode, and is kept; for tokens that may write."
            ),
        ]
        | None
    ) = None
    max_tokens: (
        Annotated[int, Field(ge=1, le=MOST_TOKENS, description="Default: as the settings say.")] | None
    ) = None
    max_entities: (
        Annotated[int, Field(ge=1, le=MOST_ENTITIES, description="Default: as the settings say.")] | None
    ) = None
    allow_partial: Annotated[
        bool, Field(description="What does not fit becomes its signature and the lines that matter.")
    ] = False


class NewRecord(Form):
    """A record to keep. One with the same id is replaced."""

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
        Annotated[list[Annotated[int, Field(ge=1, le=LARGEST)]], Field(min_length=2, max_length=2)] | None
    ) = None
    parent: Annotated[str, Field(min_length=1)] | None = None
    position: Annotated[int, Field(ge=0, le=LARGEST)] | None = None
    timestamp: Moment | None = None
    sensitivity: Sensitivity = "normal"
    scope: Scope = "public"
    metadata: Metadata = {}


class NewFact(Form):
    """A fact to keep: one named thing stands in a relation to another."""

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
    text: Annotated[str, Field(description="The relation in words; empty: its name.")] = ""
    weight: Annotated[float, Field(ge=0, le=MAX_WEIGHT)] = 1.0
    timestamp: Annotated[Moment, Field(description="Valid from.")] | None = None
    superseded_at: Annotated[Moment, Field(description="Valid until.")] | None = None
    sources: Annotated[
        list[Name], Field(max_length=1000, description="Ids of records it was read from.")
    ] = []
    supersedes: Annotated[
        list[Name], Field(max_length=1000, description="Ids of facts that end where this one begins.")
    ] = []
    kind: str = ""
    id: Annotated[str, Field(max_length=MAX_ID_BYTES)] = ""
    collection: Name = "facts"
    sensitivity: Sensitivity = "normal"
    scope: Scope = "public"
    metadata: Metadata = {}


class NewSegment(Form):
    """A turn of a conversation to keep."""

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

    session: Annotated[Name, Field(description="The conversation it is a part of.")]
    text: str
    speaker: str = ""
    timestamp: Annotated[Moment, Field(description="When it was said; left out: now.")] | None = None
    entities: Annotated[list[Name], Field(max_length=1000, description="Who and what it is about.")] = []
    position: (
        Annotated[
            int,
            Field(
                ge=0,
                le=LARGEST,
                description="Its place in the conversation: what is next to it is known by it.",
            ),
        ]
        | None
    ) = None
    kind: str = ""
    id: Annotated[
        str,
        Field(max_length=MAX_ID_BYTES, description="Empty: made from the rest, so that a turn is kept once."),
    ] = ""
    sensitivity: Sensitivity = "normal"
    scope: Scope = "public"
    metadata: Metadata = {}


One = TypeVar("One")


def _count(value: Any) -> str:
    return "many" if isinstance(value, list) else "one"


OneOrMany = Annotated[
    Annotated[One, Tag("one")] | Annotated[list[One], Field(min_length=1, max_length=MAX_BATCH), Tag("many")],
    Discriminator(_count),
]
"""A thing, or a list of such."""


def listed(given: One | Sequence[One]) -> list[One]:
    """One or many, as a list."""
    return list(given) if isinstance(given, list) else [given]  # type: ignore[list-item]
