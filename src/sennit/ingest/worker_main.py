"""A worker process that turns files into records and vectors: `python -m sennit.ingest.worker_main`.

The first request is the task; the answer lists the embedding models that the worker could load. Every later request
holds some files, and the worker sends one answer for each file.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import IO

from sennit.embedding import Embedder, EmbeddingSpec, create_embedder
from sennit.errors import SennitError
from sennit.ingest.file_reader import UnreadableFile
from sennit.ingest.record_builder import FileRecords, InProcessBuilder, PortableModel
from sennit.ingest.worker_protocol import decode_contents, decode_task, encode_outcome
from sennit.stores.codec import to_float16_bytes
from sennit.stores.prepared_records import PreparedRecord, prepare_record
from sennit.workers import Message, read_message, worker_streams, write_message


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Read the task, then answer requests until the stream of requests ends."""
    first = read_message(requests)
    if first is None:
        return
    task = decode_task(first)
    builder = InProcessBuilder(task)
    embedders = [embedder for embedder in map(_load_embedder, task.models) if embedder is not None]
    write_message(answers, Message([embedder.fingerprint for embedder in embedders]))
    while (request := read_message(requests)) is not None:
        for content in decode_contents(request):
            (outcome,) = builder.build([content])
            write_message(answers, encode_outcome(_prepare(outcome, embedders)))


def _load_embedder(model: PortableModel) -> Embedder | None:
    """Load the model; None if this process cannot load it or gets another fingerprint."""
    try:
        embedder = create_embedder(EmbeddingSpec(**json.loads(model.spec)))
    except SennitError:
        return None
    return embedder if embedder is not None and embedder.fingerprint == model.fingerprint else None


def _prepare(
    outcome: FileRecords | UnreadableFile, embedders: Sequence[Embedder]
) -> FileRecords | UnreadableFile:
    """Prepare the records for writing, and embed their texts."""
    if isinstance(outcome, UnreadableFile):
        return outcome
    records = list(map(prepare_record, outcome.records))
    vectors = {model.fingerprint: _embed(model, records) for model in embedders}
    return replace(outcome, records=records, vectors=vectors)


def _embed(embedder: Embedder, records: Sequence[PreparedRecord]) -> dict[bytes, bytes]:
    texts = {record.embedding_hash: record.embedding_text for record in records}
    return dict(zip(texts, to_float16_bytes(embedder.embed_documents(list(texts.values()))), strict=True))


if __name__ == "__main__":
    with worker_streams() as streams:
        serve(*streams)
