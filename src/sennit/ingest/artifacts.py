"""Artifacts: whole documents that are stored together with their chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from sennit.ingest.chunk import Document, chunks, split_lines
from sennit.records import CHUNK_COLLECTION, Record

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
