"""A worker process that turns files into records and vectors: `python -m sennit.ingest.worker_main`.

The first request is the task; the answer lists the embedding models that the worker could load. Every later request
holds some files, and the worker sends one answer for each file.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import IO, Final

import numpy as np

from sennit.embedding import Embedder, EmbeddingSpec, create_embedder
from sennit.errors import SennitError
from sennit.ingest.file_reader import UnreadableFile
from sennit.ingest.record_builder import KNOWN_PREFIX_BYTES, FileRecords, InProcessBuilder, PortableModel
from sennit.ingest.worker_protocol import decode_contents, decode_task, encode_outcome
from sennit.stores.codec import to_float16_bytes
from sennit.stores.prepared_records import PreparedRecord, prepare_record
from sennit.workers import Message, read_message, worker_streams, write_message

PREFIX: Final = np.dtype(">u8")
"""The prefix of a hash as a number that is ordered as its bytes are."""


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


class TextEmbedder:
    """Embeds the texts that the database has no vector of, each once in the life of the worker."""

    def __init__(self, embedder: Embedder, known: bytes) -> None:
        """`known` has the prefixes of the hashes of texts that have a vector, sorted."""
        self.fingerprint = embedder.fingerprint
        self._embedder = embedder
        self._known = np.frombuffer(known, PREFIX)
        self._embedded: set[bytes] = set()

    def embed(self, records: Sequence[PreparedRecord]) -> dict[bytes, bytes]:
        """Return the vectors of new texts by their hashes."""
        texts = {record.embedding_hash: record.embedding_text for record in records}
        for digest in [digest for digest, known in zip(texts, self._are_known(texts), strict=True) if known]:
            del texts[digest]
        self._embedded.update(texts)
        vectors = self._embedder.embed_documents(list(texts.values()))
        return dict(zip(texts, to_float16_bytes(vectors), strict=True))

    def _are_known(self, hashes: Collection[bytes]) -> list[bool]:
        prefixes = np.frombuffer(b"".join(digest[:KNOWN_PREFIX_BYTES] for digest in hashes), PREFIX)
        at = np.searchsorted(self._known, prefixes)
        stored = np.zeros(len(prefixes), bool)
        inside = at < len(self._known)
        stored[inside] = self._known[at[inside]] == prefixes[inside]
        return [
            known or digest in self._embedded for known, digest in zip(stored.tolist(), hashes, strict=True)
        ]


def _load_embedder(model: PortableModel) -> TextEmbedder | None:
    """Load the model; None if this process cannot load it or gets another fingerprint."""
    try:
        embedder = create_embedder(EmbeddingSpec(**json.loads(model.spec)))
    except SennitError:
        return None
    if embedder is None or embedder.fingerprint != model.fingerprint:
        return None
    return TextEmbedder(embedder, model.known)


def _prepare(
    outcome: FileRecords | UnreadableFile, embedders: Sequence[TextEmbedder]
) -> FileRecords | UnreadableFile:
    """Prepare the records for writing, and embed their texts."""
    if isinstance(outcome, UnreadableFile):
        return outcome
    records = list(map(prepare_record, outcome.records))
    vectors = {embedder.fingerprint: embedder.embed(records) for embedder in embedders}
    return replace(outcome, records=records, vectors=vectors)


if __name__ == "__main__":
    with worker_streams() as streams:
        serve(*streams)
