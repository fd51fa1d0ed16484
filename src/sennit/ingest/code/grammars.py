"""The tree-sitter grammars: one row in `GRAMMARS` and a query file in `queries/` for each language.

A query file has two parts, separated by the line `; uses`. The first part captures definitions: `@definition.KIND` with
`@name`, `@body`, `@doc` and `@owner`; `@scope` for a node that only qualifies names; `@wrap` for a node that belongs to
the single definition inside it; `@variant` with `@name` for a value of an enum; `@comment` and `@attached` for nodes that belong to the definition below; and imports.
The second part captures uses of names: `@call`, `@reference` (a type) and `@mention` (any identifier). If two patterns
match the same definition, the first one counts.

A grammar may have a query for macros around definitions: `@macro` is the invocation and `@items` its braces.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from typing import Final

from sennit.errors import MissingExtra
from sennit.ingest.languages import file_kind

try:
    from tree_sitter import Language, Node, Parser, Query, QueryCursor, Tree
except ModuleNotFoundError as error:
    raise MissingExtra("Parsing code", "code") from error

__all__ = [
    "GRAMMARS",
    "Grammar",
    "GrammarSource",
    "Node",
    "QueryCursor",
    "Tree",
    "candidate_languages",
    "load_grammar",
]

USES_MARKER: Final = "\n; uses\n"


@dataclass(frozen=True, slots=True)
class GrammarSource:
    """The package of a grammar, the names of its query files, and the function that returns the language."""

    package: str
    queries: tuple[str, ...]
    function: str = "language"
    item_macros: str = ""
    """The query for macros around definitions."""


GRAMMARS: Final = {
    "python": GrammarSource("tree_sitter_python", ("python",)),
    "go": GrammarSource("tree_sitter_go", ("go",)),
    "javascript": GrammarSource("tree_sitter_javascript", ("ecmascript", "javascript")),
    "typescript": GrammarSource(
        "tree_sitter_typescript", ("ecmascript", "typescript"), "language_typescript"
    ),
    "tsx": GrammarSource("tree_sitter_typescript", ("ecmascript", "typescript"), "language_tsx"),
    "rust": GrammarSource(
        "tree_sitter_rust",
        ("rust",),
        item_macros="""
            (source_file (macro_invocation (token_tree) @items) @macro)
            (declaration_list (macro_invocation (token_tree) @items) @macro)
        """,
    ),
    "java": GrammarSource("tree_sitter_java", ("java",)),
    "c": GrammarSource("tree_sitter_c", ("c",)),
    "cpp": GrammarSource("tree_sitter_cpp", ("c", "cpp")),
}

_LANGUAGE_BY_EXTENSION: Final = {"tsx": "tsx", "pyx": "", "pxd": ""}
"""Extensions with a grammar of their own (JSX in TypeScript) or without one (Cython)."""

_AMBIGUOUS_EXTENSIONS: Final = {"h": ("c", "cpp")}
"""Extensions that two languages share. The grammar with fewer syntax errors is used."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A loaded grammar with its queries."""

    language: Language
    definitions: Query
    uses: Query
    item_macros: Query | None = None

    def parser(self) -> Parser:
        """Create a parser. Parsers are not thread-safe, so each call has its own."""
        return Parser(self.language)


@cache
def load_grammar(language: str) -> Grammar:
    """Load the grammar of a language in `GRAMMARS`; raises MissingExtra if it is not installed."""
    source = GRAMMARS[language]
    try:
        loaded = Language(getattr(import_module(source.package), source.function)())
    except ImportError as error:
        raise MissingExtra(f"Parsing {language}", "code") from error
    folder = resources.files(__package__) / "queries"
    parts = [
        (folder / f"{name}.scm").read_text(encoding="utf-8").partition(USES_MARKER) for name in source.queries
    ]
    return Grammar(
        loaded,
        Query(loaded, "\n".join(definitions for definitions, _, _ in parts)),
        Query(loaded, "\n".join(uses for _, _, uses in parts)),
        Query(loaded, source.item_macros) if source.item_macros else None,
    )


def candidate_languages(path: str) -> tuple[str, ...]:
    """The languages that a file may have, by its extension; empty if there is no grammar."""
    extension = path.rpartition(".")[2].lower()
    if extension in _AMBIGUOUS_EXTENSIONS:
        return _AMBIGUOUS_EXTENSIONS[extension]
    language = _LANGUAGE_BY_EXTENSION.get(extension, file_kind(path)[1])
    return (language,) if language in GRAMMARS else ()
