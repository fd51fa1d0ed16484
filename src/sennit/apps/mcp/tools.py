"""The tools: each is a row of TOOLS, with its form, its hints, the words a model chooses it by, and what it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from sennit.apps.mcp import calls, forms


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool, as the client is told of it, and what it runs in a worker thread."""

    name: str
    title: str
    about: str
    takes: forms.Schema
    gives: forms.Schema
    run: Callable[[calls.Call], calls.Said]
    writes: bool = False
    keeps: bool = False
    """Whether it can be asked to keep what it did, without changing what is searched."""
    idempotent: bool = True


_ASKED: Final = {
    "query": forms.QUERY,
    "semantic_query": forms.text("Another name of `query`.", maxLength=100_000),
    "exact_keywords": forms.KEYWORDS,
    "recipe": forms.RECIPE,
    "limit": forms.LIMIT,
    "include_memory": forms.INCLUDE_MEMORY,
    "filters": forms.FILTERS,
}
"""What a search takes, and so does the explanation of one."""

TOOLS: Final = (
    Tool(
        name="hybrid_search",
        title="Search by words and by meaning",
        about="Search everything that is kept: notes, documents, conversations and indexed files, by exact words and "
        "by meaning at once, in one ranking. Use it first for any question about the user's own material. Each result "
        "has an id, a citation and a snippet; read_file gives the whole file of a path, explain_result says why a "
        "result is where it is.",
        takes=forms.takes(
            **_ASKED,
            expand_neighbors=forms.flag(
                "Give each result that is a part of a document with the part before and after it."
            ),
        ),
        gives=forms.RESULTS,
        run=calls.hybrid_search,
    ),
    Tool(
        name="memory_search",
        title="Search what was remembered",
        about="Search only the collection `memory`: facts, preferences and decisions kept by the tool remember. "
        "Gives each memory whole.",
        takes=forms.takes(
            "query",
            query=forms.QUERY,
            limit=forms.number("How many memories. Default: 5.", most=forms.MAX_LIMIT),
            filters=forms.FILTERS,
        ),
        gives=forms.MEMORIES,
        run=calls.memory_search,
    ),
    Tool(
        name="grep_search",
        title="Find exact text in files",
        about="Find lines in the allowed folders that hold a text exactly, as the files are on disk now. Gives each "
        "match with ten lines before and after it, matched lines marked, with path and line numbers. Use it for "
        "names, identifiers and error messages; use hybrid_search for questions.",
        takes=forms.takes(
            "query",
            query=forms.text(
                "The text to find, literally; or a regular expression where `regex` is true.", minLength=1
            ),
            more_keywords=forms.texts("Further texts to find in the same pass."),
            regex=forms.flag("Take the texts as regular expressions."),
            case=forms.text(
                "`smart`: upper and lower case are told apart where the text has upper case.",
                enum=["smart", "sensitive", "ignore"],
            ),
            globs=forms.texts('Only files like these, such as ["*.py", "!tests/**"].'),
            hidden=forms.flag("Also files whose names begin with a dot."),
            limit=forms.number("How many passages. Default: 10.", most=forms.MAX_LIMIT),
        ),
        gives=forms.PASSAGES,
        run=calls.grep_search,
    ),
    Tool(
        name="vector_search",
        title="Search by meaning alone",
        about="Search by meaning only, and leave out what is not near enough to the question. Use it when the words "
        "of the answer are not known; otherwise hybrid_search finds more.",
        takes=forms.takes("query", query=forms.QUERY, limit=forms.LIMIT, filters=forms.FILTERS),
        gives=forms.RESULTS,
        run=calls.vector_search,
    ),
    Tool(
        name="read_file",
        title="Read a text file",
        about="Read a UTF-8 text file from the allowed folders, whole or some of its lines. Takes the paths that the "
        "searches cite. An answer that begins with [ERROR: CODE] says why a file cannot be read.",
        takes=forms.takes(
            "path",
            path=forms.text("The path, absolute or relative to an allowed folder. It is taken as it is."),
            first_line=forms.number("The first line to read, from 1."),
            last_line=forms.number("The last line to read."),
        ),
        gives=forms.FILE,
        run=calls.read_file,
    ),
    Tool(
        name="remember",
        title="Remember a fact",
        about="Keep a fact, preference or decision for later conversations. Write it as a sentence that stands on its "
        "own. It is kept durably, and memory_search and hybrid_search find it from then on. Only what the user wants "
        "kept; never secrets such as passwords.",
        takes=forms.takes(
            "text",
            text=forms.text("What to remember.", minLength=1),
            title=forms.text("A few words that name it."),
            kind=forms.text("Such as fact, preference, decision, person, place."),
            metadata={"type": "object", "description": "Further fields, for filters."},
            sensitivity=forms.text("A level such as normal, sensitive or private."),
            scope=forms.text("Who may see it, such as me, team or public."),
        ),
        gives=forms.REMEMBERED,
        run=calls.remember,
        writes=True,
        idempotent=False,
    ),
    Tool(
        name="explain_result",
        title="Explain a result",
        about="Say why a record is in the answer to a question, or which stage and which number kept it out. Takes "
        "the arguments of the hybrid_search that it is about, and the id of the record.",
        takes=forms.takes(
            "id",
            id=forms.text("The id of a record, as a search gives it.", minLength=1),
            **_ASKED,
        ),
        gives=forms.VERDICT,
        run=calls.explain_result,
    ),
    Tool(
        name="plan_context",
        title="Gather code for a task",
        about="Gather the code that a task is about, within a budget of tokens: the files and symbols that the task "
        "names or that its stack traces show, what earlier turns of the same episode had, what is around them, and "
        "then what is near in meaning. Use it before changing indexed code. Gives each entity with its path and lines, "
        "and says what did not fit.",
        takes=forms.takes(
            "query",
            query=forms.text(
                "The task in words, with the names of files and symbols, and stack traces as they are.",
                maxLength=100_000,
            ),
            episode=forms.text(
                "The name of the task or conversation: later turns then have what earlier ones had.",
                minLength=1,
                maxLength=200,
            ),
            max_tokens=forms.number("The budget in tokens. Default: 4000, or as set.", most=1_000_000),
            max_entities=forms.number("The budget in entities. Default: 10, or as set.", most=1000),
            allow_partial=forms.flag("Shorten what does not fit to its signature and the lines that matter."),
        ),
        gives=forms.PLAN,
        run=calls.plan_context,
        keeps=True,
        idempotent=False,
    ),
    Tool(
        name="ask",
        title="Answer from documentation",
        about="Answer a question in words from what is indexed, each statement with a numbered citation. For a question "
        "about a product's documentation when a short answer is enough; hybrid_search gives the passages themselves. "
        "Written by the language model of sennit's settings; without one, put together from sentences that were found.",
        takes=forms.takes(
            "query",
            query=forms.QUERY,
            recipe=forms.text("How to search. Default: `docs`, pages of documentation."),
            limit=forms.number("How many sections to answer from. Default: 5.", most=forms.MAX_LIMIT),
            filters=forms.FILTERS,
            editor=forms.text("The code that the question is about.", maxLength=500_000),
            language=forms.text("The language of that code. Default: by its looks."),
        ),
        gives=forms.ANSWER,
        run=calls.ask,
    ),
)
"""Every tool, in the order in which a client lists them."""
