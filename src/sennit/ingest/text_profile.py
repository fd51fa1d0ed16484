"""From the bytes of a text file to records of its passages."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from sennit.ingest import chunk, markup, pdf
from sennit.ingest.chunk import Chunk, Document, split_lines
from sennit.ingest.file_reader import decode
from sennit.ingest.html import HTML_VERSION, parse_html
from sennit.ingest.languages import file_kind
from sennit.records import FRAGMENT_FIELD, Json, Record

MAX_PATH_BYTES_IN_ID: Final = 900
"""Ids hold the path up to this length, and the hash of a longer one."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class _ParsedFile:
    documents: list[Document]
    metadata: dict[str, Json]


def reader_version(path: str) -> str:
    """Names the reader of a path and its version. When the name changes, the file is indexed again."""
    kind, language = file_kind(path)
    reader = f"{kind}:{language}/{chunk.VERSION}"
    versions = {"html": HTML_VERSION, "markdown": markup.MARKDOWN_VERSION}
    return f"{reader}.{versions[kind]}" if kind in versions else reader


def id_prefix(path: str) -> str:
    """The prefix of the ids of the records of a file at this place."""
    encoded = path.encode()
    if len(encoded) > MAX_PATH_BYTES_IN_ID:
        return f"file:{hashlib.blake2b(encoded, digest_size=16).hexdigest()}#"
    return f"{path}#"


def id_prefixes(path: str) -> tuple[str, ...]:
    """The prefixes that the ids of the records of a file at this place can have, whatever read it."""
    return (id_prefix(path), f"{path}::", "code:")


class RecordIds:
    """Creates the ids of one file: a prefix and a hash, and a number if a text repeats."""

    __slots__ = ("_prefix", "_used")

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._used: Counter[str] = Counter()

    def next_id(self, text: str) -> str:
        digest = hashlib.blake2b(text.encode(), digest_size=6).hexdigest()
        self._used[digest] += 1
        suffix = f"-{self._used[digest]}" if self._used[digest] > 1 else ""
        return f"{self._prefix}{digest}{suffix}"


def file_records(path: str, data: bytes, collection: str, mtime_ns: int) -> list[Record]:
    """The records of a file; raises UnreadableFile if it has no text.

    An id is the path and a hash of the passage, so a passage keeps its id when the text around it changes.
    """
    kind, language = file_kind(path)
    parsed = _parse_pdf(data) if kind == "pdf" else _parse_text(kind, language, data)
    if language:
        parsed.metadata["language"] = language
    ids = RecordIds(id_prefix(path))
    timestamp = modified_at(mtime_ns)
    out: list[Record] = []
    for position, passage in enumerate(_chunks(parsed.documents)):
        has_page = passage.page is not None
        out.append(
            Record(
                id=ids.next_id(passage.text),
                text=passage.text,
                collection=collection,
                title=passage.title,
                kind=kind,
                path=path,
                lines=None if has_page else (passage.first, passage.last),
                parent=path,
                position=position,
                timestamp=timestamp,
                metadata={**parsed.metadata, "page": passage.page, FRAGMENT_FIELD: f"page={passage.page}"}
                if has_page
                else parsed.metadata,
            )
        )
    return out


def _chunks(documents: list[Document]) -> Iterator[Chunk]:
    for document in documents:
        yield from chunk.chunks(document)


def _parse_text(kind: str, language: str, data: bytes) -> _ParsedFile:
    decoded = decode(data)
    metadata: dict[str, Json] = {}
    if decoded.encoding != "utf-8":
        metadata["encoding"] = decoded.encoding
    if decoded.replaced:
        metadata["replaced_characters"] = decoded.replaced
    if kind == "html":
        return _ParsedFile([parse_html(decoded.text)], metadata)
    lines = split_lines(decoded.text)
    if kind == "markdown":
        return _ParsedFile([markup.parse_markdown(lines)], metadata)
    if language == "rst":
        return _ParsedFile([markup.parse_rst(lines)], metadata)
    return _ParsedFile([Document(lines, code=kind == "code")], metadata)


def _parse_pdf(data: bytes) -> _ParsedFile:
    pages = pdf.extract_pages(data)
    documents = [
        Document(split_lines(text), page=number) for number, text in enumerate(pages.texts, 1) if text.strip()
    ]
    return _ParsedFile(documents, {"broken_pages": pages.broken} if pages.broken else {})


def page_texts(data: bytes) -> list[tuple[int, str]]:
    """Return the text of each page of a PDF with its number; raises UnreadableFile with the reason."""
    return list(enumerate(pdf.extract_pages(data).texts, 1))


def modified_at(mtime_ns: int) -> datetime | None:
    """The modification time, or None if datetime cannot represent it."""
    try:
        return _EPOCH + timedelta(microseconds=mtime_ns // 1000)
    except OverflowError:
        return None
