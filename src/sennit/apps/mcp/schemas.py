"""The input and output of each tool as JSON Schema, and the validation of arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sennit import search_parameters as parameters
from sennit.errors import InvalidInput

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

Schema = dict[str, Any]

MAX_PASSAGES: Final = 50
"""Passages of one grep. More would fill the model's context; a better pattern helps more."""

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
    return {"type": "boolean", "description": description, "default": False}


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
    """An object in which all of these properties are required."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def array_of(item: Schema) -> Schema:
    """An array of items."""
    return {"type": "array", "items": item}


def nullable(kind: str) -> Schema:
    """A value or null, in the form that most clients understand."""
    return {"anyOf": [{"type": kind}, {"type": "null"}]}


def number_of(what: str, default: str) -> Schema:
    """The limit of a search for something."""
    return integer(
        f"Maximum number of {what}. Default: {default}.", parameters.LIMIT.minimum, parameters.LIMIT.maximum
    )


# The parameters of a search, under the names that tools have for them.
QUERY: Final = string(
    "What to search for: a question or a few words, in any language.", **parameters.QUERY.schema
)
LIMIT: Final = number_of("results", "the recipe's limit")
RECIPE: Final = string(
    "How to search. `default`: keyword and meaning, for anything; `files`: exact text and meaning in folders of "
    "text; `artifacts`: a personal knowledge base, one result per document. Leave it out unless one is asked for.",
    **parameters.RECIPE.schema,
)
MIN_RELEVANCE: Final[Schema] = {
    "type": "number",
    "description": parameters.MIN_RELEVANCE.help,
    **parameters.MIN_RELEVANCE.schema,
}
FILTERS: Final[Schema] = {
    "type": "object",
    "description": "Return only records that match, by field or metadata field. Equality, membership, ranges, patterns: "
    '{"kind": "note", "tags": ["a", "b"], "timestamp": {"gte": "2026-01-01"}, "path": {"like": "docs/*"}}; '
    'combined with {"and": [...]}, {"or": [...]}, {"not": {...}}.',
}
KEYWORDS: Final[Schema] = {
    "anyOf": [{"type": "string"}, {"type": "array", **parameters.KEYWORDS.schema}],
    "description": "Texts to match exactly as written, such as names, identifiers and error codes: a list, or words "
    'with "phrases" in quotes. They select the recipe `files`. If empty or equal to the query, they are extracted '
    "from it.",
}

DECLARED: Final[Mapping[str, parameters.Parameter]] = {
    "query": parameters.QUERY,
    "semantic_query": parameters.QUERY,
    "exact_keywords": parameters.KEYWORDS,
    "recipe": parameters.RECIPE,
    "limit": parameters.LIMIT,
    "editor": parameters.EDITOR,
    "language": parameters.LANGUAGE,
    "min_relevance": parameters.MIN_RELEVANCE,
}
"""The parameter of a search behind each argument of a tool; its check says what is wrong."""

EDITOR: Final = string(parameters.EDITOR.help, **parameters.EDITOR.schema)
LANGUAGE: Final = string(parameters.LANGUAGE.help, **parameters.LANGUAGE.schema)
INCLUDE_MEMORY: Final = boolean("Also search the collection `memory`, if the recipe leaves it out.")

_STRING: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "number"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_STRINGS: Final = array_of(_STRING)
_NULLABLE_STRING: Final = nullable("string")
_NULLABLE_NUMBER: Final = nullable("number")
_NULLABLE_INTEGER: Final = nullable("integer")

DEGRADED: Final = array_of(object_with(source=_STRING, reason=_STRING))
"""Sources that failed, and why. The result is built from the others."""

RELEVANCE: Final[Schema] = {
    "type": "number",
    "description": "The calibrated chance that it answers the query, from 0 to 1.",
}
FITS: Final[Schema] = {
    "type": "boolean",
    "description": "Whether anything found is relevant enough to count as an answer.",
}
HINTS: Final = {
    **_STRINGS,
    "description": "Why nothing was found, and what would find something. Empty if there are results.",
}

_HIT: Final = object_with(
    number=integer("Position in the result, from 1."),
    relevance=RELEVANCE,
    score=_NUMBER,
    collections=_STRINGS,
    type={"enum": ["chunk", "artifact"]},
    id=_STRING,
    title=_STRING,
    source_system=_STRING,
    sensitivity=_STRING,
    snippet=string("At most 200 characters of the text."),
    citation=string("Where the text is from: path with lines, URL, or id."),
    url=_NULLABLE_STRING,
)
_HIT["properties"]["passage"] = string("The text with its neighbours, if `expand_neighbors` is set.")

RESULTS: Final = object_with(
    query=_STRING,
    recipe=_STRING,
    fits=FITS,
    count=_COUNT,
    collections={**_STRINGS, "description": "The collections that were searched. Empty: all of them."},
    results=array_of(_HIT),
    degraded=DEGRADED,
    hints=HINTS,
)
MEMORIES: Final = object_with(
    query=_STRING,
    fits=FITS,
    count=_COUNT,
    memories=array_of(
        object_with(
            id=_STRING,
            relevance=RELEVANCE,
            score=_NUMBER,
            text=_STRING,
            title=_STRING,
            kind=_STRING,
            timestamp=_NULLABLE_STRING,
        )
    ),
    degraded=DEGRADED,
    hints=HINTS,
)
PASSAGES: Final = object_with(
    files=_COUNT,
    matches=_COUNT,
    count=_COUNT,
    passages=array_of(
        object_with(
            citation=_STRING,
            path=_STRING,
            lines={
                "type": "array",
                "items": {"type": "integer"},
                "description": "The first and the last line.",
            },
            matched={
                "type": "array",
                "items": {"type": "integer"},
                "description": "The numbers of the matching lines.",
            },
            keywords=_STRINGS,
            matches=_COUNT,
            text=_STRING,
        )
    ),
    limits={**_STRINGS, "description": "The limits that truncated the result, if any."},
    skipped={**_STRINGS, "description": "Files that could not be read."},
)
FILE: Final = object_with(
    path=_STRING,
    text=_STRING,
    first_line=_COUNT,
    last_line=_COUNT,
    total_lines={**_COUNT, "description": "The number of lines of the whole file."},
)
MEMORY: Final = object_with(id=_STRING, collection=_STRING, sensitivity=_STRING, scope=_STRING)
REMOVED: Final = object_with(removed=integer("How many records were removed, with chunks and facts.", 0))
_NAMED_COUNTS: Final = array_of(object_with(name=_STRING, records=_COUNT))
RECORDS: Final = object_with(
    total=integer("How many records match, on all pages.", 0),
    next={**_NULLABLE_STRING, "description": "The `after` of the next page; null on the last one."},
    collections=_NAMED_COUNTS,
    folders=array_of(object_with(path=_STRING, files=_COUNT, records=_COUNT)),
    records=array_of(
        object_with(
            id=_STRING, citation=_STRING, collection=_STRING, kind=_STRING, title=_STRING, snippet=_STRING
        )
    ),
)
EXPLANATION: Final = object_with(
    id=_STRING,
    kept={"type": "boolean"},
    stage=_STRING,
    reason=_STRING,
    number=_NULLABLE_NUMBER,
    needed=_NULLABLE_NUMBER,
    rank=_NULLABLE_INTEGER,
    sources=array_of(
        object_with(source=_STRING, rank=_NULLABLE_INTEGER, score=_NULLABLE_NUMBER, share=_NUMBER)
    ),
    degraded=DEGRADED,
)

PLAN: Final = object_with(
    query=_STRING,
    episode=_STRING,
    turn=_COUNT,
    max_tokens=_COUNT,
    max_entities=_COUNT,
    allow_partial={"type": "boolean"},
    tokenizer=_STRING,
    tokens=_COUNT,
    entries=array_of(
        object_with(
            key=_STRING,
            reason=string("Such as `anchor:explicit_file_mention` or `semantic:0.85`."),
            priority=_COUNT,
            tokens=_COUNT,
            position=integer("Position in the plan, from 1."),
            path=_STRING,
            lines={"anyOf": [array_of({"type": "integer"}), {"type": "null"}]},
            qualified=_STRING,
            language=_STRING,
            preview=_STRING,
            content=string("A hash of the entity's content."),
            partial={"type": "boolean"},
        )
    ),
    dropped=array_of(object_with(key=_STRING, selection_reason=_STRING, reason=_STRING, tokens=_COUNT)),
    warnings=array_of(object_with(code=_STRING, message=_STRING, key=_STRING)),
)


ANSWER: Final = object_with(
    query=_STRING,
    text=string("The answer. [1] cites the citation with that number."),
    citations=array_of(
        object_with(
            number=integer("The number by which the text cites it."),
            id=_STRING,
            title=_STRING,
            location=string("Where the text is from: path with lines, URL, or id."),
            url=_NULLABLE_STRING,
        )
    ),
    model={
        **_NULLABLE_STRING,
        "description": "The model that wrote the text; null if it is made of sentences that were found.",
    },
    degraded=DEGRADED,
)


def validate_arguments(tool: str, schema: Schema, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments without nulls, which count as not given. Raises InvalidInput if they do not match the schema."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    present = {name: value for name, value in (given or {}).items() if value is not None}
    properties = schema["properties"]
    for name in present:
        if name not in properties:
            raise InvalidInput(f"{tool} has no argument {name[:60]!r}. It takes: {', '.join(properties)}.")
    for name in schema["required"]:
        if name not in present:
            raise InvalidInput(f"{tool} needs the argument {name!r}: {properties[name]['description']}")
    error = best_match(Draft202012Validator(schema).iter_errors(present))
    if error is not None:
        path = ".".join(str(step) for step in error.absolute_path)
        raise InvalidInput(f"{tool}: {path}: {_describe(error, present)[:MAX_ERROR_CHARACTERS]}")
    return present


def _describe(error: ValidationError, given: Mapping[str, Any]) -> str:
    """What is wrong with an argument; about a bound of a search, in the words of every interface."""
    name = str(error.absolute_path[0]) if error.absolute_path else ""
    if error.validator != "type" and name in DECLARED:
        try:
            DECLARED[name].check(given[name])
        except InvalidInput as refusal:
            return str(refusal)
    return str(error.message)
