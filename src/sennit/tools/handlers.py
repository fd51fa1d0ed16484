"""One handler per tool: a function from validated arguments to text and structured content."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from sennit.errors import InvalidInput, SourceError
from sennit.feedback import MAX_NAME_CHARACTERS
from sennit.search_parameters import KEYWORDS
from sennit.tools import schemas

if TYPE_CHECKING:
    from sennit.context.tool_output import TokenBudget, ToolOutput
    from sennit.engine import Database
    from sennit.engine.search_request import SearchRequest
    from sennit.privacy import Caller
    from sennit.recipes import Recipe

MEMORY_COLLECTION: Final = "memory"
ARTIFACTS_RECIPE: Final = "artifacts"

LISTED_RECORDS: Final = 20
"""Records of one page of list_records, unless the call wants another number."""

END_OF_FILE: Final = 1 << 40
"""A line number beyond the end of any file, for a range without a last line."""

_WORD_OR_PHRASE: Final = re.compile(r'"([^"]+)"|(\S+)')


class ToolCall(NamedTuple):
    """One call of a tool. Its arguments match the tool's input schema."""

    db: Database
    caller: Caller
    source: str
    """The provenance of what it writes."""
    arguments: dict[str, Any]
    can_write: bool = True
    folders: Sequence[str] = ()
    """Where the client works: the first that is in a project chooses it for a call that names none."""

    @property
    def project(self) -> str | None:
        """The project of the call; None for all."""
        given = self.arguments.get("project")
        if given is not None:
            return str(given)
        found = (self.db.files.project_at(folder) for folder in self.folders)
        return next((project for project in found if project is not None), None)


class ToolResponse(NamedTuple):
    """The result of a tool: blocks of text for the model, and the same as structured content."""

    text_blocks: Sequence[str]
    structured_content: dict[str, Any]


def hybrid_search(call: ToolCall) -> ToolResponse:
    """Search several sources at once and fuse them into one ranking."""
    from sennit.context.tool_output import render_results

    request, recipe = build_request(call)
    result = call.db.search(request)
    if not result.answered:
        raise SourceError(f"no source answered ({'; '.join(map(str, result.degraded))})")
    return _response(
        render_results(
            result,
            _searched(call, recipe, request.include),
            recipe.score_label,
            _budget(call),
            passages=bool(request.neighbours),
        )
    )


def memory_search(call: ToolCall) -> ToolResponse:
    """Search the memory collection only."""
    from sennit.context.tool_output import render_memories

    result = call.db.search(
        call.arguments["query"],
        recipe="default",
        limit=call.arguments.get("limit", 5),
        filters=call.arguments.get("filters"),
        min_relevance=call.arguments.get("min_relevance", 0.0),
        collections=(MEMORY_COLLECTION,),
        caller=call.caller,
    )
    return _response(render_memories(result, _budget(call)))


def grep_search(call: ToolCall) -> ToolResponse:
    """Find exact text in files as they are on disk now."""
    from sennit.context.tool_output import render_passages
    from sennit.folders.options import GrepOptions

    arguments = call.arguments
    options = GrepOptions(
        regex=arguments.get("regex", False),
        case=arguments.get("case", "smart"),
        globs=tuple(arguments.get("globs", ())),
        hidden=arguments.get("hidden", False),
    )
    keywords = [arguments["query"], *arguments.get("more_keywords", ())]
    found = call.db.files.grep(keywords, options=options, project=call.project, caller=call.caller)
    return _response(render_passages(found, arguments.get("limit", 10), _budget(call)))


def vector_search(call: ToolCall) -> ToolResponse:
    """Search by meaning only, with the distance threshold of the recipe `files`."""
    from sennit.context.tool_output import render_texts

    files = call.db.recipes["files"]
    vector_sources = tuple(config for config in files.sources if config.source == "vector")
    recipe = replace(call.db.recipes["vector"], sources=vector_sources, limit=files.limit)
    result = call.db.search(
        call.arguments["query"],
        recipe=recipe,
        limit=call.arguments.get("limit"),
        filters=call.arguments.get("filters"),
        min_relevance=call.arguments.get("min_relevance", 0.0),
        project=call.project,
        caller=call.caller,
    )
    return _response(render_texts(result, _searched(call, recipe), _budget(call)))


def read_file(call: ToolCall) -> ToolResponse:
    """Read a text file from the allowed folders."""
    from sennit.context.sanitize import one_line, sanitize
    from sennit.context.tool_output import DATA_NOTICE

    arguments = call.arguments
    lines = None
    if "first_line" in arguments or "last_line" in arguments:
        first = arguments.get("first_line", 1)
        lines = (first, arguments.get("last_line", END_OF_FILE))
    read = call.db.files.read(arguments["path"], lines=lines, project=call.project, caller=call.caller)
    text = sanitize(read.text)
    location = f"{one_line(read.location)} of {read.lines:,} {read.unit}s. {DATA_NOTICE}"
    values = {
        "path": read.path,
        "text": text,
        "first_line": read.first,
        "last_line": read.last,
        "total_lines": read.lines,
    }
    return ToolResponse((text, location), values)


