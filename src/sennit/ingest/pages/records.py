"""Turns the chunks of a page into records."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sennit.ingest.pages.page import SUMMARY, DocPage, PageChunk
from sennit.ingest.text_profile import RecordIds, id_prefix
from sennit.records import Json, Record


def page_records(
    page: DocPage,
    *,
    path: str,
    collection: str = "docs",
    timestamp: datetime | None = None,
    metadata: Mapping[str, Json] | None = None,
) -> list[Record]:
    """Return one record per chunk. Its id is the path and a hash of the text, so it does not depend on other chunks."""
    ids = RecordIds(id_prefix(path))
    return [
        Record(
            id=ids.next_id(chunk.text),
            text=chunk.text,
            collection=collection,
            title=_title(page, chunk),
            kind=chunk.kind,
            path=path,
            url=page.url,
            lines=(chunk.first_line, chunk.last_line),
            parent=path,
            position=position,
            timestamp=timestamp,
            metadata={**(metadata or {}), **_metadata(page, chunk)},
        )
        for position, chunk in enumerate(page.chunks)
    ]


def _title(page: DocPage, chunk: PageChunk) -> str:
    path = chunk.heading_path
    return " > ".join(path if path and path[0] == page.name else (page.name, *path))


def _metadata(page: DocPage, chunk: PageChunk) -> dict[str, Json]:
    out: dict[str, Json] = {
        "page_name": page.name,
        "page_url": page.url,
        "section_title": chunk.title,
        "heading_path": list(chunk.heading_path),
    }
    if chunk.anchor:
        out["anchor"] = chunk.anchor
    if chunk.parts > 1:
        out |= {"part": chunk.part, "parts": chunk.parts}
    if page.tags:
        out["tags"] = list(page.tags)
    if chunk.kind == SUMMARY and page.description:
        out["description"] = page.description
    return out
