"""What each tool does when it is called: a function from checked arguments to text and JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sennit.apps.mcp import forms
from sennit.errors import InvalidInput

if TYPE_CHECKING:
    from sennit.context.answers import Told
    from sennit.engine import Database
    from sennit.filters import Filter
    from sennit.privacy import Caller
    from sennit.recipes import Recipe

MEMORY: Final = "memory"
"""The collection of what is remembered."""

MAX_LINE: Final = 1 << 40
"""A last line beyond any file's, for a range without an end."""

_WORD_OR_PHRASE: Final = re.compile(r'"([^"]+)"|(\S+)')


class Call(NamedTuple):
    """One call of a tool, its arguments checked against the tool's form."""

    db: Database
    caller: Caller
    client: str
    """The name of the program that calls, as it gives it; for the provenance of what it writes."""
    arguments: dict[str, Any]
    write: bool = True
    """Whether the caller may change what is kept."""


class Said(NamedTuple):
    """What a tool answers: blocks of text for the model, and the same as JSON."""

    blocks: Sequence[str]
    values: dict[str, Any]


def hybrid_search(call: Call) -> Said:
    """Several sources at once, in one ranking."""
    from sennit.context.answers import results

    asked = _asked(call)
    expand = bool(call.arguments.get("expand_neighbors"))
    result = call.db.search(
        asked.query,
        recipe=asked.recipe,
        limit=call.arguments.get("limit"),
        filters=call.arguments.get("filters"),
        keywords=asked.keywords,
        include=asked.include,
        neighbours=int(expand),
        caller=call.caller,
    )
    searched = (*asked.recipe.collections, *asked.include)
    return _said(results(result, searched, passages=expand, excerpt=_excerpt(asked.query)))


def memory_search(call: Call) -> Said:
    """What was remembered, alone."""
    from sennit.context.answers import memories
    from sennit.filters import In, parse_filter

    only: Filter = In("collection", (MEMORY,))
    wanted = call.arguments.get("filters")
    result = call.db.search(
        call.arguments["query"],
        recipe="default",
        limit=call.arguments.get("limit", 5),
        filters=only & parse_filter(wanted) if wanted else only,
        caller=call.caller,
    )
    return _said(memories(result))


def grep_search(call: Call) -> Said:
    """Exact text in files, as they are now."""
    from sennit.context.answers import passages
    from sennit.folders.options import GrepOptions

    arguments = call.arguments
    options = GrepOptions(
        regex=arguments.get("regex", False),
        case=arguments.get("case", "smart"),
        globs=tuple(arguments.get("globs", ())),
        hidden=arguments.get("hidden", False),
    )
    keywords = [arguments["query"], *arguments.get("more_keywords", ())]
    found = call.db.grep(keywords, options=options, caller=call.caller)
    return _said(passages(found, arguments.get("limit", 10)))


def vector_search(call: Call) -> Said:
    """By meaning alone; what is too far from the question is left out."""
    from sennit.context.answers import results

    query = call.arguments["query"]
    files = call.db.recipes["files"]
    near = tuple(use for use in files.sources if use.source == "vector")
    recipe = replace(call.db.recipes["vector"], sources=near, limit=files.limit)
    result = call.db.search(
        query,
        recipe=recipe,
        limit=call.arguments.get("limit"),
        filters=call.arguments.get("filters"),
        caller=call.caller,
    )
    return _said(results(result, excerpt=_excerpt(query)))


def read_file(call: Call) -> Said:
    """A text file of the allowed folders."""
    from sennit.context.answers import DATA, clean

    arguments = call.arguments
    lines = None
    if "first_line" in arguments or "last_line" in arguments:
        first = arguments.get("first_line", 1)
        lines = (first, arguments.get("last_line", MAX_LINE))
    read = call.db.read_file(arguments["path"], lines=lines, caller=call.caller)
    text = clean(read.text)
    place = f"{read.path}:{read.first}-{read.last} of {read.lines:,} lines. {DATA}"
    values = {
        "path": read.path,
        "text": text,
        "first": read.first,
        "last": read.last,
        "lines": read.lines,
    }
    return Said((text, place), values)


def remember(call: Call) -> Said:
    """Keep a fact."""
    arguments = call.arguments
    record = call.db.remember(
        arguments["text"],
        title=arguments.get("title", ""),
        kind=arguments.get("kind", ""),
        metadata=arguments.get("metadata"),
        sensitivity=arguments.get("sensitivity"),
        scope=arguments.get("scope"),
        source=f"mcp:{call.client}" if call.client else "mcp",
        caller=call.caller,
    )
    values = {
        "id": record.id,
        "collection": record.collection,
        "sensitivity": record.sensitivity,
        "scope": record.scope,
    }
    return Said((f"Remembered as {record.id} in {record.collection}.",), values)