def remember(call: ToolCall) -> ToolResponse:
    """Store a fact in the memory collection."""
    arguments = call.arguments
    record = call.db.remember(
        arguments["text"],
        title=arguments.get("title", ""),
        kind=arguments.get("kind", ""),
        metadata=arguments.get("metadata"),
        sensitivity=arguments.get("sensitivity"),
        scope=arguments.get("scope"),
        source=call.source,
        caller=call.caller,
    )
    values = {
        "id": record.id,
        "collection": record.collection,
        "sensitivity": record.sensitivity,
        "scope": record.scope,
    }
    return ToolResponse((f"Remembered as {record.id} in {record.collection}.",), values)


def forget(call: ToolCall) -> ToolResponse:
    """Remove records by reference, by session or by filter."""
    arguments = call.arguments
    given = [name for name in ("ids", "session", "filters") if name in arguments]
    if len(given) != 1:
        raise InvalidInput("forget takes one of ids, session and filters.")
    db = call.db
    if given == ["session"]:
        removed = db.memory.forget(arguments["session"], caller=call.caller)
    elif given == ["filters"]:
        removed = db.remove(where=arguments["filters"], caller=call.caller)
    else:
        found = db.find_removable(arguments["ids"], caller=call.caller)
        removed = db.remove([record.id for record in found], caller=call.caller)
    return ToolResponse((f"Removed {removed:,} record{'' if removed == 1 else 's'}.",), {"removed": removed})


def feedback(call: ToolCall) -> ToolResponse:
    """Record what was done with results."""
    from sennit.feedback import Feedback

    arguments = call.arguments
    ids = arguments["ids"]
    if not ids:
        raise InvalidInput("feedback needs the ids of results.")
    query_id = arguments.get("query_id")
    given = [
        Feedback(
            query_id or call.db.feedback.last_query_id(name, caller=call.caller),
            arguments["action"],
            name,
            application=call.source[:MAX_NAME_CHARACTERS],
        )
        for name in ids
    ]
    recorded = len(call.db.feedback.add_many(given, caller=call.caller))
    return ToolResponse((f"Recorded {recorded}.",), {"recorded": recorded})


def list_records(call: ToolCall) -> ToolResponse:
    """List collections, folders and records."""
    from sennit.context.tool_output import render_records

    arguments = call.arguments
    collection = arguments.get("collection")
    page = call.db.records(
        arguments.get("filters"),
        collections=() if collection is None else (collection,),
        limit=arguments.get("limit", LISTED_RECORDS),
        after=arguments.get("after"),
        caller=call.caller,
    )
    state = call.db.status(caller=call.caller)
    collections = [(one.name, one.records) for one in state.collections]
    folders = [one.to_dict() for one in state.folders]
    held = {one.name for one in state.collections}
    recipes = [
        name for name, recipe in call.db.recipes.items() if held.intersection(recipe.searched() or held)
    ]
    return _response(render_records(page.records, page.total, page.next, collections, folders, recipes))


def explain_result(call: ToolCall) -> ToolResponse:
    """Explain why a record is in a result, or not."""
    from sennit.context.tool_output import render_explanation

    request, _ = build_request(call)
    return _response(render_explanation(call.db.why(request, call.arguments["id"])))


def plan_context(call: ToolCall) -> ToolResponse:
    """Choose code for a prompt, within a token budget."""
    from sennit.context.sanitize import one_line
    from sennit.context.tool_output import DATA_NOTICE

    arguments = call.arguments
    if "episode" in arguments and not call.can_write:
        raise InvalidInput("A plan within an episode is stored, and you may only read; leave episode out.")
    plan = call.db.plan(
        arguments["query"],
        episode=arguments.get("episode"),
        max_tokens=arguments.get("max_tokens"),
        max_entities=arguments.get("max_entities"),
        allow_partial=arguments.get("allow_partial", False),
        project=call.project,
        caller=call.caller,
    )
    notes = [f"Warning: {one_line(warning.message)}" for warning in plan.warnings]
    entities = f"{len(plan.entries)} of {len(plan.entries) + len(plan.dropped)} entities"
    notes.append(
        f"{entities}, {plan.tokens:,} of {plan.max_tokens:,} tokens ({plan.tokenizer}). {DATA_NOTICE}"
    )
    return ToolResponse((plan.prompt or "No code found.", "\n".join(notes)), plan.to_dict(text=False))


