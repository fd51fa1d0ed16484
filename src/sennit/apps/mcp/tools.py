"""The table of tools: name, schemas, hints, the description by which a model chooses, and the handler."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sennit.apps.mcp import handlers, schemas
from sennit.search_parameters import QUERY, RECIPE


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
    """Whether it changes what searches find. Such a tool is not offered to callers without write access."""
    stores_plan: bool = False
    """Whether an argument makes it store its result, without changing what searches find."""
    idempotent: bool = True
    destructive: bool = False
    """Whether it removes what is stored."""


_SEARCH_PROPERTIES: Final = {
    "query": schemas.QUERY,
    "semantic_query": schemas.string("Another name for `query`.", **QUERY.schema),
    "exact_keywords": schemas.KEYWORDS,
    "recipe": schemas.RECIPE,
    "limit": schemas.LIMIT,
    "include_memory": schemas.INCLUDE_MEMORY,
    "filters": schemas.FILTERS,
    "editor": schemas.EDITOR,
    "language": schemas.LANGUAGE,
    "min_relevance": schemas.MIN_RELEVANCE,
}
"""The arguments that hybrid_search and explain_result share."""

TOOLS: Final = (
    Tool(
        name="hybrid_search",
        title="Search by words and by meaning",
        description="Search everything that is stored: notes, documents, conversations and indexed files, by exact "
        "words and by meaning at once, in one ranking. Use it first for any question about the user's own material. "
        "Each result has an id, a citation and a snippet; read_file returns the whole file of a path, explain_result "
        "says why a result has its rank.",
        input_schema=schemas.arguments(
            **_SEARCH_PROPERTIES,
            expand_neighbors=schemas.boolean(
                "Return each chunk of a document together with the chunks before and after it."
            ),
        ),
        output_schema=schemas.RESULTS,
        run=handlers.hybrid_search,
    ),
    Tool(
        name="memory_search",
        title="Search what was remembered",
        description="Search only the collection `memory`: facts, preferences and decisions stored by the tool "
        "remember. Returns the full text of each memory.",
        input_schema=schemas.arguments(
            "query",
            query=schemas.QUERY,
            limit=schemas.number_of("memories", "5"),
            filters=schemas.FILTERS,
            min_relevance=schemas.MIN_RELEVANCE,
        ),
        output_schema=schemas.MEMORIES,
        run=handlers.memory_search,
    ),
    Tool(
        name="grep_search",
        title="Find exact text in files",
        description="Find lines in the allowed folders that contain an exact text, as the files are on disk now. "
        "Returns each match with ten lines before and after it, matching lines marked, with path and line numbers. "
        "Use it for names, identifiers and error messages; use hybrid_search for questions.",
        input_schema=schemas.arguments(
            "query",
            query=schemas.string(
                "The text to find, literally; a regular expression if `regex` is true.", minLength=1
            ),
            more_keywords=schemas.strings("Further texts to find in the same pass."),
            regex=schemas.boolean("Treat the texts as regular expressions."),
            case=schemas.string(
                "`smart`: case-sensitive only if the text has upper-case letters.",
                enum=["smart", "sensitive", "ignore"],
            ),
            globs=schemas.strings('Search only matching files, such as ["*.py", "!tests/**"].'),
            hidden=schemas.boolean("Also search files whose names begin with a dot."),
            limit=schemas.integer("Maximum number of passages. Default: 10.", maximum=schemas.MAX_PASSAGES),
        ),
        output_schema=schemas.PASSAGES,
        run=handlers.grep_search,
    ),
    Tool(
        name="vector_search",
        title="Search by meaning alone",
        description="Search by meaning only, and leave out results that are not close enough to the query. Use it when "
        "you do not know the words of the answer; otherwise hybrid_search finds more.",
        input_schema=schemas.arguments(
            "query",
            query=schemas.QUERY,
            limit=schemas.LIMIT,
            filters=schemas.FILTERS,
            min_relevance=schemas.MIN_RELEVANCE,
        ),
        output_schema=schemas.RESULTS,
        run=handlers.vector_search,
    ),
    Tool(
        name="read_file",
        title="Read a text file",
        description="Read a UTF-8 text file from the allowed folders, completely or a range of lines. Takes the paths "
        "that the searches cite. An answer that begins with [ERROR: CODE] says why a file cannot be read.",
        input_schema=schemas.arguments(
            "path",
            path=schemas.string(
                "The path, absolute or relative to an allowed folder; also with lines, as a search cites it: "
                "notes/a.md:3-9. It is taken literally."
            ),
            first_line=schemas.integer("The first line to read, from 1."),
            last_line=schemas.integer("The last line to read."),
        ),
        output_schema=schemas.FILE,
        run=handlers.read_file,
    ),
    Tool(
        name="remember",
        title="Remember a fact",
        description="Store a fact, preference or decision for later conversations. Write it as a sentence that is "
        "clear on its own. The write is durable, and memory_search and hybrid_search find it from then on. Store only "
        "what the user wants stored; never secrets such as passwords.",
        input_schema=schemas.arguments(
            "text",
            text=schemas.string("What to remember.", minLength=1),
            title=schemas.string("A short title."),
            kind=schemas.string("Such as fact, preference, decision, person, place."),
            metadata={"type": "object", "description": "Further fields, for filters."},
            sensitivity=schemas.string("A level such as normal, sensitive or private."),
            scope=schemas.string("Who may see it, such as me, team or public."),
        ),
        output_schema=schemas.MEMORY,
        run=handlers.remember,
        writes=True,
        idempotent=False,
    ),
    Tool(
        name="forget",
        title="Remove what is stored",
        description="Remove records for good: some by id, a whole conversation, or all that match a filter. Use it only "
        "when the user asks for it, and look at what matches with list_records first.",
        input_schema=schemas.arguments(
            ids=schemas.strings(
                "Records to remove, as searches cite them: ids, or paths with lines such as notes/a.md:3-9. A path "
                "without lines means all records of the file."
            ),
            session=schemas.string("The name of a conversation to forget.", minLength=1),
            filters=schemas.FILTERS,
        ),
        output_schema=schemas.REMOVED,
        run=handlers.forget,
        writes=True,
        destructive=True,
    ),
    Tool(
        name="list_records",
        title="See what is stored",
        description="List what the database holds: the collections with their numbers of records, the indexed folders, "
        "and records, all of them or those that match, page by page. Use it to learn what there is to search, or "
        "before forget. It does not rank; hybrid_search does.",
        input_schema=schemas.arguments(
            collection=schemas.string("Only records of this collection.", minLength=1),
            filters=schemas.FILTERS,
            limit=schemas.number_of("records", "20"),
            after=schemas.string("The `next` of the page before."),
        ),
        output_schema=schemas.RECORDS,
        run=handlers.list_records,
    ),
    Tool(
        name="explain_result",
        title="Explain a result",
        description="Explain why a record is in a search result, or which stage and which number kept it out. Takes "
        "the arguments of that hybrid_search, and the id of the record.",
        input_schema=schemas.arguments(
            "id",
            id=schemas.string(
                "A record as a search returns it: its id or citation (path with lines), or the beginning of its id.",
                minLength=1,
            ),
            **_SEARCH_PROPERTIES,
        ),
        output_schema=schemas.EXPLANATION,
        run=handlers.explain_result,
    ),
    Tool(
        name="plan_context",
        title="Gather code for a task",
        description="Gather the code that a task is about, within a token budget: the files and symbols that the task "
        "names or that its stack traces show, the code of earlier turns of the same episode, the code around them, "
        "and then code that is close in meaning. Use it before changing indexed code. Returns each entity with its "
        "path and lines, and lists what did not fit.",
        input_schema=schemas.arguments(
            "query",
            query=schemas.string(
                "The task in words, with the names of files and symbols, and stack traces unchanged.",
                **QUERY.schema,
            ),
            episode=schemas.string(
                "The name of the task or conversation. Later turns then include the code of earlier ones.",
                minLength=1,
                maxLength=200,
            ),
            max_tokens=schemas.integer(
                "The budget in tokens. Default: from the settings (4000).", maximum=1_000_000
            ),
            max_entities=schemas.integer(
                "The most entities that meaning adds. Default: from the settings (10).", maximum=1000
            ),
            allow_partial=schemas.boolean(
                "Shorten an entity that does not fit to its signature and most relevant lines."
            ),
        ),
        output_schema=schemas.PLAN,
        run=handlers.plan_context,
        stores_plan=True,
        idempotent=False,
    ),
    Tool(
        name="ask",
        title="Answer from documentation",
        description="Answer a question in words from what is indexed, each statement with a numbered citation. Use it "
        "for a question about a product's documentation when a short answer is enough; hybrid_search returns the "
        "passages themselves. The language model of sennit's settings writes the answer; without one, it consists of "
        "sentences that were found.",
        input_schema=schemas.arguments(
            "query",
            query=schemas.QUERY,
            recipe=schemas.string("How to search. Default: `docs`, pages of documentation.", **RECIPE.schema),
            limit=schemas.number_of("sections to answer from", "5"),
            filters=schemas.FILTERS,
            editor=schemas.EDITOR,
            language=schemas.LANGUAGE,
        ),
        output_schema=schemas.ANSWER,
        run=handlers.ask,
    ),
)
"""Every tool, in the order in which a client lists them."""
