"""The results as the screen shows them: the same form for a search and for a grep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from sennit.apps.excerpts import ExcerptOptions, excerpt_lines, is_code, quotes_file
from sennit.context.status import ONLY_NEAREST, status_message
from sennit.places import ALL_PROJECTS, shown_path

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.folders.passages import GrepResult, Passage
    from sennit.records import Record
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
    id: str = ""
    """The id of the record; empty for a passage of a grep."""
    query_id: str = ""
    """The id of the search that found it, for feedback."""
    explanation: Explanation | None = None
    language: str = ""
    """The programming language of the text; empty for prose."""
    quotes_file: bool = True
    """Whether the text is part of the file; the outline of a file of code is not."""
    keywords: tuple[str, ...] = ()
    """The keywords that a grep found here."""
    matched: tuple[tuple[int, str], ...] = ()
    """The matching lines of a grep or of code, with their numbers."""

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
    hints: tuple[str, ...] = ()
    """Why there are no results, and what would find some."""
    remark: str = ""
    """What to know before reading the results: that none of them fits the query."""


class RecipeChoice(NamedTuple):
    """A recipe, and how many records it can find."""

    name: str
    records: str
    sources: str
    about: str


class ProjectChoice(NamedTuple):
    """A project, its folder and its git revision."""

    name: str
    folder: str
    revision: str


def run_query(
    db: Database, query: str, recipe: str, filters: str = "", project: str | None = None
) -> ResultList:
    """Search with a recipe, or grep, which takes no filter."""
    if recipe == GREP and GREP not in db.recipes:
        return from_grep(query, db.files.grep([query], project=project))
    return from_search(
        db.search(query, recipe=recipe, filters=filters or None, project=project, explain=True)
    )


def list_projects(db: Database) -> list[ProjectChoice]:
    """List the projects, after the choice of all of them."""
    return [
        ProjectChoice(ALL_PROJECTS, "", ""),
        *(
            ProjectChoice(one.name, shown_path(one.path), "" if one.revision is None else str(one.revision))
            for one in db.files.projects()
        ),
    ]


def list_recipes(db: Database, project: str | None = None) -> list[RecipeChoice]:
    """List the recipes, each with the number of records in its collections."""
    counts = {one.name: one.records for one in db.collections(project=project)}
    recipes = []
    for name, recipe in db.recipes.items():
        searched = recipe.collections or counts
        records = sum(counts.get(collection, 0) for collection in searched)
        sources = " + ".join(source.name for source in recipe.sources)
        recipes.append(RecipeChoice(name, f"{records:,}", sources, recipe.about))
    if GREP in db.recipes:
        return recipes
    return [*recipes, RecipeChoice(GREP, "", "files", "Exact text in the files.")]


def from_search(result: SearchResult) -> ResultList:
    """Convert the result of a search."""
    return ResultList(
        query=result.query,
        recipe=result.recipe,
        items=tuple(_item_from_hit(hit, result.query, result.query_id) for hit in result),
        status=status_message(result),
        warnings=tuple(f"{source.source} did not answer: {source.reason}" for source in result.degraded),
        sources=result.trace.sources if result.trace else (),
        hints=tuple(hint.message for hint in result.hints),
        remark=ONLY_NEAREST if result and not result.fits else "",
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


def _item_from_hit(hit: Hit, query: str, query_id: str) -> ResultRow:
    return ResultRow(
        id=hit.id,
        query_id=query_id,
        rank=hit.rank,
        title=hit.title,
        short_citation=shown_path(hit.citation),
        citation=hit.citation,
        path=hit.location,
        lines=hit.record.lines,
        text=hit.text,
        score=f"{hit.relevance:.2f}",
        about="" if hit.collection == "default" else hit.collection,
        language=_language(hit.record),
        quotes_file=quotes_file(hit.record),
        explanation=hit.explanation,
        matched=_matching_lines(hit.record, query),
    )


def _language(record: Record) -> str:
    return str(record.metadata.get("language") or "") if is_code(record) else ""


def _matching_lines(record: Record, query: str) -> tuple[tuple[int, str], ...]:
    """The best lines of code that match the query; prose is shown by its best part instead."""
    if not is_code(record):
        return ()
    lines = excerpt_lines(record, record.text, query, ExcerptOptions())
    return tuple((line.number, line.text) for line in lines if line.number is not None and line.spans)


def _item_from_passage(rank: int, passage: Passage) -> ResultRow:
    return ResultRow(
        rank=rank,
        title="",
        short_citation=shown_path(passage.citation),
        citation=passage.citation,
        path=passage.path,
        lines=(passage.first, passage.last),
        text=passage.text,
        score=f"{passage.matches}×",
        about=", ".join(passage.keywords),
        keywords=passage.keywords,
        matched=tuple((number, line) for number, line, matches in passage.numbered() if matches),
    )
