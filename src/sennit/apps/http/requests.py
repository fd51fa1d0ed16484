"""The request bodies, as pydantic models that validate and document them. The caller's identity is not part of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal, TypeVar

from fastapi import Query as UrlParameter
from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from sennit.apps.http.errors import UnknownField
from sennit.apps.http.limits import MAX_BATCH_ITEMS, MAX_URL_QUERY_CHARACTERS
from sennit.engine.hydration_service import MAX_PLAN_ENTITIES, MAX_PLAN_TOKENS
from sennit.engine.search_request import SearchRequest
from sennit.facts import MAX_WEIGHT
from sennit.feedback import (
    ACTIONS,
    MAX_GRADE,
    MAX_MESSAGE_CHARACTERS,
    MAX_NAME_CHARACTERS,
    Feedback,
)
from sennit.privacy import Caller
from sennit.recipes import Recipe as RecipeValue
from sennit.records import MAX_ID_BYTES
from sennit.search_parameters import (
    CLIENT_ID,
    COLLECTIONS,
    EDITOR,
    INCLUDE,
    KEYWORDS,
    LANGUAGE,
    LIMIT,
    LOOK_BACK,
    MAX_SHOWN,
    MIN_RELEVANCE,
    NEIGHBOURS,
    PROJECT,
    QUERY,
    RECENCY,
    RECIPE,
    SESSION_ID,
)

MAX_INT64: Final = (1 << 63) - 1
"""The largest integer that SQLite stores."""

Name = Annotated[str, Field(min_length=1, max_length=MAX_ID_BYTES)]

# The parameters of a search. Pydantic checks the types, and the declaration checks and documents the values.
Query = Annotated[
    str, AfterValidator(QUERY.check), Field(description=QUERY.help, json_schema_extra=QUERY.schema)
]
URL_QUERY: Final = replace(
    QUERY, max_characters=MAX_URL_QUERY_CHARACTERS, advice=" POST /v1/search takes a longer one."
)
UrlQuery = Annotated[
    str,
    AfterValidator(URL_QUERY.check),
    Field(description=URL_QUERY.help, json_schema_extra=URL_QUERY.schema),
]
Recipe = Annotated[
    str,
    AfterValidator(RECIPE.check),
    Field(description=f"{RECIPE.help} Default: the service's recipe.", json_schema_extra=RECIPE.schema),
]
Limit = Annotated[
    int, AfterValidator(LIMIT.check), Field(description=LIMIT.help, json_schema_extra=LIMIT.schema)
]
Collections = Annotated[
    list[str],
    AfterValidator(COLLECTIONS.check),
    Field(description=COLLECTIONS.help, json_schema_extra=COLLECTIONS.schema),
]
Keywords = Annotated[
    list[str],
    AfterValidator(KEYWORDS.check),
    Field(description=KEYWORDS.help, json_schema_extra=KEYWORDS.schema),
]
Include = Annotated[
    list[str],
    AfterValidator(INCLUDE.check),
    Field(description=INCLUDE.help, json_schema_extra=INCLUDE.schema),
]
Neighbours = Annotated[
    int,
    AfterValidator(NEIGHBOURS.check),
    Field(description=NEIGHBOURS.help, json_schema_extra=NEIGHBOURS.schema),
]
Editor = Annotated[
    str, AfterValidator(EDITOR.check), Field(description=EDITOR.help, json_schema_extra=EDITOR.schema)
]
Language = Annotated[
    str, AfterValidator(LANGUAGE.check), Field(description=LANGUAGE.help, json_schema_extra=LANGUAGE.schema)
]
LookBack = Annotated[
    float | bool,
    AfterValidator(LOOK_BACK.check),
    Field(
        description=f"{LOOK_BACK.help} True: the window from the settings.",
        json_schema_extra=LOOK_BACK.schema,
    ),
]


def _check_look_back(value: float | Literal["default"]) -> float | Literal["default"]:
    return value if value == "default" else LOOK_BACK.check(value)


LookBackParameter = Annotated[
    float | Literal["default"],
    AfterValidator(_check_look_back),
    Field(
        description=f"{LOOK_BACK.help} `default`: the window from the settings.",
        json_schema_extra=LOOK_BACK.schema,
    ),
]
"""The look-back in a query string, where True has a name; `look_back_hours` returns that of the request."""


def look_back_hours(value: float | Literal["default"] | None) -> float | bool:
    """The look-back of a request, from its form in a query string."""
    if value is None:
        return False
    return True if value == "default" else value


Project = Annotated[
    str,
    AfterValidator(PROJECT.check),
    Field(description=PROJECT.help, json_schema_extra=PROJECT.schema),
]

MinRelevance = Annotated[
    float,
    AfterValidator(MIN_RELEVANCE.check),
    Field(description=MIN_RELEVANCE.help, json_schema_extra=MIN_RELEVANCE.schema),
]
Recency = Annotated[
    float | Literal["auto"],
    AfterValidator(RECENCY.check),
    Field(description=f"{RECENCY.help} Default: what the recipe says.", json_schema_extra=RECENCY.schema),
]

SessionId = Annotated[
    str,
    AfterValidator(SESSION_ID.check),
    Field(description=SESSION_ID.help, json_schema_extra=SESSION_ID.schema),
]
ClientId = Annotated[
    str,
    AfterValidator(CLIENT_ID.check),
    Field(description=CLIENT_ID.help, json_schema_extra=CLIENT_ID.schema),
]
QueryId = Annotated[
    str,
    Field(min_length=1, max_length=MAX_NAME_CHARACTERS, description="The `query_id` of a search."),
]

Timestamp = Annotated[
    str | int | float, Field(description="ISO 8601, or seconds since 1970. Without a time zone: UTC.")
]
Metadata = Annotated[dict[str, Any], Field(description="Further fields, which filters can use.")]
Filters = Annotated[
    dict[str, Any] | str,
    Field(
        description='Return only records that match: {"kind": "note", "path": {"like": "docs/*"}}, or as text '
        "`kind = 'note' and path like 'docs/*'`. Operators: eq, ne, gt, gte, lt, lte, between, exists, in, has, has_any, "
        "has_all, like, starts_with, ends_with, contains; with an i before it, those on text ignore the case."
    ),
]
FilterParameter = Annotated[
    str,
    UrlParameter(
        alias="filter",
        max_length=MAX_URL_QUERY_CHARACTERS,
        description="Only records that match, as text: `kind = 'note' and timestamp >= 2026-01-01`.",
    ),
]
Sensitivity = Annotated[Name, Field(description="A sensitivity level that you are cleared for.")]
Scope = Annotated[Name, Field(description="Who may see the record: one of your scopes, or `public`.")]


class RequestBody(BaseModel):
    """The base of every body. Values are not coerced, and an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _name_the_nearest_field(cls, given: Any) -> Any:
        # Pydantic refuses an unknown field too, and does not say which fields there are.
        if isinstance(given, dict) and not given.keys() <= cls.model_fields.keys():
            raise UnknownField(next(one for one in given if one not in cls.model_fields), cls.model_fields)
        return given