def explain_result(call: Call) -> Said:
    """Why a record is in an answer, or not."""
    from sennit.context.answers import verdict

    asked = _asked(call)
    why = call.db.why(
        asked.query,
        call.arguments["id"],
        recipe=asked.recipe,
        limit=call.arguments.get("limit"),
        filters=call.arguments.get("filters"),
        keywords=asked.keywords,
        include=asked.include,
        caller=call.caller,
    )
    return _said(verdict(why))


def plan_context(call: Call) -> Said:
    """Code for a prompt, within a budget."""
    from sennit.context.answers import DATA
    from sennit.hydration import rendered

    arguments = call.arguments
    if "episode" in arguments and not call.write:
        raise InvalidInput("A plan within an episode is kept, and you may only read; leave episode out.")
    plan = call.db.plan(
        arguments["query"],
        episode=arguments.get("episode"),
        max_tokens=arguments.get("max_tokens"),
        max_entities=arguments.get("max_entities"),
        allow_partial=arguments.get("allow_partial", False),
        caller=call.caller,
    )
    said = [f"Warning: {notice.message}" for notice in plan.warnings]
    number = f"{len(plan.entries)} of {len(plan.entries) + len(plan.dropped)} entities"
    said.append(f"{number}, {plan.tokens:,} of {plan.max_tokens:,} tokens ({plan.tokenizer}). {DATA}")
    return Said((rendered(plan) or "No code found.", "\n".join(said)), plan.to_dict(text=False))


def ask(call: Call) -> Said:
    """An answer in words, with citations."""
    from sennit.context.answers import DATA, clean, missing_sources, one_line, told_missing

    arguments = call.arguments
    answer = call.db.ask(
        arguments["query"],
        recipe=arguments.get("recipe"),
        limit=arguments.get("limit"),
        filters=arguments.get("filters"),
        editor=arguments.get("editor"),
        language=arguments.get("language"),
        caller=call.caller,
    )
    text = clean(answer.text)
    lines = [*(one_line(str(one)) for one in answer.citations), *missing_sources(answer.degraded)]
    if answer.model:
        lines.append(f"Written by {one_line(answer.model)}; check what matters.")
    values = {
        "query": answer.query,
        "text": text,
        "citations": [citation.to_dict() for citation in answer.citations],
        "model": answer.model or None,
        "degraded": told_missing(answer.degraded),
    }
    return Said((text, "\n".join([*lines, DATA])), values)


class _Asked(NamedTuple):
    query: str
    recipe: Recipe
    keywords: tuple[str, ...] | None
    include: tuple[str, ...]


def _asked(call: Call) -> _Asked:
    """The query by either of its names, the recipe it is for, its keywords, and further collections."""
    from sennit.recipes import find_recipe

    arguments = call.arguments
    query, other = arguments.get("query"), arguments.get("semantic_query")
    if query is not None and other is not None and query != other:
        raise InvalidInput("query and semantic_query are two names of one argument; give one of them.")
    query = other if query is None else query
    if query is None:
        raise InvalidInput(f"The argument 'query' is needed: {forms.QUERY['description']}")
    given = arguments.get("exact_keywords")
    named = arguments.get("recipe") or (None if given is None else "files")
    recipe = find_recipe(named or call.db.settings.search.recipe, call.db.recipes)
    keywords = None if given is None else keywords_of(given, query)
    # A recipe that names no collections searches memory as it searches everything.
    apart = recipe.collections and MEMORY not in recipe.collections
    return _Asked(query, recipe, keywords, (MEMORY,) if apart and arguments.get("include_memory") else ())


def keywords_of(given: str | Sequence[str], query: str) -> tuple[str, ...] | None:
    """The texts to find exactly; None when there are none, or only the query itself, and they are to be extracted."""
    if isinstance(given, str):
        if given.strip() == query.strip():
            return None
        given = [phrase or word for phrase, word in _WORD_OR_PHRASE.findall(given)]
    keywords = tuple(dict.fromkeys(word.strip() for word in given if word.strip()))
    return None if keywords in ((), (query.strip(),)) else keywords


def _excerpt(query: str) -> Callable[[str], str]:
    """The piece of a text that says most of what was asked for."""
    from sennit.apps.cli.snippets import snippet
    from sennit.context.answers import SNIPPET, clean

    # Two characters are left for the marks of what is cut off.
    return lambda text: snippet(clean(text), query, SNIPPET - 2, str)


def _said(told: Told) -> Said:
    return Said((told.text,), told.values)
