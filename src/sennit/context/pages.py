"""Results organised by page: for each page its summary, its examples if they are short, then what was found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sennit.records import Record
from sennit.results import Hit, Page

SUMMARY: Final = "PAGE_SUMMARY"
EXAMPLES: Final = "PAGE_EXAMPLES"


def organised(
    hits: Sequence[Hit], chunks_of: Callable[[Record, Sequence[str]], Sequence[Record]], short: int
) -> tuple[Page, ...]:
    """The pages of the hits, best first. `chunks_of` gives the chunks of a record's page that are of some kinds."""
    by_page: dict[str, list[Hit]] = {}
    for hit in hits:
        by_page.setdefault(hit.record.parent or hit.id, []).append(hit)
    return tuple(_page(found, chunks_of, short) for found in by_page.values())


def _page(
    found: Sequence[Hit], chunks_of: Callable[[Record, Sequence[str]], Sequence[Record]], short: int
) -> Page:
    first = found[0].record
    along = chunks_of(first, (SUMMARY, EXAMPLES)) if first.parent is not None else ()
    summary = [chunk for chunk in along if chunk.kind == SUMMARY]
    examples = [chunk for chunk in along if chunk.kind == EXAMPLES]
    if sum(len(chunk.text) for chunk in examples) >= short:
        examples = []
    sections = [hit.record for hit in found if hit.record.kind not in (SUMMARY, EXAMPLES)]
    chunks = {chunk.id: chunk for chunk in (*summary, *examples, *sections)}
    name = first.metadata.get("page_name")
    return Page(
        name if isinstance(name, str) and name else first.title or first.path or first.id,
        first.url,
        max(hit.score for hit in found),
        tuple(chunks.values()),
    )
