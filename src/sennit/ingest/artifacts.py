"""A whole document and its fragments, kept in step."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from sennit.ingest.chunk import Document, chunks, split_lines
from sennit.records import Record, split_id

CHUNKS: Final = "artifact_chunks"
"""The collection of the fragments."""

Cut = Callable[[Record], Sequence[str]]


def cut(artifact: Record) -> list[str]:
    """The fragments of a document, on natural boundaries."""
    return [chunk.text for chunk in chunks(Document(split_lines(artifact.text)))]


def fragments(artifact: Record, texts: Sequence[str]) -> Iterator[Record]:
    """The records of a document's fragments: they say what the whole says, and where they belong."""
    for index, text in enumerate(texts):
        yield replace(
            artifact,
            id=f"{artifact.id}#{index}",
            text=text,
            collection=CHUNKS,
            kind="chunk",
            parent=artifact.id,
            position=index,
            metadata={**artifact.metadata, "artifact_id": artifact.id, "chunk_index": index},
        )


def parts_of(connection: sqlite3.Connection, artifact: Record) -> Iterator[str]:
    """The full ids of the fragments that are kept of a document now."""
    found = connection.execute(
        "SELECT id FROM records WHERE parent = ? AND collection = ?", (artifact.id, CHUNKS)
    )
    return (name for (name,) in found.fetchall() if split_id(name)[0] == artifact.tenant)
