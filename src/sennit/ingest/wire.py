"""What a program that makes records and the one that asks it say to each other.

Records cross ready to be written, so who writes neither checks them again nor derives anything from them. Their metadata
and texts stand apart, behind each other, which spares writing and reading them as JSON strings; so do their hashes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from sennit.ingest.making import Content, Made, Model, Task
from sennit.ingest.reading import Unreadable
from sennit.programs import Message
from sennit.stores.embedded.graph import Derived
from sennit.stores.embedded.prepared import CONTENT, METADATA, PATH, Prepared, prepared


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
    hashes: list[bytes] = []
    for ready in map(prepared, outcome.records):
        head, own, tail = ready.values[:CONTENT], ready.values[CONTENT:PATH], ready.values[PATH:METADATA]
        metadata, text = ready.values[METADATA:]
        hashes += own
        texts += (metadata, text)
        rows.append((*head, *tail, len(metadata), len(text), *ready.graph))
    packed = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    blocks = [packed.encode(), "".join(texts).encode(), b"".join(hashes)]
    for vectors in outcome.vectors.values():
        blocks += (b"".join(vectors), b"".join(vectors.values()))
    counts = {fingerprint: len(vectors) for fingerprint, vectors in outcome.vectors.items()}
    return Message({"vectors": counts}, blocks)


def as_outcome(message: Message) -> Made | Unreadable:
    if "problem" in message.head:
        return Unreadable(message.head["problem"], lasting=message.head["lasting"])
    rows, packed, joined, *rest = message.blocks
    texts, at = packed.decode(), 0
    listed = json.loads(rows)
    hashes = iter(_parts(joined, 2 * len(listed)))
    records = []
    for *values, metadata, text, names, edges in listed:
        middle, end = at + metadata, at + metadata + text
        values[CONTENT:CONTENT] = (next(hashes), next(hashes))
        found = Derived(list(map(tuple, names)), list(map(tuple, edges)))
        records.append(Prepared((*values, texts[at:middle], texts[middle:end]), found))
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