def ask(call: ToolCall) -> ToolResponse:
    """Answer a question in words, with citations."""
    from sennit.context.citations import filter_citations
    from sennit.context.sanitize import one_line, sanitize
    from sennit.context.tool_output import DATA_NOTICE, degraded_lines, degraded_to_json

    arguments = call.arguments
    answer = call.db.ask(
        arguments["query"],
        recipe=arguments.get("recipe"),
        limit=arguments.get("limit"),
        filters=arguments.get("filters"),
        editor=arguments.get("editor"),
        language=arguments.get("language"),
        project=call.project,
        caller=call.caller,
    )
    # Removing an invisible character can turn text into a citation, so the citations are checked again.
    text, _, _ = filter_citations(sanitize(answer.text), (one.number for one in answer.citations))
    notes = [
        *(one_line(str(citation)) for citation in answer.citations),
        *degraded_lines(answer.degraded),
    ]
    if answer.model:
        notes.append(f"Written by {one_line(answer.model)}; check what matters.")
    values = {
        "query_id": answer.query_id,
        "query": answer.query,
        "text": text,
        "citations": [citation.to_dict() for citation in answer.citations],
        "model": answer.model or None,
        "degraded": degraded_to_json(answer.degraded),
    }
    return ToolResponse((text, "\n".join([*notes, DATA_NOTICE])), values)


def build_request(call: ToolCall) -> tuple[SearchRequest, Recipe]:
    """The search that hybrid_search and explain_result ask for, from the names that the tools have, and its recipe."""
    from sennit.engine.search_request import SearchRequest
    from sennit.recipes import find_recipe

    arguments = call.arguments
    query = arguments["query"]
    exact_keywords = arguments.get("exact_keywords")
    recipe_name = arguments.get("recipe") or (None if exact_keywords is None else "files")
    recipe = find_recipe(recipe_name or _default_recipe(call), call.db.recipes)
    keywords = None if exact_keywords is None else parse_keywords(exact_keywords, query)
    # A recipe without a list of collections searches all of them, and memory with them.
    leaves_memory_out = recipe.collections and MEMORY_COLLECTION not in recipe.collections
    include = (MEMORY_COLLECTION,) if leaves_memory_out and arguments.get("include_memory") else ()
    request = SearchRequest(
        query,
        recipe=recipe,
        limit=arguments.get("limit"),
        filters=arguments.get("filters"),
        project=call.project,
        caller=call.caller,
        keywords=keywords,
        include=include,
        min_relevance=arguments.get("min_relevance", 0.0),
        recency=arguments.get("recency"),
        neighbours=int(arguments.get("expand_neighbors", False)),
        editor=arguments.get("editor"),
        language=arguments.get("language"),
    )
    return request, recipe


def parse_keywords(given: str | Sequence[str], query: str) -> tuple[str, ...] | None:
    """The texts to match exactly. None if there are none, or only the query itself: then the engine extracts them."""
    if isinstance(given, str):
        if given.strip() == query.strip():
            return None
        given = [phrase or word for phrase, word in _WORD_OR_PHRASE.findall(given)]
    given = KEYWORDS.check(given)
    keywords = tuple(dict.fromkeys(word.strip() for word in given if word.strip()))
    return None if keywords in ((), (query.strip(),)) else keywords


def _default_recipe(call: ToolCall) -> str:
    """The recipe of the settings if they name one; else `artifacts` wherever its collections hold something."""
    settings = call.db.settings
    if "search.recipe" not in settings.origins and ARTIFACTS_RECIPE in call.db.recipes:
        held = {one.name for one in call.db.collections(caller=call.caller)}
        if held.intersection(call.db.recipes[ARTIFACTS_RECIPE].collections):
            return ARTIFACTS_RECIPE
    return settings.search.recipe


def _searched(call: ToolCall, recipe: Recipe, include: Sequence[str] = ()) -> tuple[str, ...]:
    """The collections of a search: those of its recipe, or all that hold something that the caller may see."""
    return recipe.searched(include) or tuple(one.name for one in call.db.collections(caller=call.caller))


def _budget(call: ToolCall) -> TokenBudget:
    """The budget for the text of an answer."""
    from sennit.context.tool_output import TokenBudget
    from sennit.hydration.tokenizer import load_tokenizer

    return TokenBudget(call.arguments.get("max_tokens", schemas.MAX_TOKENS), load_tokenizer().count)


def _response(output: ToolOutput) -> ToolResponse:
    """The output of a tool; its notes are a block of their own."""
    notes = ["\n".join(output.notes)] if output.notes else []
    return ToolResponse((output.text, *notes), output.values)
