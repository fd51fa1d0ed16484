"""From a file's bytes to its records."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from sennit.ingest import chunk, pdf, shape
from sennit.ingest.chunk import Chunk, Document, split_lines
from sennit.ingest.html import VERSION as HTML_VERSION
from sennit.ingest.html import html
from sennit.ingest.languages import kind_of
from sennit.ingest.reading import decode
from sennit.records import Json, Record

MAX_PATH_IN_ID: Final = 900
"""Bytes of a path that fit an id beside the rest; a longer path stands in ids as its hash."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _Text:
    documents: list[Document]
    metadata: dict[str, Json]


def reader_of(path: str) -> str:
    """Names the way a file is read; a file read another way than before is read again."""
    kind, language = kind_of(path)
    reader = f"{kind}:{language}/{chunk.VERSION}"
    return f"{reader}.{HTML_VERSION}" if kind == "html" else reader


def prefix_of(path: str) -> str:
    """What the ids of a file's records begin with."""
    encoded = path.encode()
    if len(encoded) > MAX_PATH_IN_ID:
        return f"file:{hashlib.blake2b(encoded, digest_size=16).hexdigest()}#"
    return f"{path}#"


def prefixes_of(path: str) -> tuple[str, ...]:
    """What the ids of a file's records begin with, by whatever profile it was read."""
    return (prefix_of(path), f"{path}::", "code:")


def records(path: str, data: bytes, collection: str, mtime_ns: int) -> list[Record]:
    """The records of a file; raises Unreadable when it has no text.

    An id is the path and a hash of the passage, so a passage keeps its id when others change around it.
    """
    kind, language = kind_of(path)
    text = _pdf(data) if kind == "pdf" else _text(kind, language, data)
    if language:
        text.metadata["language"] = language
    prefix = prefix_of(path)
    timestamp = moment(mtime_ns)
    used: Counter[str] = Counter()
    out: list[Record] = []
    for position, passage in enumerate(_chunks(text.documents)):
        digest = hashlib.blake2b(passage.text.encode(), digest_size=6).hexdigest()
        used[digest] += 1
        again = f"-{used[digest]}" if used[digest] > 1 else ""
        paged = passage.page is not None
        out.append(
            Record(
                id=f"{prefix}{digest}{again}",
                text=passage.text,
                collection=collection,
                title=passage.title,
                kind=kind,
                path=path,
                lines=None if paged else (passage.first, passage.last),
                parent=path,
                position=position,
                timestamp=timestamp,
                metadata={**text.metadata, "page": passage.page} if paged else text.metadata,
            )
        )
    return out


def _chunks(documents: list[Document]) -> Iterator[Chunk]:
    for document in documents:
        yield from chunk.chunks(document)


def _text(kind: str, language: str, data: bytes) -> _Text:
    decoded = decode(data)
    metadata: dict[str, Json] = {}
    if decoded.encoding != "utf-8":
        metadata["encoding"] = decoded.encoding
    if decoded.replaced:
        metadata["replaced_characters"] = decoded.replaced
    if kind == "html":
        return _Text([html(decoded.text)], metadata)
    lines = split_lines(decoded.text)
    if kind == "markdown":
        return _Text([shape.markdown(lines)], metadata)
    if language == "rst":
        return _Text([shape.restructured(lines)], metadata)
    return _Text([Document(lines, code=kind == "code")], metadata)


def _pdf(data: bytes) -> _Text:
    found = pdf.pages(data)
    documents = [
        Document(split_lines(text), page=number) for number, text in enumerate(found.texts, 1) if text.strip()
    ]
    return _Text(documents, {"broken_pages": found.broken} if found.broken else {})


def moment(mtime_ns: int) -> datetime | None:
    """When the file was last changed, or None for a time that no calendar holds."""
    try:
        return _EPOCH + timedelta(microseconds=mtime_ns // 1000)
    except OverflowError:
        return None
