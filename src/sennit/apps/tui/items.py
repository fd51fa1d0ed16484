"""The results as the screen shows them: the same form for a search and for a grep."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sennit.context.status import status_message

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.folders.passages import GrepResult, Passage
    from sennit.results import Explanation, Hit, SearchResult, SourceTrace

GREP: Final = "grep"
"""The name of the exact text search in the list of recipes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """One result: its citation, its text, and its explanation."""

    rank: int
    title: str
    short_citation: str
    """The citation as it is shown: relative to the current or the home folder if it is inside."""
    citation: str
    path: str | None
    lines: tuple[int, int] | None
    text: str
    score: str
    about: str
    explanation: Explanation | None = None
    keywords: tuple[str, ...] = ()
    """The keywords that a grep found here."""
    matched: tuple[tuple[int, str], ...] = ()
    """The matching lines of a grep, with their numbers."""

    @property
    def start(self) -> int | None:
        """The line to show first."""
        if self.matched:
            return self.matched[0][0]
        return self.lines[0] if self.lines else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultList:
    """The results of a query, with the status line and warnings."""

    query: str
    recipe: str
    items: tuple[ResultRow, ...]
    status: str
    warnings: tuple[str, ...] = ()
    sources: tuple[SourceTrace, ...] = ()


def run_query(db: Database, query: str, recipe: str) -> ResultList:
    """Search with a recipe, or grep."""
    if recipe == GREP and GREP not in db.recipes:
        return from_grep(query, db.files.grep([query]))
    return from_search(db.search(query, recipe=recipe, explain=True))


def list_recipes(db: Database) -> list[tuple[str, str, str]]:
    """List the recipes: name, sources and description."""
    recipes = [
        (name, " + ".join(source.name for source in recipe.sources), recipe.about)
        for name, recipe in db.recipes.items()
    ]
    if GREP in db.recipes:
        return recipes
    return [*recipes, (GREP, "files", "Exact text in the files.")]


def from_search(result: SearchResult) -> ResultList:
    """Convert the result of a search."""
    return ResultList(
        query=result.query,
        recipe=result.recipe,
        items=tuple(_item_from_hit(hit) for hit in result),
        status=status_message(result),
        warnings=tuple(f"{source.source} did not answer: {source.reason}" for source in result.degraded),
        sources=result.trace.sources if result.trace else (),
    )


def from_grep(query: str, answer: GrepResult) -> ResultList:
    """Convert the result of a grep."""
    return ResultList(
        query=query,
        recipe=GREP,
        items=tuple(_item_from_passage(rank, passage) for rank, passage in enumerate(answer.passages, 1)),
        status=status_message(answer),
        warnings=(*answer.limits, *answer.skipped),
    )


def _item_from_hit(hit: Hit) -> ResultRow:
    return ResultRow(
        rank=hit.rank,
        title=hit.title,
        short_citation=shorten_path(hit.citation),
        citation=hit.citation,
        path=hit.location,
        lines=hit.record.lines,
        text=hit.text,
        score=f"{hit.score:.4f}",
        about="" if hit.collection == "default" else hit.collection,
        explanation=hit.explanation,
    )


def _item_from_passage(rank: int, passage: Passage) -> ResultRow:
    return ResultRow(
        rank=rank,
        title="",
        short_citation=shorten_path(passage.citation),
        citation=passage.citation,
        path=passage.path,
        lines=(passage.first, passage.last),
        text=passage.text,
        score=f"{passage.matches}×",
        about=", ".join(passage.keywords),
        keywords=passage.keywords,
        matched=tuple((number, line) for number, line, matches in passage.numbered() if matches),
    )


def shorten_path(citation: str) -> str:
    """Return a path relative to the current folder, or with `~` below the home folder, or unchanged."""
    for folder, prefix in ((Path.cwd(), ""), (Path.home(), f"~{os.sep}")):
        start = f"{folder}{os.sep}"
        if citation.startswith(start) and folder != folder.parent:
            return f"{prefix}{citation.removeprefix(start)}"
    return citation
