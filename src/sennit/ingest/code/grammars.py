"""The languages there are parsers for: a row each, and a file of queries in `queries/`.

A query file has two parts, before and after the line `; uses`. The first finds what is defined: `@definition.KIND`
with its `@name`, `@body`, `@doc` and `@owner`; `@scope` for what only qualifies names; `@wrap` for what belongs to
the one definition inside it; `@comment` and `@attached` for what belongs to the definition below; and imports. The
second finds names that are used: `@call`, `@reference` (a type) and `@mention` (any identifier). Where two
patterns find the same definition, the earlier one decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from typing import Final

from sennit.errors import MissingExtra
from sennit.ingest.code.sitter import Language, Parser, Query
from sennit.ingest.languages import kind_of

USES: Final = "\n; uses\n"


@dataclass(frozen=True, slots=True)
class Row:
    """Where a grammar is, and which query files hold for it."""

    package: str
    queries: tuple[str, ...]
    function: str = "language"


ROWS: Final = {
    "python": Row("tree_sitter_python", ("python",)),
    "go": Row("tree_sitter_go", ("go",)),
    "javascript": Row("tree_sitter_javascript", ("ecmascript", "javascript")),
    "typescript": Row("tree_sitter_typescript", ("ecmascript", "typescript"), "language_typescript"),
    "tsx": Row("tree_sitter_typescript", ("ecmascript", "typescript"), "language_tsx"),
    "rust": Row("tree_sitter_rust", ("rust",)),
    "java": Row("tree_sitter_java", ("java",)),
    "c": Row("tree_sitter_c", ("c",)),
    "cpp": Row("tree_sitter_cpp", ("c", "cpp")),
}

_OTHER_ENDINGS: Final = {"tsx": "tsx", "pyx": "", "pxd": ""}
"""Where the ending says more than the language does: JSX in TypeScript, and Cython, which no grammar here reads."""

_TWO_LANGUAGES: Final = {"h": ("c", "cpp")}
"""Endings of two languages: the grammar that understands more of the file has it."""


@dataclass(frozen=True, slots=True)
class Grammar:
    """A language ready to parse."""

    language: Language
    definitions: Query
    uses: Query

    def parser(self) -> Parser:
        """A parser of its own for each call: one is not safe to share among threads."""
        return Parser(self.language)


@cache
def grammar_of(language: str) -> Grammar:
    """The grammar of a language of `ROWS`."""
    row = ROWS[language]
    try:
        built = Language(getattr(import_module(row.package), row.function)())
    except ImportError as error:
        raise MissingExtra(f"Reading {language} by its grammar", "code") from error
    folder = resources.files(__package__) / "queries"
    parts = [(folder / f"{name}.scm").read_text(encoding="utf-8").partition(USES) for name in row.queries]
    return Grammar(
        built,
        Query(built, "\n".join(definitions for definitions, _, _ in parts)),
        Query(built, "\n".join(uses for _, _, uses in parts)),
    )


def languages_for(path: str) -> tuple[str, ...]:
    """The grammars that may fit a file, by its name; none when there is none."""
    ending = path.rpartition(".")[2].lower()
    if ending in _TWO_LANGUAGES:
        return _TWO_LANGUAGES[ending]
    language = _OTHER_ENDINGS.get(ending, kind_of(path)[1])
    return (language,) if language in ROWS else ()
