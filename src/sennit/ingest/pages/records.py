"""From a page to the records of its chunks."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from datetime import datetime

from sennit.ingest.pages.model import SUMMARY, Chunk, Page
from sennit.ingest.readers import prefix_of
from sennit.records import Json, Record


def page_records(
    page: Page,
    *,
    path: str,
    collection: str = "docs",
    timestamp: datetime | None = None,
    metadata: Mapping[str, Json] | None = None,
) -> list[Record]:
    """A record for each chunk. Its id is the path and a hash, so a chunk keeps it when others change."""
    numbered = Numbered(prefix_of(path))
    return [
        Record(
            id=numbered.id_of(chunk.text),
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


class Numbered:
    """Ids of the texts of one file: a prefix and a hash, and a number where a text comes again."""

    __slots__ = ("_prefix", "_used")

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._used: Counter[str] = Counter()

    def id_of(self, text: str) -> str:
        digest = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        self._used[digest] += 1
        again = f"-{self._used[digest]}" if self._used[digest] > 1 else ""
        return f"{self._prefix}{digest}{again}"


def _title(page: Page, chunk: Chunk) -> str:
    path = chunk.heading_path
    return " > ".join(path if path and path[0] == page.name else (page.name, *path))


def _metadata(page: Page, chunk: Chunk) -> dict[str, Json]:
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