class SearchFields(RequestBody):
    """What every search takes."""

    query: Query
    recipe: Recipe | None = None
    limit: Limit | None = None
    filters: Filters | None = None
    project: Project | None = None
    collections: Collections = []
    include: Include = []
    keywords: Keywords | None = None
    neighbours: Neighbours = 0
    look_back: LookBack = False
    editor: Editor | None = None
    language: Language | None = None
    transform: (
        Annotated[
            bool,
            Field(
                description="Whether the vector search gets keywords in place of the query. Default: the recipe's."
            ),
        ]
        | None
    ) = None
    min_relevance: MinRelevance = 0.0
    recency: Recency | None = None
    session_id: SessionId = ""
    client_id: ClientId = ""
    explain: Annotated[bool, Field(description="Return what every stage did to every candidate.")] = False

    def to_request(self, caller: Caller) -> SearchRequest:
        """The search of this caller."""
        # The fields of this class, not of a body that adds some, have the names of the request.
        values = {name: value for name, value in self if name in SearchFields.model_fields}
        return SearchRequest(**values, caller=caller)


class SearchBody(SearchFields):
    """A search."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query": "when did we pick March?", "limit": 5},
                {"query": "vineyard", "filters": {"artifact_type": "report"}, "explain": True},
            ]
        }
    )

    excerpts: Annotated[
        bool,
        Field(
            description="Add an `excerpt` to each hit: its best lines, with the words of the query marked."
        ),
    ] = False


class FeedbackBody(RequestBody):
    """What was done with a result of a search, in the fields of User Behavior Insights."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"query_id": "0f8c1d2e3b4a59687786a5b4c3d2e1f0", "action_name": "click", "object_id": "m1"},
                {
                    "query_id": "0f8c1d2e3b4a59687786a5b4c3d2e1f0",
                    "action_name": "judge",
                    "object_id": "m1",
                    "grade": 3,
                },
            ]
        }
    )

    query_id: QueryId
    action_name: Annotated[
        Literal[tuple(ACTIONS)],  # type: ignore[valid-type]
        Field(description="; ".join(f"`{name}`: {meaning}" for name, meaning in ACTIONS.items())),
    ]
    object_id: Annotated[
        str, Field(max_length=MAX_ID_BYTES, description="The id of the record; empty for the whole answer.")
    ] = ""
    grade: (
        Annotated[
            int,
            Field(ge=0, le=MAX_GRADE, description="For `judge`: 0 is not relevant, 3 is exactly right."),
        ]
        | None
    ) = None
    position: (
        Annotated[
            int,
            Field(ge=1, lt=1 << 31, description="Where it was seen. Default: its place in the answer."),
        ]
        | None
    ) = None
    session_id: SessionId = ""
    client_id: ClientId = ""
    application: Annotated[
        str, Field(max_length=MAX_NAME_CHARACTERS, description="The application that shows the results.")
    ] = ""
    message: Annotated[str, Field(max_length=MAX_MESSAGE_CHARACTERS, description="A remark of the user.")] = (
        ""
    )
    query: Annotated[
        str,
        AfterValidator(QUERY.check),
        Field(
            description="The query, for a search that another process of the service answered.",
            json_schema_extra=QUERY.schema,
        ),
    ] = ""
    recipe: Annotated[Recipe, Field(description="The recipe of such a search.")] = ""
    shown: Annotated[
        list[Name], Field(max_length=MAX_SHOWN, description="The ids that such a search showed, best first.")
    ] = []

    def to_feedback(self) -> Feedback:
        """What the caller reports."""
        # The fields have the names of the value.
        return Feedback(**dict(self))


