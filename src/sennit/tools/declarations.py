"""The table of tools: name, schemas, hints, the description by which a model chooses, and the handler."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from sennit.tools import handlers, schemas


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool as the client sees it, and the handler that runs in a worker thread."""

    name: str
    title: str
    description: str
    input_schema: schemas.Schema
    output_schema: schemas.Schema
    run: Callable[[handlers.ToolCall], handlers.ToolResponse]
    writes: bool = False
    """Whether it stores something. Such a tool is not offered to callers without write access."""
    stores_result: bool = False
    """Whether it can store something without changing what searches find."""
    idempotent: bool = True
    destructive: bool = False
    """Whether it removes what is stored."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """Other names of arguments."""
    failure_prefix: str = ""
    """What its error messages begin with."""


_QUERY_ALIASES: Final = {"semantic_query": "query"}
_SEARCH_PROPERTIES: Final = {
    "query": schemas.QUERY,
    "semantic_query": schemas.string("Another name for `query`."),
    "exact_keywords": schemas.KEYWORDS,
    "recipe": schemas.RECIPE,
    "limit": schemas.LIMIT,
    "include_memory": schemas.INCLUDE_MEMORY,
    "filters": schemas.FILTERS,
    "project": schemas.PROJECT,
    "editor": schemas.EDITOR,
    "language": schemas.LANGUAGE,
    "min_relevance": schemas.MIN_RELEVANCE,
    "recency": schemas.RECENCY,
}
"""The arguments that hybrid_search and explain_result share."""

TOOLS: Final = (
    Tool(
        name="hybrid_search",
        title="Search by words and by meaning",
        description="Search the user's notes, documents, conversations and files by words and meaning. Use it first. "
        "Returns ids, scores and the beginning of each text.",
        input_schema=schemas.arguments(
            "query",
            **_SEARCH_PROPERTIES,
            expand_neighbors=schemas.boolean("Add adjacent chunks."),
            max_tokens=schemas.TOKENS,
        ),
        output_schema=schemas.RESULTS,
        run=handlers.hybrid_search,
        aliases=_QUERY_ALIASES,
        failure_prefix="Search failed: ",
    ),
    Tool(
        name="memory_search",
        title="Search what was remembered",
        description="Search only what `remember` stored: facts, preferences, decisions, in full.",
        input_schema=schemas.arguments(
            "query",
            **schemas.as_in_search("query", "filters", "min_relevance", "max_tokens"),
            limit=schemas.number_of("memories", "5"),
        ),
        output_schema=schemas.MEMORIES,
        run=handlers.memory_search,
    ),
    Tool(
        name="grep_search",
        title="Find exact text in files",
        description="Find an exact text in files as they are on disk now: names, identifiers, error messages. "
        "Returns the lines around each match.",
        input_schema=schemas.arguments(
            "query",
            query=schemas.string("The literal text.", minLength=1),
            more_keywords=schemas.strings("Further texts."),
            regex=schemas.boolean("The texts are regular expressions."),
            case=schemas.string("Default smart.", enum=["smart", "sensitive", "ignore"]),
            globs=schemas.strings('Such as ["*.py", "!tests/**"].'),
            hidden=schemas.boolean("Also dot files."),
            limit=schemas.integer("Most passages; default 10.", maximum=schemas.MAX_PASSAGES),
            **schemas.as_in_search("project", "max_tokens"),
        ),
        output_schema=schemas.PASSAGES,
        run=handlers.grep_search,
    ),
    Tool(
        name="vector_search",
        title="Search by meaning alone",
        description="Search by meaning only; returns whole passages that are close enough. For questions whose answer "
        "uses other words.",
        input_schema=schemas.arguments(
            "query",
            **schemas.as_in_search("query", "limit", "filters", "project", "min_relevance", "max_tokens"),
        ),
        output_schema=schemas.TEXTS,
        run=handlers.vector_search,
    ),
    Tool(
        name="read_file",
        title="Read a text file",
        description="Read a file, or some of its lines, by the path that a search cites.",
        input_schema=schemas.arguments(
            "path",
            path=schemas.string("A path or place as cited: a.md:3-9."),
            first_line=schemas.integer("From 1."),
            last_line=schemas.integer("Included."),
            **schemas.as_in_search("project"),
        ),
        output_schema=schemas.FILE,
        run=handlers.read_file,
    ),
    Tool(
        name="remember",
        title="Remember a fact",
        description="Store a fact, preference or decision for later conversations, as a sentence clear on its own. "
        "Only what the user wants stored; never secrets.",
        input_schema=schemas.arguments(
            "text",
            text=schemas.string("What to remember.", minLength=1),
            title=schemas.string("A short title."),
            kind=schemas.string("Such as fact, decision, person, place."),
            metadata={"type": "object", "description": "Fields for filters."},
            sensitivity=schemas.string("normal, sensitive or private."),
            scope=schemas.string("Who may see it: me, team or public."),
        ),
        output_schema=schemas.MEMORY,
        run=handlers.remember,
        writes=True,
        idempotent=False,
    ),
    Tool(
        name="forget",
        title="Remove what is stored",
        description="Remove records for good; only when the user asks. Give one of ids, session, filters; check with "
        "list_records first.",
        input_schema=schemas.arguments(
            ids=schemas.strings("Ids, paths with lines, or paths of whole files."),
            session=schemas.string("A whole conversation.", minLength=1),
            **schemas.as_in_search("filters"),
        ),
        output_schema=schemas.REMOVED,
        run=handlers.forget,
        writes=True,
        destructive=True,
    ),
    Tool(
        name="feedback",
        title="Say which results helped",
        description="Report results that you used, cited, or found wrong.",
        input_schema=schemas.arguments(
            "action",
            "ids",
            action=schemas.string("What you did.", enum=["use", "cite", "reject"]),
            ids=schemas.strings("Of results."),
            query_id=schemas.string("Default: the last search."),
        ),
        output_schema=schemas.RECORDED,
        run=handlers.feedback,
        writes=True,
        idempotent=False,
    ),
    Tool(
        name="list_records",
        title="See what is stored",
        description="See what is stored: collections, folders, recipes that find something, and records page by page, "
        "unranked.",
        input_schema=schemas.arguments(
            collection=schemas.string("Only this collection.", minLength=1),
            **schemas.as_in_search("filters"),
            limit=schemas.number_of("records", "20"),
            after=schemas.string("The `next` of the last page."),
        ),
        output_schema=schemas.RECORDS,
        run=handlers.list_records,
    ),
    Tool(
        name="explain_result",
        title="Explain a result",
        description="Explain why a record is in the result of a hybrid_search, or what kept it out.",
        input_schema=schemas.arguments(
            "id",
            "query",
            id=schemas.string("Its id or citation.", minLength=1),
            **schemas.as_in_search(*_SEARCH_PROPERTIES),
        ),
        output_schema=schemas.EXPLANATION,
        run=handlers.explain_result,
        aliases=_QUERY_ALIASES,
    ),
    Tool(
        name="plan_context",
        title="Gather code for a task",
        description="Gather the indexed code that a task needs, within a token budget: files and symbols it names, "
        "code around them, then code close in meaning. Use it before changing code.",
        input_schema=schemas.arguments(
            "query",
            query=schemas.string("The task, with names of files and symbols."),
            episode=schemas.string("Names the task; later turns keep its code.", minLength=1, maxLength=200),
            max_tokens=schemas.integer("Default 4000.", maximum=1_000_000),
            max_entities=schemas.integer("Most entities by meaning; default 10.", maximum=1000),
            allow_partial=schemas.boolean("Shorten what does not fit."),
            **schemas.as_in_search("project"),
        ),
        output_schema=schemas.PLAN,
        run=handlers.plan_context,
        stores_result=True,
        idempotent=False,
    ),
    Tool(
        name="ask",
        title="Answer from documentation",
        description="Answer a question in words from indexed documentation, with numbered citations, when a short "
        "answer is enough.",
        input_schema=schemas.arguments(
            "query",
            **schemas.as_in_search("query", "filters", "project", "editor", "language"),
            recipe=schemas.string("Default `docs`."),
            limit=schemas.number_of("sections to answer from", "5"),
        ),
        output_schema=schemas.ANSWER,
        run=handlers.ask,
    ),
)
"""Every tool, in the order in which a client lists them."""
