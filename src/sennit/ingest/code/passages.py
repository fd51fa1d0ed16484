"""From the entities of a file to its records.

- The file itself, by its path: an outline of what it says and defines, by which a file is found as a whole. Outlines
  have a collection of their own, so that they are ranked among each other.
- Every entity, by its key, as the file has it. A class, or whatever else holds entities, stands whole when it is
  short; else with the bodies of what it holds left out, since those are records of their own.
- What belongs to no entity, as passages `path#1`, `path#2` …

An entity too long for one record goes on in further ones, `key#2` … No line of the file is in none of them.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sennit.ingest.chunk import CODE, Chunk, Document, chunks, split_lines
from sennit.ingest.code.entities import MODULE, CodeFile, Entity
from sennit.ingest.code.prose import spelt_out
from sennit.ingest.code.roles import test_modules
from sennit.records import MAX_ID_BYTES, Json, Record

PASSAGE: Final = "passage"
"""The kind of a record that is no entity."""

ELIDED: Final = "…"
"""Stands where a body is that has a record of its own."""

NEAR_FOLDERS: Final = 2
"""Of a path, so many folders are in a title: those further up are the same for all files, and say nothing."""

MOST_NAMES: Final = 200
"""Calls, references or imports in one record's metadata."""

MOST_OUTLINED: Final = 500
"""Entities in an outline."""

MOST_SAID: Final = 200
"""Characters of what an outline says of one name."""

NOBODY: Final = "_"
"""What is defined so that it is checked, and cannot be named."""

SAID_OF_WHAT: Final = 3
"""Names in a class that an outline says with the name of the class, so that it does not outweigh all others."""

_SENTENCE: Final = re.compile(r"\.(?=\s|$)|\n\s*\n|$")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeOptions:
    """How records are made of entities."""

    whole: int = CODE.most
    """Characters up to which an entity is one record."""
    outlines: str = "code_files"
    """The collection of outlines."""
    timestamp: datetime | None = None
    count: Callable[[str], int] | None = None
    """Counts tokens; what it says is kept as `metadata.tokens`."""


DEFAULTS: Final = CodeOptions()


def code_records(
    file: CodeFile, *, collection: str = "code", options: CodeOptions = DEFAULTS
) -> list[Record]:
    """The records of a file, in the order of the file; the parent of each is the path, which is the outline's id."""
    lines = split_lines(file.data.decode())
    inner = _inner(file)
    near = "/".join(file.path.split("/")[-NEAR_FOLDERS - 1 :])
    tests = test_modules(file.entities[1:])
    out: list[Record] = []

    def add(key: str, entity: Entity, passage: Chunk, kind: str, more: dict[str, Json]) -> None:
        role = "test" if tests and f"{entity.qualified}.".startswith(tests) else file.role
        metadata: dict[str, Json] = {"language": file.language, "role": role, **more}
        if options.count is not None:
            metadata["tokens"] = options.count(passage.text)
        out.append(
            Record(
                id=_id(key),
                text=passage.text,
                collection=options.outlines if kind == entity.kind and entity is file.module else collection,
                title=f"{entity.qualified} {near}" if entity.qualified else near,
                kind=kind,
                path=file.path,
                lines=(passage.first, passage.last),
                parent=file.path,
                position=len(out),
                timestamp=options.timestamp,
                metadata=metadata,
            )
        )

    module = file.module
    add(module.key, module, Chunk(outline(file), *module.lines), module.kind, _metadata(file, module))
    own = _own_lines(module, inner.get(module.key, ()), lines, outlined=False)
    for number, passage in enumerate(_cut(own, options.whole), 1):
        add(f"{module.key}#{number}", module, passage, PASSAGE, {})
    for entity in file.entities[1:]:
        passages = list(_passages(entity, inner.get(entity.key, ()), lines, options.whole))
        shared = _metadata(file, entity)
        for number, passage in enumerate(passages, 1):
            key = entity.key if number == 1 else f"{entity.key}#{number}"
            part = {"part": number, "parts": len(passages)} if len(passages) > 1 else {}
            add(key, entity, passage, entity.kind, {**shared, **part})
    return out