class WhyBody(SearchFields):
    """A search, and a record that was expected in its result."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "vineyard", "reference": "diary"}]})

    reference: Annotated[
        str,
        Field(
            min_length=1,
            max_length=20_000,
            description="The id of the record, any other reference to it, or a part of its text.",
        ),
    ]


FusionTable = Annotated[
    dict[str, Any], Field(description='Another fusion, e.g. {"method": "rrf", "k": 20, "first_rank": 1}.')
]
StageTables = Annotated[
    list[dict[str, Any]], Field(max_length=20, description="Other stages, as the recipe's table lists them.")
]


class Threshold(RequestBody):
    """The thresholds of a source. What is null is off."""

    min_score: Annotated[float, Field(allow_inf_nan=False)] | None = None
    max_distance: (
        Annotated[
            float,
            Field(ge=0, le=2, description="Records at this distance or farther are not found."),
        ]
        | None
    ) = None


Thresholds = Annotated[
    dict[str, Threshold],
    Field(max_length=100, description="Other thresholds of sources, by the name of the source."),
]


class RecipeBody(RequestBody):
    """A recipe, and what to change in it."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"recipe": "rrf", "fusion": {"method": "rrf", "k": 20.0}}]}
    )

    recipe: Recipe
    fusion: FusionTable | None = None
    stages: StageTables | None = None
    thresholds: Thresholds = {}
    min_relevance: MinRelevance = 0.0


class JudgedTrialBody(RecipeBody):
    """A recipe, and what to measure beside it: the changes, or another recipe."""

    compare_with: Annotated[
        Recipe | None, Field(description="Measure this recipe as `after`, instead of the changes.")
    ] = None


class SaveRecipeBody(RecipeBody):
    """A changed recipe, and the name to save it under."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"name": "tuned", "recipe": "rrf", "fusion": {"method": "rrf", "k": 20.0}}]
        }
    )

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS)]
    write: Annotated[
        bool, Field(description="Write it to the settings file. Default: only show what would be written.")
    ] = False


class TrialBody(SearchFields):
    """A search, and what to change in its recipe."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"query": "vineyard", "recipe": "rrf", "fusion": {"method": "rrf", "k": 20.0}}]
        }
    )

    fusion: FusionTable | None = None
    stages: StageTables | None = None
    thresholds: Thresholds = {}

    def to_request(self, caller: Caller, recipe: RecipeValue | None = None) -> SearchRequest:
        return replace(super().to_request(caller), explain=True, recipe=recipe)


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
    recipe: (
        Annotated[
            Recipe,
            Field(
                description="The recipe to search with. Default: `docs`, or `memory` where there are only memories."
            ),
        ]
        | None
    ) = None
    limit: (
        Annotated[Limit, Field(description="Maximum number of sections to answer from. Default: 5.")] | None
    ) = None
    filters: Filters | None = None
    project: Project | None = None
    editor: Editor | None = None
    language: Language | None = None
    transform: (
        Annotated[
            bool,
            Field(
                description="Whether the question is rewritten for the vector search. Default: the recipe's."
            ),
        ]
        | None
    ) = None
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
    project: Project | None = None
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
        Annotated[
            int,
            Field(
                ge=1,
                le=MAX_PLAN_ENTITIES,
                description="The most entities that meaning adds. Default: from the settings.",
            ),
        ]
        | None
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
