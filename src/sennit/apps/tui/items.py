"""What the screen shows of an answer: the same for a search and for a grep."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sennit.context.status import status

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.folders.passages import GrepAnswer, Passage
    from sennit.results import Explanation, Hit, Result, SourceTrace

GREP: Final = "grep"
"""The name under which exact text in the files stands among the recipes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One result: where it is, what it says, and why it is here."""

    rank: int
    title: str
    place: str
    """The citation as it is shown: from the current folder where it lies in there."""
    citation: str
    path: str | None
    lines: tuple[int, int] | None
    text: str
    score: str
    about: str
    explanation: Explanation | None = None
    keywords: tuple[str, ...] = ()
    """What a grep found here."""
    matched: tuple[tuple[int, str], ...] = ()
    """The lines it found it in, with their numbers."""

    @property
    def start(self) -> int | None:
        """The line to look at first."""
        if self.matched:
            return self.matched[0][0]
        return self.lines[0] if self.lines else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer to a question, and what is said about it."""

    query: str
    recipe: str
    items: tuple[Item, ...]
    status: str
    warnings: tuple[str, ...] = ()
    sources: tuple[SourceTrace, ...] = ()


def ask(db: Database, query: str, recipe: str) -> Answer:
    """Search with a recipe, or grep."""
    if recipe == GREP and GREP not in db.recipes:
        return of_grep(query, db.grep([query]))
    return of_result(db.search(query, recipe=recipe, explain=True))


def recipes_of(db: Database) -> list[tuple[str, str, str]]:
    """The ways to search: name, sources, and what it is for."""
    choices = [
        (name, " + ".join(use.name for use in recipe.sources), recipe.about)
        for name, recipe in db.recipes.items()
    ]
    own = GREP in db.recipes
    return choices if own else [*choices, (GREP, "files", "The very text, in the files themselves.")]


def of_result(result: Result) -> Answer:
    """What is shown of a search."""
    return Answer(
        query=result.query,
        recipe=result.recipe,
        items=tuple(_of_hit(hit) for hit in result),
        status=status(result),
        warnings=tuple(f"{source.source} did not answer: {source.reason}" for source in result.degraded),
        sources=result.trace.sources if result.trace else (),
    )


def of_grep(query: str, answer: GrepAnswer) -> Answer:
    """What is shown of a grep."""
    return Answer(
        query=query,
        recipe=GREP,
        items=tuple(_of_passage(rank, passage) for rank, passage in enumerate(answer.passages, 1)),
        status=status(answer),
        warnings=(*answer.limits, *answer.skipped),
    )


def _of_hit(hit: Hit) -> Item:
    return Item(
        rank=hit.rank,
        title=hit.title,
        place=shortened(hit.citation),
        citation=hit.citation,
        path=hit.record.path,
        lines=hit.record.lines,
        text=hit.text,
        score=f"{hit.score:.4f}",
        about="" if hit.collection == "default" else hit.collection,
        explanation=hit.explanation,
    )


def _of_passage(rank: int, passage: Passage) -> Item:
    return Item(
        rank=rank,
        title="",
        place=shortened(passage.citation),
        citation=passage.citation,
        path=passage.path,
        lines=(passage.first, passage.last),
        text=passage.text,
        score=f"{passage.matches}×",
        about=", ".join(passage.keywords),
        keywords=passage.keywords,
        matched=tuple((number, line) for number, line, matches in passage.numbered() if matches),
    )


def shortened(citation: str) -> str:
    """A path below the current folder from there, one below the home folder from there; others as they are."""
    for folder, sign in ((Path.cwd(), ""), (Path.home(), f"~{os.sep}")):
        below = f"{folder}{os.sep}"
        if citation.startswith(below) and folder != folder.parent:
            return f"{sign}{citation.removeprefix(below)}"
    return citation
