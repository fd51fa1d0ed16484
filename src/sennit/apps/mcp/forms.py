"""The form of what goes into and comes out of each tool, as JSON Schema, and what is said of input that does not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sennit.errors import InvalidInput

Schema = dict[str, Any]

MAX_LIMIT: Final = 50
"""Results of one call; an assistant that wants more asks a better question."""

MAX_SAID: Final = 200
"""Characters of a complaint that quotes what was given."""


def text(about: str, **rules: Any) -> Schema:
    """A property that is text."""
    return {"type": "string", "description": about, **rules}


def number(about: str, least: int = 1, most: int | None = None) -> Schema:
    """A property that is a whole number."""
    return {
        "type": "integer",
        "description": about,
        "minimum": least,
        **({} if most is None else {"maximum": most}),
    }


def flag(about: str) -> Schema:
    """A property that is true or false; false when it is not given."""
    return {"type": "boolean", "description": about, "default": False}


def texts(about: str) -> Schema:
    """A property that is a list of texts."""
    return {"type": "array", "items": {"type": "string"}, "description": about}


def takes(*required: str, **properties: Schema) -> Schema:
    """The arguments of a tool."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def gives(**properties: Schema) -> Schema:
    """An object that always has these properties."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def lists(item: Schema) -> Schema:
    """A list of these."""
    return {"type": "array", "items": item}


def maybe(kind: str) -> Schema:
    """A value or null, in the form that most clients understand."""
    return {"anyOf": [{"type": kind}, {"type": "null"}]}


QUERY: Final = text("What is looked for: a question or a few words, in any language.", maxLength=100_000)
LIMIT: Final = number("How many results. Default: the recipe's own.", most=MAX_LIMIT)
RECIPE: Final = text(
    "How to search. `default`: keyword and meaning, for anything; `files`: exact text and meaning in folders of "
    "text; `artifacts`: a personal knowledge base, one result per document. Leave it out unless one is asked for."
)
FILTERS: Final[Schema] = {
    "type": "object",
    "description": "Only records that pass, by field or metadata field. Equality, membership and ranges: "
    '{"kind": "note", "tags": ["a", "b"], "timestamp": {"gte": "2026-01-01"}}; '
    'combined with {"and": [...]}, {"or": [...]}, {"not": {...}}.',
}
KEYWORDS: Final[Schema] = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
    "description": "Texts that are found exactly as they are written, such as names, identifiers and error codes: "
    'a list, or words with "phrases" in quotes. Giving them makes the recipe `files`. Empty or equal to the '
    "query: they are taken from it.",
}

INCLUDE_MEMORY: Final = flag("Also search what was remembered, where the recipe leaves it out.")

_STRING: Final[Schema] = {"type": "string"}
_NUMBER: Final[Schema] = {"type": "number"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_STRINGS: Final = lists(_STRING)
_MAYBE_STRING: Final = maybe("string")
_MAYBE_NUMBER: Final = maybe("number")
_MAYBE_COUNT: Final = maybe("integer")

DEGRADED: Final = lists(gives(source=_STRING, reason=_STRING))
"""Sources that did not answer, and why; the others did."""

_FOUND: Final = gives(
    number=number("Place in the answer, from 1."),
    score=_NUMBER,
    collections=_STRINGS,
    form={"enum": ["chunk", "artifact"]},
    id=_STRING,
    title=_STRING,
    source_system=_STRING,
    sensitivity=_STRING,
    snippet=text("At most 200 characters of the text."),
    citation=text("Where the text really is: path with lines, address, or id."),
    url=_MAYBE_STRING,
)
_FOUND["properties"]["passage"] = text("The text with its neighbours, where they were asked for.")

RESULTS: Final = gives(
    query=_STRING,
    recipe=_STRING,
    count=_COUNT,
    collections={**_STRINGS, "description": "Collections that were searched; empty: all."},
    results=lists(_FOUND),
    degraded=DEGRADED,
)
MEMORIES: Final = gives(
    query=_STRING,
    count=_COUNT,
    memories=lists(
        gives(id=_STRING, score=_NUMBER, text=_STRING, title=_STRING, kind=_STRING, timestamp=_MAYBE_STRING)
    ),
    degraded=DEGRADED,
)
PASSAGES: Final = gives(
    files=_COUNT,
    matches=_COUNT,
    count=_COUNT,
    passages=lists(
        gives(
            citation=_STRING,
            path=_STRING,
            lines={"type": "array", "items": {"type": "integer"}, "description": "The first and the last."},
            matched={
                "type": "array",
                "items": {"type": "integer"},
                "description": "Numbers of matched lines.",
            },
            keywords=_STRINGS,
            matches=_COUNT,
            text=_STRING,
        )
    ),
    limits={**_STRINGS, "description": "Which limit cut the answer short, if one did."},
    skipped={**_STRINGS, "description": "Files that could not be read."},
)
FILE: Final = gives(
    path=_STRING, text=_STRING, first=_COUNT, last=_COUNT, lines={**_COUNT, "description": "Of the file."}
)
REMEMBERED: Final = gives(id=_STRING, collection=_STRING, sensitivity=_STRING, scope=_STRING)
VERDICT: Final = gives(
    id=_STRING,
    kept={"type": "boolean"},
    stage=_STRING,
    reason=_STRING,
    number=_MAYBE_NUMBER,
    needed=_MAYBE_NUMBER,
    rank=_MAYBE_COUNT,
    sources=lists(gives(source=_STRING, rank=_MAYBE_COUNT, score=_MAYBE_NUMBER, share=_NUMBER)),
    degraded=DEGRADED,
)

PLAN: Final = gives(
    query=_STRING,
    episode=_STRING,
    turn=_COUNT,
    max_tokens=_COUNT,
    max_entities=_COUNT,
    allow_partial={"type": "boolean"},
    tokenizer=_STRING,
    tokens=_COUNT,
    entries=lists(
        gives(
            key=_STRING,
            reason=text("Such as `anchor:explicit_file_mention` or `semantic:0.85`."),
            priority=_COUNT,
            tokens=_COUNT,
            position=number("Place in the plan, from 1."),
            path=_STRING,
            lines={"anyOf": [lists({"type": "integer"}), {"type": "null"}]},
            qualified=_STRING,
            language=_STRING,
            preview=_STRING,
            content=text("A hash of the entity, for comparison."),
            partial={"type": "boolean"},
        )
    ),
    dropped=lists(gives(key=_STRING, wanted=_STRING, reason=_STRING, tokens=_COUNT)),
    warnings=lists(gives(code=_STRING, message=_STRING, key=_STRING)),
)


ANSWER: Final = gives(
    query=_STRING,
    text=text("The answer; [1] cites the citation with that number."),
    citations=lists(
        gives(
            number=number("As the text has it."),
            id=_STRING,
            title=_STRING,
            place=text("Where the text really is: path with lines, address, or id."),
            url=_MAYBE_STRING,
        )
    ),
    model={**_MAYBE_STRING, "description": "The model that wrote it; null: sentences that were found."},
    degraded=DEGRADED,
)


def checked(tool: str, schema: Schema, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """The arguments, if they fit the tool's form; one that is null is one that was not given."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    arguments = {name: value for name, value in (given or {}).items() if value is not None}
    known = schema["properties"]
    for name in arguments:
        if name not in known:
            raise InvalidInput(f"{tool} has no argument {name[:60]!r}. It takes: {', '.join(known)}.")
    for name in schema["required"]:
        if name not in arguments:
            raise InvalidInput(f"{tool} needs the argument {name!r}: {known[name]['description']}")
    error = best_match(Draft202012Validator(schema).iter_errors(arguments))
    if error is not None:
        where = ".".join(str(step) for step in error.absolute_path)
        raise InvalidInput(f"{tool}: {where}: {error.message[:MAX_SAID]}")
    return arguments