def outline(file: CodeFile) -> str:
    """What a file says of itself, and each name in it with what is said of that; of one without, how it begins."""
    docs: dict[tuple[str, str], str] = {}
    tests = test_modules(file.entities[1:])
    for entity in file.entities[1 : MOST_OUTLINED + 1]:
        if f"{entity.qualified}.".startswith(tests) or entity.name == NOBODY:
            continue
        # A name may have several signatures, and be explained at one of them.
        named = (entity.qualified[: -len(entity.name)], entity.name)
        docs[named] = max(docs.get(named, ""), entity.doc, key=len)
    spaces = sorted((f"{one.qualified}." for one in file.entities[1:] if one.kind == MODULE), key=len)
    said = [_first_sentence(file.module.doc, len(file.module.doc))]
    inside: dict[str, int] = {}
    for (outer, name), doc in docs.items():
        inside[outer] = inside.get(outer, 0) + 1
        # A namespace is the same in all files, and says nothing of any.
        space = next((len(one) for one in reversed(spaces) if outer.startswith(one)), 0)
        full = spelt_out(f"{outer[space:]}{name}" if inside[outer] <= SAID_OF_WHAT else name)
        said.append(f"{full}: {_first_sentence(doc, MOST_SAID)}" if doc else full)
    return "\n".join(said).strip() or file.data[: CODE.least].decode("utf-8", "ignore").strip()


def _first_sentence(text: str, most: int) -> str:
    end = _SENTENCE.search(text)
    said = " ".join((text[: end.start()] if end else text).split())
    return said if len(said) <= most else f"{said[: most - 1]}…"


def _metadata(file: CodeFile, entity: Entity) -> dict[str, Json]:
    out: dict[str, Json] = {"name": entity.name}
    for name, text in (
        ("qualified", entity.qualified),
        ("signature", entity.signature),
        ("doc", entity.doc),
        ("outer", entity.outer if entity.outer != file.path else None),
    ):
        if text:
            out[name] = text
    for name, listed in (("calls", entity.calls), ("references", entity.references)):
        if listed:
            out[name] = list(listed[:MOST_NAMES])
    if entity is file.module and file.imports:
        out["imports"] = [str(one) for one in file.imports[:MOST_NAMES]]
    return out


def _inner(file: CodeFile) -> dict[str, list[Entity]]:
    """By key, the entities written directly in each."""
    out: dict[str, list[Entity]] = {}
    for entity in file.entities[1:]:
        out.setdefault(entity.outer or file.path, []).append(entity)
    return out


def _passages(entity: Entity, inner: Sequence[Entity], lines: Sequence[str], whole: int) -> Iterator[Chunk]:
    """The text of an entity with its lines; in several pieces when it is long."""
    first, last = entity.lines
    if entity.span[1] - entity.span[0] <= whole:
        yield Chunk("\n".join(lines[first - 1 : last]), first, last)
    else:
        yield from _cut(_own_lines(entity, inner, lines, outlined=True), whole)


def _cut(numbered: Sequence[tuple[int, str]], whole: int) -> Iterator[Chunk]:
    """Lines with their numbers as one passage, or as several when they are too many for one."""
    if sum(len(text) + 1 for _, text in numbered) > whole:
        lines = [text for _, text in numbered]
        yield from chunks(Document(lines, code=True, numbers=[number for number, _ in numbered]))
    elif numbered:
        yield Chunk("\n".join(text for _, text in numbered), numbered[0][0], numbered[-1][0])


def _own_lines(
    entity: Entity, inner: Sequence[Entity], lines: Sequence[str], *, outlined: bool
) -> list[tuple[int, str]]:
    """The lines of an entity that none of its inner ones has, with their numbers; those may be outlined."""
    out: list[tuple[int, str]] = []
    at = entity.lines[0]
    for one in inner:
        first, last = one.lines
        out += ((number, lines[number - 1]) for number in range(at, first))
        if outlined:
            line = lines[first - 1]
            indent = line[: len(line) - len(line.lstrip())]
            out.append((max(first, at - 1), f"{indent}{one.signature} {ELIDED}"))
        at = max(at, last + 1)
    out += ((number, lines[number - 1]) for number in range(at, min(entity.lines[1], len(lines)) + 1))
    while out and not out[0][1].strip():
        out.pop(0)
    while out and not out[-1][1].strip():
        out.pop()
    return out


def _id(key: str) -> str:
    """The key, or for one that is too long to be an id its end with a hash of the whole."""
    encoded = key.encode()
    if len(encoded) <= MAX_ID_BYTES:
        return key
    digest = hashlib.blake2b(encoded, digest_size=16).hexdigest()
    return f"code:{digest}:{encoded[-200:].decode(errors='ignore')}"
