"""The input and output of each tool as JSON Schema, and the validation of arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sennit import search_parameters as parameters
from sennit.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

Schema = dict[str, Any]

MAX_PASSAGES: Final = 50
"""Passages of one grep. More would fill the model's context; a better pattern helps more."""

MAX_TOKENS: Final = 2000
"""Tokens of retrieved text in one answer, unless the call wants another number. Ten results of a usual search fit."""

MIN_TOKENS: Final = 50
"""Fewer tokens hold no result."""

MAX_ARGUMENT_DEPTH: Final = 200
"""Lists and objects inside each other. The deepest filter has 64 conditions, each an object and a list."""

MAX_QUOTED_CHARACTERS: Final = 80
"""Characters of an argument that an error quotes."""

MAX_ERROR_CHARACTERS: Final = 200
"""Characters of a validation error, which may quote the argument."""


def string(description: str, **constraints: Any) -> Schema:
    """A string property."""
    return {"type": "string", "description": description, **constraints}


def integer(description: str, minimum: int = 1, maximum: int | None = None) -> Schema:
    """An integer property."""
    return {
        "type": "integer",
        "description": description,
        "minimum": minimum,
        **({} if maximum is None else {"maximum": maximum}),
    }


def boolean(description: str) -> Schema:
    """A boolean property that defaults to false."""
    return {"type": "boolean", "description": description}


def strings(description: str) -> Schema:
    """A property that is a list of strings."""
    return {"type": "array", "items": {"type": "string"}, "description": description}


