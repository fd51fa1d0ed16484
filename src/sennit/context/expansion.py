"""What comes with a result: the neighbouring parts of a document, and the other chunks of a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sennit.records import Record
from sennit.results import Hit, Page
from sennit.stores.embedded.snapshot import Snapshot

PAGE_SUMMARY: Final = "PAGE_SUMMARY"
PAGE_EXAMPLES: Final = "PAGE_EXAMPLES"

ChunksOf = Callable[[Record, Sequence[str]], Sequence[Record]]
"""Returns the chunks of a record's page that are of the given kinds."""


def neighbours_of(snapshot: Snapshot, record: Record, reach: int) -> tuple[Record, ...]:
    """Return a part with up to `reach` parts on either side, in order; empty for a record that is no part.

    A part that the caller may not see leaves no gap, so the answer does not show that it exists.
    """
    if record.parent is None or record.position is None or reach < 1:
        return ()
    first, last = max(0, record.position - reach), record.position + reach
    return tuple(snapshot.siblings(record, first, last))


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
    )
