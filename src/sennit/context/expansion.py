"""The stages after the cut: the neighbouring parts of a document, and the other chunks of a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

from sennit.ranking.stages import ResultStageOutput, StageContext, stage
from sennit.records import Record
from sennit.results import Hit, Page, SearchResult

MAX_REACH: Final = 50

PAGE_SUMMARY: Final = "PAGE_SUMMARY"
PAGE_EXAMPLES: Final = "PAGE_EXAMPLES"

ChunksOf = Callable[[Record, Sequence[str]], Sequence[Record]]
"""Returns the chunks of a record's page that are of the given kinds."""


@stage
@dataclass(frozen=True, slots=True)
class Neighbours:
    """Adds to each hit that is a part of a document up to `reach` parts on either side."""

    name: ClassVar[str] = "neighbours"
    runs: ClassVar[Literal["after_cut"]] = "after_cut"

    reach: int = 1

    def __post_init__(self) -> None:
        if type(self.reach) is not int or not 1 <= self.reach <= MAX_REACH:
            raise ValueError(f"reach must be a whole number from 1 to {MAX_REACH}, not {self.reach!r}")

    def apply(self, result: SearchResult, context: StageContext) -> ResultStageOutput:
        hits = tuple(replace(hit, neighbours=self._expand(hit.record, context)) for hit in result.hits)
        reasons = {
            hit.key: f"with {len(hit.neighbours) - 1} adjacent"
            for hit in hits
            if context.explain and len(hit.neighbours) > 1
        }
        return ResultStageOutput(replace(result, hits=hits), reasons)

    def _expand(self, record: Record, context: StageContext) -> tuple[Record, ...]:
        """Return a part among its neighbours, in order; empty for a record that is no part.

        A part that the caller may not see leaves no gap, so the answer does not show that it exists.
        """
        if record.parent is None or record.position is None:
            return ()
        first, last = max(0, record.position - self.reach), record.position + self.reach
        return tuple(context.siblings(record, first, last))


@stage
@dataclass(frozen=True, slots=True)
class GroupByPage:
    """Also groups the hits by page. A page includes its examples if they have fewer characters than the number."""

    name: ClassVar[str] = "group_by_page"
    runs: ClassVar[Literal["after_cut"]] = "after_cut"

    examples_shorter_than: int = 500

    def __post_init__(self) -> None:
        value = self.examples_shorter_than
        if type(value) is not int or value < 0:
            raise ValueError(f"examples_shorter_than must be a whole number of at least 0, not {value!r}")

    def apply(self, result: SearchResult, context: StageContext) -> ResultStageOutput:
        pages = organise_by_page(result.hits, context.siblings_of_kind, self.examples_shorter_than)
        reasons = {}
        if context.explain:
            names = {chunk.id: page.name for page in pages for chunk in page.chunks}
            reasons = {hit.key: f"on page {names[hit.id]}" for hit in result.hits if hit.id in names}
        return ResultStageOutput(replace(result, pages=pages), reasons)


def organise_by_page(hits: Sequence[Hit], chunks_of: ChunksOf, short: int) -> tuple[Page, ...]:
    """Return the pages of the hits, best first.

    Each page has its summary, its examples if they have fewer than `short` characters, and the sections found.
    """
    by_page: dict[str, list[Hit]] = {}
    for hit in hits:
        by_page.setdefault(hit.record.parent or hit.id, []).append(hit)
    return tuple(_make_page(page_hits, chunks_of, short) for page_hits in by_page.values())


def _make_page(hits: Sequence[Hit], chunks_of: ChunksOf, short: int) -> Page:
    first = hits[0].record
    extra = chunks_of(first, (PAGE_SUMMARY, PAGE_EXAMPLES)) if first.parent is not None else ()
    summary = [chunk for chunk in extra if chunk.kind == PAGE_SUMMARY]
    examples = [chunk for chunk in extra if chunk.kind == PAGE_EXAMPLES]
    if sum(len(chunk.text) for chunk in examples) >= short:
        examples = []
    sections = [hit.record for hit in hits if hit.record.kind not in (PAGE_SUMMARY, PAGE_EXAMPLES)]
    chunks = {chunk.id: chunk for chunk in (*summary, *examples, *sections)}
    name = first.metadata.get("page_name")
    return Page(
        name if isinstance(name, str) and name else first.title or first.path or first.id,
        first.url,
        max(hit.score for hit in hits),
        tuple(chunks.values()),
        hits[0].location,
    )