def arguments(*required: str, **properties: Schema) -> Schema:
    """The input schema of a tool."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def object_with(**properties: Schema) -> Schema:
    """The output schema of a tool. Its answer always has all of these properties, unless said otherwise."""
    return {"type": "object", "properties": properties}


def array_of(item: Schema) -> Schema:
    """An array of items."""
    return {"type": "array", "items": item}


def rows(*names: str, **properties: Schema) -> Schema:
    """An array of objects with these fields, by name only: every conversation pays for the list of tools."""
    item: Schema = {"type": "object", "required": list(names)}
    return array_of({**item, "properties": properties} if properties else item)


def as_in_search(*names: str) -> dict[str, Schema]:
    """Arguments that hybrid_search describes, here by name and type. The search checks their values."""
    return {name: _IN_SEARCH[name] for name in names}


def nullable(kind: str) -> Schema:
    """A value or null, in the form that most clients understand."""
    return {"anyOf": [{"type": kind}, {"type": "null"}]}


def number_of(what: str, default: str) -> Schema:
    """The limit of a search for something."""
    return integer(f"Most {what}; default {default}.", parameters.LIMIT.minimum, parameters.LIMIT.maximum)


# The parameters of a search, under the names that tools have for them.
QUERY: Final = string("A question or a few words.")
LIMIT: Final = number_of("results", "the recipe's")
RECIPE: Final = string(
    "Usually left out. `artifacts`: knowledge base, one result per document; `docs`: documentation by page; "
    "`examples`; `memory`: conversations and facts; `files`: grep and meaning; `code`; `default`: all. "
    "list_records says which find something here.",
)
MIN_RELEVANCE: Final[Schema] = {
    "type": "number",
    "description": "Leave out results less likely to answer.",
    **parameters.MIN_RELEVANCE.schema,
}
RECENCY: Final[Schema] = {
    "anyOf": [{"type": "number"}, {"type": "string"}],
    "description": "Age counts 0 to 1, or auto.",
}
FILTERS: Final[Schema] = {
    "type": "object",
    "description": 'Only records with these fields: {"kind": "note", "tags": ["a", "b"], '
    '"timestamp": {"gte": "2026-01-01"}, "path": {"like": "docs/*"}}; and, or, not combine them.',
}
KEYWORDS: Final[Schema] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    "description": "Exact texts to grep for, such as identifiers; selects the recipe `files`.",
}
PROJECT: Final = string("An indexed folder, by name or path, or `all`. Default: the one you work in.")
TOKENS: Final = integer(
    f"Budget for the returned text; default {MAX_TOKENS}. What is cut is reported.", MIN_TOKENS
)

DECLARED: Final[Mapping[str, parameters.Parameter]] = {
    "exact_keywords": parameters.KEYWORDS,
    "limit": parameters.LIMIT,
    "min_relevance": parameters.MIN_RELEVANCE,
}
"""The parameter of a search behind each argument that a schema bounds; its check says what is wrong."""

EDITOR: Final = string("Code in the user's editor, as context.")
LANGUAGE: Final = string("The language of that code.")
INCLUDE_MEMORY: Final = boolean("Also search `memory`.")

_IN_SEARCH: Final[Mapping[str, Schema]] = {
    **{
        name: {"type": "string"}
        for name in ("query", "semantic_query", "recipe", "editor", "language", "project")
    },
    "filters": {"type": "object"},
    "exact_keywords": {"anyOf": KEYWORDS["anyOf"]},
    "limit": {"type": "integer"},
    "include_memory": {"type": "boolean"},
    "min_relevance": {"type": "number"},
    "recency": {"anyOf": RECENCY["anyOf"]},
    "max_tokens": {"type": "integer", "minimum": MIN_TOKENS},
}

_STRING: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "number"}
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_COUNT: Final[Schema] = {"type": "integer"}
_STRINGS: Final = array_of(_STRING)
_NULLABLE_STRING: Final = nullable("string")
_NULLABLE_NUMBER: Final = nullable("number")
_NULLABLE_INTEGER: Final = nullable("integer")

DEGRADED: Final = rows("source", "reason")
"""Sources that failed, and why. The result is built from the others."""

_RESULT: Final = {
    "query_id": _STRING,
    "query": _STRING,
    "recipe": _STRING,
    "fits": _BOOLEAN,
    "count": _COUNT,
    "collections": _STRINGS,
    "results": rows(
        "number",
        "relevance",
        "score",
        "collections",
        "type",
        "id",
        "title",
        "source_system",
        "sensitivity",
        "snippet",
        "citation",
        "url",
        "project",
        passage=_STRING,
    ),
    "revisions": {"type": "object"},
    "truncated": _BOOLEAN,
    "degraded": DEGRADED,
    "hints": _STRINGS,
}
TEXTS: Final = object_with(**_RESULT)
RESULTS: Final = object_with(**_RESULT)
RESULTS["properties"]["pages"] = rows(
    "name",
    "url",
    "chunks",
    chunks=rows("kind", "id", "title", "citation", "text"),
)
MEMORIES: Final = object_with(
    query_id=_STRING,
    query=_STRING,
    fits=_BOOLEAN,
    count=_COUNT,
    memories=rows("id", "relevance", "score", "text", "title", "kind", "timestamp"),
    truncated=_BOOLEAN,
    degraded=DEGRADED,
    hints=_STRINGS,
)
PASSAGES: Final = object_with(
    files=_COUNT,
    matches=_COUNT,
    count=_COUNT,
    passages=rows("citation", "path", "lines", "matched", "keywords", "matches", "text"),
    truncated=_BOOLEAN,
    limits=_STRINGS,
    skipped=_STRINGS,
)
FILE: Final = object_with(path=_STRING, text=_STRING, first_line=_COUNT, last_line=_COUNT, total_lines=_COUNT)
MEMORY: Final = object_with(id=_STRING, collection=_STRING, sensitivity=_STRING, scope=_STRING)
REMOVED: Final = object_with(removed=_COUNT)
RECORDED: Final = object_with(recorded=_COUNT)
RECORDS: Final = object_with(
    total=_COUNT,
    next=_NULLABLE_STRING,
    collections=rows("name", "records"),
    folders=rows("project", "path", "revision", "files", "records"),
    recipes=_STRINGS,
    records=rows("id", "citation", "collection", "kind", "title", "snippet"),
)
EXPLANATION: Final = object_with(
    id=_STRING,
    kept=_BOOLEAN,
    stage=_STRING,
    reason=_STRING,
    number=_NULLABLE_NUMBER,
    needed=_NULLABLE_NUMBER,
    rank=_NULLABLE_INTEGER,
    sources=rows("source", "rank", "score", "share"),
    degraded=DEGRADED,
)

PLAN: Final = object_with(
    query=_STRING,
    episode=_STRING,
    turn=_COUNT,
    max_tokens=_COUNT,
    max_entities=_COUNT,
    allow_partial=_BOOLEAN,
    tokenizer=_STRING,
    tokens=_COUNT,
    entries=rows(
        "key",
        "reason",
        "priority",
        "tokens",
        "position",
        "path",
        "lines",
        "qualified",
        "language",
        "preview",
        "content",
        "partial",
    ),
    dropped=rows("key", "selection_reason", "reason", "tokens"),
    warnings=rows("code", "message", "key"),
)


ANSWER: Final = object_with(
    query_id=_STRING,
    query=_STRING,
    text=_STRING,
    citations=rows("number", "id", "title", "location", "url", "project", "revision"),
    model=_NULLABLE_STRING,
    degraded=DEGRADED,
)


def validate_arguments(
    tool: str, schema: Schema, given: Mapping[str, Any] | None, aliases: Mapping[str, str]
) -> dict[str, Any]:
    """The arguments without nulls, which count as not given, and under one name each.

    Raises InvalidInput if they do not match the schema.
    """
    try:
        from jsonschema import Draft202012Validator
        from jsonschema.exceptions import best_match
    except ModuleNotFoundError as missing:
        raise MissingExtra("A call of a tool", "tools") from missing

    present = {name: value for name, value in (given or {}).items() if value is not None}
    properties = schema["properties"]
    for alias, name in aliases.items():
        if alias not in present:
            continue
        if present.setdefault(name, present[alias]) != present[alias]:
            raise InvalidInput(f"{name} and {alias} are two names of one argument; give only one of them.")
        del present[alias]
    for name in present:
        if name not in properties:
            raise InvalidInput(f"{tool} has no argument {name[:60]!r}. It takes: {', '.join(properties)}.")
    for name in schema["required"]:
        if name not in present:
            about = properties[name].get("description", "as in hybrid_search.")
            raise InvalidInput(f"{tool} needs the argument {name!r}: {about}")
    for name, value in present.items():
        if _is_too_deep(value):
            raise InvalidInput(
                f"{tool}: {name}: it has lists and objects nested deeper than {MAX_ARGUMENT_DEPTH} levels"
            )
    error = best_match(Draft202012Validator(schema).iter_errors(present))
    if error is not None:
        path = ".".join(str(step) for step in error.absolute_path)
        raise InvalidInput(f"{tool}: {path}: {_describe(error, present)[:MAX_ERROR_CHARACTERS]}")
    return present


def _is_too_deep(value: object) -> bool:
    """Return whether a value has more levels than are checked; it may even contain itself."""
    level = [value]
    for _ in range(MAX_ARGUMENT_DEPTH + 1):
        inside = (
            inner
            for one in level
            for inner in (one.values() if isinstance(one, Mapping) else one if isinstance(one, list) else ())
        )
        level = list({id(one): one for one in inside if isinstance(one, (Mapping, list))}.values())
        if not level:
            return False
    return True


def _describe(error: ValidationError, given: Mapping[str, Any]) -> str:
    """What is wrong with an argument; about a bound of a search, in the words of every interface."""
    name = str(error.absolute_path[0]) if error.absolute_path else ""
    if error.validator != "type" and name in DECLARED:
        try:
            DECLARED[name].check(given[name])
        except InvalidInput as refusal:
            return str(refusal)
    quoted = repr(error.instance)
    shown = quoted if len(quoted) <= MAX_QUOTED_CHARACTERS else f"{quoted[:MAX_QUOTED_CHARACTERS]}…"
    return str(error.message).replace(quoted, shown, 1)
