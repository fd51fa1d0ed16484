"""A program that makes records of files, with the vectors of their texts: `python -m sennit.ingest.program`.

It is told its task, says which models it has, and answers each request file by file until there are no more.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import IO

from sennit.embedding import Embedder, EmbeddingSpec, build
from sennit.errors import SennitError
from sennit.ingest.making import Here, Made, Model
from sennit.ingest.reading import Unreadable
from sennit.ingest.wire import as_contents, as_task, of_outcome
from sennit.programs import Message, receive, send, serving
from sennit.stores.embedded.codec import half
from sennit.stores.embedded.prepared import Prepared, prepared


def serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    """Be told the task, and do it."""
    told = receive(requests)
    if told is None:
        return
    task = as_task(told)
    here = Here(task)
    embedders = [embedder for embedder in map(_embedder, task.models) if embedder is not None]
    send(answers, Message([embedder.fingerprint for embedder in embedders]))
    while (request := receive(requests)) is not None:
        for content in as_contents(request):
            (outcome,) = here.make([content])
            send(answers, of_outcome(_completed(outcome, embedders)))


def _embedder(model: Model) -> Embedder | None:
    """The model, if what can be made of its specification here is the same one."""
    try:
        embedder = build(EmbeddingSpec(**json.loads(model.spec)))
    except SennitError:
        return None
    return embedder if embedder is not None and embedder.fingerprint == model.fingerprint else None


def _completed(outcome: Made | Unreadable, embedders: Sequence[Embedder]) -> Made | Unreadable:
    """The records ready to be written, with their vectors."""
    if isinstance(outcome, Unreadable):
        return outcome
    ready = list(map(prepared, outcome.records))
    return Made(ready, {one.fingerprint: _vectors(one, ready) for one in embedders})


def _vectors(embedder: Embedder, records: Sequence[Prepared]) -> dict[bytes, bytes]:
    texts = {record.embedding: record.embedding_text for record in records}
    return dict(zip(texts, half(embedder.embed_documents(list(texts.values()))), strict=True))


if __name__ == "__main__":
    with serving() as streams:
        serve(*streams)
