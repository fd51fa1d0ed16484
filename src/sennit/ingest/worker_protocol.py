"""The messages between the indexing process and its worker processes.

Records arrive prepared for writing, so the writer neither validates them again nor derives anything from them. Metadata
and texts are concatenated in one block and hashes in another, because JSON strings would be slower to write and parse.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from sennit.ingest.file_reader import UnreadableFile
from sennit.ingest.record_builder import FileContent, FileRecords, IndexTask, PortableModel
from sennit.places import Folder
from sennit.stores.graph_rows import GraphRows
from sennit.stores.prepared_records import (
    CONTENT_HASH,
    METADATA,
    PATH,
    PreparedRecord,
    prepare_record,
)
from sennit.workers import Message


def encode_task(task: IndexTask) -> Message:
    # A worker reads no files, and a root may hold bytes that are not UTF-8.
    folders = tuple(
        replace(folder, root="", metadata=dict(folder.metadata), revision=None) for folder in task.folders
    )
    models = tuple(model._replace(known=b"") for model in task.models)
    header = asdict(replace(task, folders=folders, models=models))
    header["models"] = [(model.fingerprint, model.spec) for model in models]
    return Message(header, [model.known for model in task.models])


def decode_task(message: Message) -> IndexTask:
    header = message.header
    models = tuple(
        PortableModel(fingerprint, spec, known)
        for (fingerprint, spec), known in zip(header["models"], message.blocks, strict=True)
    )
    folders = tuple(Folder(**folder) for folder in header["folders"])
    return IndexTask(folders, tuple(header["only_collections"]), models)


def encode_contents(contents: Iterable[FileContent]) -> Message:
    files = list(contents)
    header = [(file.folder, file.path, file.target, file.mtime_ns) for file in files]
    return Message(header, [file.data for file in files])


def decode_contents(message: Message) -> list[FileContent]:
    return [
        FileContent(folder, path, target, data, mtime_ns)
        for (folder, path, target, mtime_ns), data in zip(message.header, message.blocks, strict=True)
    ]


def encode_outcome(outcome: FileRecords | UnreadableFile) -> Message:
    if isinstance(outcome, UnreadableFile):
        return Message({"problem": str(outcome), "permanent": outcome.permanent})
    rows: list[Sequence[Any]] = []
    texts: list[str] = []
    hashes: list[bytes] = []
    for record in map(prepare_record, outcome.records):
        before, own_hashes = record.values[:CONTENT_HASH], record.values[CONTENT_HASH:PATH]
        after = record.values[PATH:METADATA]
        metadata, text = record.values[METADATA:]
        hashes += own_hashes
        texts += (metadata, text)
        rows.append((*before, *after, len(metadata), len(text), *record.graph))
    packed_rows = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    blocks = [packed_rows.encode(), "".join(texts).encode(), b"".join(hashes)]
    for vectors in outcome.vectors.values():
        blocks += (b"".join(vectors), b"".join(vectors.values()))
    counts = {fingerprint: len(vectors) for fingerprint, vectors in outcome.vectors.items()}
    parents = {"other_parents": outcome.other_parents, "in_place": outcome.in_place}
    return Message({"vectors": counts, **parents}, blocks)


def decode_outcome(message: Message) -> FileRecords | UnreadableFile:
    if "problem" in message.header:
        return UnreadableFile(message.header["problem"], permanent=message.header["permanent"])
    packed_rows, packed_texts, packed_hashes, *rest = message.blocks
    texts, offset = packed_texts.decode(), 0
    rows = json.loads(packed_rows)
    hashes = iter(_split_equally(packed_hashes, 2 * len(rows)))
    records = []
    for *values, metadata_size, text_size, names, edges in rows:
        middle = offset + metadata_size
        end = middle + text_size
        values[CONTENT_HASH:CONTENT_HASH] = (next(hashes), next(hashes))
        graph = GraphRows(list(map(tuple, names)), list(map(tuple, edges)))
        records.append(PreparedRecord((*values, texts[offset:middle], texts[middle:end]), graph))
        offset = end
    blocks = iter(rest)
    vectors = {
        fingerprint: dict(
            zip(_split_equally(next(blocks), count), _split_equally(next(blocks), count), strict=True)
        )
        for fingerprint, count in message.header["vectors"].items()
    }
    header = message.header
    return FileRecords(records, vectors, tuple(header["other_parents"]), header["in_place"])


def _split_equally(block: bytes, count: int) -> list[bytes]:
    """Split a block into `count` parts of the same size."""
    size = len(block) // max(count, 1)
    return [block[at : at + size] for at in range(0, len(block), max(size, 1))]
