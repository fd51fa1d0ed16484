"""The records of a code file.

- One outline, whose id is the path: it finds a file as a whole, by what the file describes and defines. Outlines have
  their own collection, so that they are ranked against each other.
- One record for every entity, whose id is the key. A short class, or another entity that contains entities, is stored
  whole. A long one is stored without the bodies of the entities inside, because these have records of their own.
- Passages `path#1`, `path#2` … for the lines outside of all entities.

An entity that is too long for one record continues in `key#2` and so on. Every line of the file is in some record.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sennit.ingest.chunk import CODE_LIMITS, Chunk, Document, chunks, split_lines
from sennit.ingest.code.descriptions import expand_name
from sennit.ingest.code.entities import MODULE, CodeEntity, CodeFile
from sennit.ingest.code.roles import test_module_prefixes
from sennit.locales import locale_language
from sennit.records import MAX_ID_BYTES, OUTLINE_COLLECTION, Json, Record

PASSAGE: Final = "passage"
"""The kind of a record outside of all entities."""

ELLIPSIS: Final = "…"
"""Replaces a body that has a record of its own."""

TITLE_FOLDERS: Final = 2
"""How many folders of the path are in a title. Folders further up are the same for all files."""

MAX_NAMES: Final = 200
"""The most calls, references or imports in the metadata of one record."""

MAX_OUTLINE_ENTITIES: Final = 500

MAX_OUTLINE_VARIANTS: Final = 100
"""How many values of one enum are in the outline."""

MAX_OUTLINE_DOC_CHARACTERS: Final = 200
"""How much of the doc of one entity is in the outline."""

BLANK_NAME: Final = "_"
"""Go code assigns to it to let the compiler check a type. Nothing can refer to it."""

MAX_QUALIFIED_MEMBERS: Final = 3
"""The outline qualifies only the first members with the name of their class, so that this name does not outweigh all
others."""

_SENTENCE_END: Final = re.compile(r"\.(?=\s|$)|\n\s*\n|$")


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeOptions:
    """Options of code_records."""

    max_characters: int = CODE_LIMITS.maximum
    """A longer entity becomes several records."""
    outline_collection: str = OUTLINE_COLLECTION
    title_path: str = ""
    """The path from which titles take the last parts; empty for that of the file. An indexed folder's own name is not in
    it: two worktrees of a repository have the same texts, which are embedded once."""
    timestamp: datetime | None = None
    count_tokens: Callable[[str], int] | None = None
    """If given, the number of tokens of each record is stored as `metadata.tokens`."""


DEFAULTS: Final = CodeOptions()


def code_records(
    file: CodeFile, *, collection: str = "code", options: CodeOptions = DEFAULTS
) -> list[Record]:
    """The records of a file, in source order. The parent of each is the path, which is the id of the outline."""
    lines = split_lines(file.data.decode())
    inner = _entities_by_outer(file)
    short_path = "/".join((options.title_path or file.path).split("/")[-TITLE_FOLDERS - 1 :])
    test_prefixes = test_module_prefixes(file.entities[1:])
    out: list[Record] = []

    def add(key: str, entity: CodeEntity, passage: Chunk, kind: str, extra: dict[str, Json]) -> None:
        role = "test" if test_prefixes and f"{entity.qualified}.".startswith(test_prefixes) else file.role
        metadata: dict[str, Json] = {"language": file.language, "role": role, **extra}
        if options.count_tokens is not None:
            metadata["tokens"] = options.count_tokens(passage.text)
        out.append(
            Record(
                id=_record_id(key),
                text=passage.text,
                collection=options.outline_collection
                if kind == entity.kind and entity is file.module
                else collection,
                title=f"{entity.qualified} {short_path}" if entity.qualified else short_path,
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
    add(module.key, module, Chunk(build_outline(file), *module.lines), module.kind, _metadata(file, module))
    own_lines = _own_lines(module, inner.get(module.key, ()), lines, elide_inner=False)
    for number, passage in enumerate(_split(own_lines, options.max_characters), 1):
        add(f"{module.key}#{number}", module, passage, PASSAGE, {})
    for entity in file.entities[1:]:
        passages = list(_passages(entity, inner.get(entity.key, ()), lines, options.max_characters))
        metadata = _metadata(file, entity)
        for number, passage in enumerate(passages, 1):
            key = entity.key if number == 1 else f"{entity.key}#{number}"
            part = {"part": number, "parts": len(passages)} if len(passages) > 1 else {}
            add(key, entity, passage, entity.kind, {**metadata, **part})
    return out


def build_outline(file: CodeFile) -> str:
    """The docs of a file and of each entity in it, by first sentence; the beginning of a file without any.

    The values of an enum are in it too: they are what a question names, and no entities of their own.
    """
    docs: dict[tuple[str, str], str] = {}
    variants: dict[tuple[str, str], Sequence[tuple[str, str]]] = {}
    test_prefixes = test_module_prefixes(file.entities[1:])
    for entity in file.entities[1 : MAX_OUTLINE_ENTITIES + 1]:
        if f"{entity.qualified}.".startswith(test_prefixes) or entity.name == BLANK_NAME:
            continue
        # An overloaded name has several entities, of which one may have the doc.
        key = (entity.qualified[: -len(entity.name)], entity.name)
        docs[key] = max(docs.get(key, ""), entity.doc, key=len)
        if entity.variants:
            variants[key] = entity.variants[:MAX_OUTLINE_VARIANTS]
    namespaces = sorted((f"{one.qualified}." for one in file.entities[1:] if one.kind == MODULE), key=len)
    lines = [_first_sentence(file.module.doc, len(file.module.doc))]
    language = locale_language(file.path)
    if language is not None:
        lines.append(language.title())
    members: dict[str, int] = {}
    for (outer, name), doc in docs.items():
        members[outer] = members.get(outer, 0) + 1
        # A namespace is the same in all files of a project, so it does not tell them apart.
        start = next((len(one) for one in reversed(namespaces) if outer.startswith(one)), 0)
        shown = expand_name(f"{outer[start:]}{name}" if members[outer] <= MAX_QUALIFIED_MEMBERS else name)
        lines.append(_outline_line(shown, doc))
        lines += (
            _outline_line(expand_name(variant), about) for variant, about in variants.get((outer, name), ())
        )
    return "\n".join(lines).strip() or file.data[: CODE_LIMITS.minimum].decode("utf-8", "ignore").strip()


def _outline_line(shown: str, doc: str) -> str:
    return f"{shown}: {_first_sentence(doc, MAX_OUTLINE_DOC_CHARACTERS)}" if doc else shown


def _first_sentence(text: str, max_characters: int) -> str:
    end = _SENTENCE_END.search(text)
    sentence = " ".join((text[: end.start()] if end else text).split())
    return sentence if len(sentence) <= max_characters else f"{sentence[: max_characters - 1]}…"


def _metadata(file: CodeFile, entity: CodeEntity) -> dict[str, Json]:
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
            out[name] = list(listed[:MAX_NAMES])
    if entity is file.module and file.imports:
        out["imports"] = [str(one) for one in file.imports[:MAX_NAMES]]
    return out


def _entities_by_outer(file: CodeFile) -> dict[str, list[CodeEntity]]:
    """The entities directly inside each entity, by its key."""
    out: dict[str, list[CodeEntity]] = {}
    for entity in file.entities[1:]:
        out.setdefault(entity.outer or file.path, []).append(entity)
    return out


def _passages(
    entity: CodeEntity, inner: Sequence[CodeEntity], lines: Sequence[str], max_characters: int
) -> Iterator[Chunk]:
    """The text of an entity with its lines; in several chunks if it is long."""
    first, last = entity.lines
    if entity.span[1] - entity.span[0] <= max_characters:
        yield Chunk("\n".join(lines[first - 1 : last]), first, last)
    else:
        yield from _split(_own_lines(entity, inner, lines, elide_inner=True), max_characters)


def _split(numbered: Sequence[tuple[int, str]], max_characters: int) -> Iterator[Chunk]:
    """Numbered lines as one chunk, or as several if they are too long for one."""
    if sum(len(text) + 1 for _, text in numbered) > max_characters:
        lines = [text for _, text in numbered]
        yield from chunks(Document(lines, code=True, numbers=[number for number, _ in numbered]))
    elif numbered:
        yield Chunk("\n".join(text for _, text in numbered), numbered[0][0], numbered[-1][0])


def _own_lines(
    entity: CodeEntity, inner: Sequence[CodeEntity], lines: Sequence[str], *, elide_inner: bool
) -> list[tuple[int, str]]:
    """The numbered lines of an entity without those of its inner entities, which may leave their signatures."""
    out: list[tuple[int, str]] = []
    next_line = entity.lines[0]
    for entity_inside in inner:
        first, last = entity_inside.lines
        out += ((number, lines[number - 1]) for number in range(next_line, first))
        if elide_inner:
            line = lines[first - 1]
            indent = line[: len(line) - len(line.lstrip())]
            out.append((max(first, next_line - 1), f"{indent}{entity_inside.signature} {ELLIPSIS}"))
        next_line = max(next_line, last + 1)
    out += ((number, lines[number - 1]) for number in range(next_line, min(entity.lines[1], len(lines)) + 1))
    while out and not out[0][1].strip():
        out.pop(0)
    while out and not out[-1][1].strip():
        out.pop()
    return out


def _record_id(key: str) -> str:
    """The key; for a key that is too long for an id, its hash and its end."""
    encoded = key.encode()
    if len(encoded) <= MAX_ID_BYTES:
        return key
    digest = hashlib.blake2b(encoded, digest_size=16).hexdigest()
    return f"code:{digest}:{encoded[-200:].decode(errors='ignore')}"
