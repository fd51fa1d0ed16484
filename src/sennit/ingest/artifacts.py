"""Artifacts: whole documents that are stored together with their chunks."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from sennit.ingest.chunk import Document, chunks, split_lines
from sennit.records import Record, split_id

CHUNK_COLLECTION: Final = "artifact_chunks"
"""The collection of the chunks."""

ArtifactSplitter = Callable[[Record], Sequence[str]]


def split_artifact(artifact: Record) -> list[str]:
    """Split a document into the texts of its chunks, on natural boundaries."""
    return [chunk.text for chunk in chunks(Document(split_lines(artifact.text)))]


def chunk_records(artifact: Record, texts: Sequence[str]) -> Iterator[Record]:
    """The records of the chunks of a document. They have its fields and metadata, and refer to it."""
    for index, text in enumerate(texts):
        yield replace(
            artifact,
            id=f"{artifact.id}#{index}",
            text=text,
            collection=CHUNK_COLLECTION,
            kind="chunk",
            parent=artifact.id,
            position=index,
            metadata={**artifact.metadata, "artifact_id": artifact.id, "chunk_index": index},
        )


def chunk_ids(connection: sqlite3.Connection, artifact: Record) -> Iterator[str]:
    """The full ids of the chunks that are stored for a document."""
    rows = connection.execute(
        "SELECT id FROM records WHERE parent = ? AND collection = ?", (artifact.id, CHUNK_COLLECTION)
    )
    return (name for (name,) in rows.fetchall() if split_id(name)[0] == artifact.tenant)
