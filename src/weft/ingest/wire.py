"""What a program that makes records and the one that asks it say to each other.

Records cross as the rows that
the database keeps, so what was checked where they were made is not checked again; their metadata and texts stand apart,
behind each other, which spares writing and reading them as JSON strings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from weft.ingest.making import Content, Made, Model, Task
from weft.ingest.reading import Unreadable
from weft.programs import Message
from weft.stores.embedded.codec import from_values, to_values


def of_task(task: Task) -> Message:
    return Message(asdict(task))


def as_task(message: Message) -> Task:
    head = message.head
    models = tuple(Model(*model) for model in head["models"])
    return Task(head["profile"], head["collection"], tuple(head["roots"]), models)


def of_contents(contents: Iterable[Content]) -> Message:
    files = list(contents)
    return Message([(file.path, file.mtime_ns) for file in files], [file.data for file in files])


def as_contents(message: Message) -> list[Content]:
    return [
        Content(path, data, mtime_ns)
        for (path, mtime_ns), data in zip(message.head, message.blocks, strict=True)
    ]


def of_outcome(outcome: Made | Unreadable) -> Message:
    if isinstance(outcome, Unreadable):
        return Message({"problem": str(outcome), "lasting": outcome.lasting})
    rows: list[Sequence[Any]] = []
    texts: list[str] = []
    for record in outcome.records:
        *row, metadata, text = to_values(record, 0, b"", b"")
        texts += (metadata, text)
        rows.append((*row, len(metadata), len(text)))
    # What is bytes in a row are hashes, which a record does without.
    packed = json.dumps(rows, ensure_ascii=False, separators=(",", ":"), default=lambda _: None)
    blocks = [packed.encode(), "".join(texts).encode()]
    for vectors in outcome.vectors.values():
        blocks += (b"".join(vectors), b"".join(vectors.values()))
    counts = {fingerprint: len(vectors) for fingerprint, vectors in outcome.vectors.items()}
    return Message({"vectors": counts}, blocks)


def as_outcome(message: Message) -> Made | Unreadable:
    if "problem" in message.head:
        return Unreadable(message.head["problem"], lasting=message.head["lasting"])
    rows, packed, *rest = message.blocks
    texts, at = packed.decode(), 0
    records = []
    for *row, metadata, text in json.loads(rows):
        middle, end = at + metadata, at + metadata + text
        records.append(from_values((*row, texts[at:middle], texts[middle:end])))
        at = end
    blocks = iter(rest)
    vectors = {
        fingerprint: dict(zip(_parts(next(blocks), count), _parts(next(blocks), count), strict=True))
        for fingerprint, count in message.head["vectors"].items()
    }
    return Made(records, vectors)


def _parts(block: bytes, count: int) -> list[bytes]:
    """So many equal parts."""
    size = len(block) // max(count, 1)
    return [block[at : at + size] for at in range(0, len(block), max(size, 1))]
