"""Readers: how files become records. Each file has one reader, chosen by its kind.

Documentation becomes pages, code becomes entities, conversations become turns, files of example records become examples,
and everything else becomes passages. Some kinds show only in the content: a reader of such files decides when it reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from typing import Final, NamedTuple

from sennit.errors import InvalidInput
from sennit.ingest import text_profile
from sennit.ingest.conversation import is_transcript, numbered_turns
from sennit.ingest.file_reader import UnreadableFile, decode
from sennit.ingest.languages import file_kind
from sennit.ingest.roles import text_role
from sennit.places import FOLDER_FIELD, Folder
from sennit.records import Json, Record
from sennit.turns import COLLECTION as TURNS
from sennit.turns import Turn

PASSAGES: Final = "files"
PAGES: Final = "docs"
EXAMPLES: Final = "examples"
"""The collection of code examples, and the folder that holds files of them."""
ENTITIES: Final = "code"
OUTLINES: Final = "code_files"

PAGES_VERSION: Final = 4
CODE_VERSION: Final = 4
LINES_VERSION: Final = 1
TRANSCRIPTS_VERSION: Final = 1
ROLES_VERSION: Final = 1
"""Increase when the same file would produce other records. Files of an older version are indexed again."""

MISSING_CODE: Final = (
    "Code is read as plain text, because the extra 'code' is not installed. Install sennit[code] and index again: "
    "then `plan` and `search --recipe code` find it."
)

_LINES_EXTENSIONS: Final = (".jsonl", ".ndjson")
_TRANSCRIPT_EXTENSIONS: Final = (".txt", ".text", ".transcript")


class SourceFile(NamedTuple):
    """A file to be read."""

    place: str
    """What the ids of its records begin with: unique among all readings of all files."""
    path: str
    data: bytes
    mtime_ns: int


Parse = Callable[[SourceFile, Mapping[str, str]], list[Record]]
"""Takes a file and the URLs of the folders; returns records whose path is the place."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How files of one kind become records."""

    name: str
    handles: Callable[[str], bool]
    """Whether it reads the file at this path."""
    version: Callable[[str], str]
    """Names the reader and its version. When the name changes, the file is indexed again."""
    parse: Parse
    collections: tuple[str, ...]
    """The collections that its records can belong to."""
    secondary: str = ""
    """The collection of records that are derived from others of the same file. They exist once for each file."""


def reader_of(path: str) -> Reader:
    """Return the reader of a file, by its name."""
    return next(reader for reader in READERS if reader.handles(path))


def reader_version(path: str) -> str:
    """Return the name of a file's reader, with its version."""
    return f"{reader_of(path).version(path)}+{ROLES_VERSION}"


def has_reader(path: str, collections: Sequence[str]) -> bool:
    """Return whether the reader of a file can produce records of these collections; none stands for all."""
    return not collections or not set(collections).isdisjoint(reader_of(path).collections)


def fills(collections: Sequence[str]) -> bool:
    """Return whether some reader produces records of one of these collections."""
    return any(not set(collections).isdisjoint(reader.collections) for reader in READERS)


def read_records(
    folder: Folder, path: str, target: str, data: bytes, mtime_ns: int, wanted: Collection[str] = ()
) -> list[Record]:
    """Return the records of a file; raise UnreadableFile if it has none, or none of the wanted collections.

    The main records go to the collection of the folder, if it has one. `target` is the collection of an additional
    reading of the file: it has only the main records.
    """
    reader = reader_of(path)
    # The folder is the root of a site: docs/retries.md in it is the page /docs/retries.
    urls = {folder.place("", target): "/"}
    found = reader.parse(SourceFile(folder.place(path, target), path, data, mtime_ns), urls)
    # Where the path alone tells the kind, the run has already decided that it reads the file.
    is_decided = target or not wanted or reader.secondary
    if not is_decided and not any(record.collection in wanted for record in found):
        raise UnreadableFile("it is of another kind than this recipe searches", permanent=False)
    role = text_role(path)
    out = []
    for record in found:
        is_derived = record.collection == reader.secondary
        if is_derived and target:
            continue
        # The records are new, so they are changed in place: a copy would check every field again.
        if not is_derived:
            object.__setattr__(record, "collection", target or folder.collection or record.collection)
        object.__setattr__(record, "path", path)
        object.__setattr__(record, "tenant", folder.tenant)
        metadata = {"role": role, **folder.metadata, **record.metadata, FOLDER_FIELD: folder.key}
        object.__setattr__(record, "metadata", metadata)
        out.append(record)
    return out


@cache
def has_code_reader() -> bool:
    """Return whether the extra `code` is installed."""
    return find_spec("tree_sitter") is not None


def lacks_code_reader(path: str) -> bool:
    """Return whether a file is code that is read as passages because the extra `code` is not installed."""
    return not has_code_reader() and file_kind(path)[0] == "code" and text_role(path) == "source"


def _is_code(path: str) -> bool:
    if not has_code_reader():
        return False
    from sennit.ingest.code.grammars import GRAMMARS, candidate_languages

    languages = candidate_languages(path)
    return bool(languages) and all(_is_installed(GRAMMARS[language].package) for language in languages)


@cache
def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


def _is_page(path: str) -> bool:
    return file_kind(path)[0] in ("markdown", "html")


def _parse_passages(file: SourceFile, _urls: Mapping[str, str]) -> list[Record]:
    return text_profile.file_records(file.place, file.data, PASSAGES, file.mtime_ns)


def _parse_page(file: SourceFile, urls: Mapping[str, str]) -> list[Record]:
    from sennit.ingest.pages import (
        PageOptions,
        example_records,
        examples_from_file,
        examples_from_page,
        page_records,
        parse_page,
    )

    options = PageOptions(urls=urls)
    place = file.place
    text, timestamp = decode(file.data).text, text_profile.modified_at(file.mtime_ns)
    if EXAMPLES in file.path.split("/")[:-1]:
        whole = examples_from_file(text, path=place, options=options)
        if whole:
            return example_records(whole, path=place, collection=EXAMPLES, timestamp=timestamp)
    page = parse_page(text, path=place, options=options)
    found = example_records(examples_from_page(page, path=place), path=place, collection=EXAMPLES)
    return [*page_records(page, path=place, collection=PAGES, timestamp=timestamp), *found]


def _parse_code(file: SourceFile, _urls: Mapping[str, str]) -> list[Record]:
    from sennit.ingest.code.parser import parse_code
    from sennit.ingest.code.records import CodeOptions, code_records

    options = CodeOptions(outline_collection=OUTLINES, timestamp=text_profile.modified_at(file.mtime_ns))
    return code_records(parse_code(file.place, file.data), collection=ENTITIES, options=options)


def _parse_lines(file: SourceFile, urls: Mapping[str, str]) -> list[Record]:
    """Read JSON Lines: examples, turns of conversations, or plain text."""
    text = decode(file.data).text
    first = _first_object(text)
    try:
        if {"title", "code"} <= first.keys():
            return _example_records(file, text)
        if _is_turn(first):
            return turn_records(file, text)
    except (InvalidInput, ValueError, RecursionError):
        # The first line looked like one of them, and another does not: it is data of another kind.
        return _parse_passages(file, urls)
    return _parse_passages(file, urls)


def _parse_transcript(file: SourceFile, urls: Mapping[str, str]) -> list[Record]:
    text = decode(file.data).text
    if is_transcript(text):
        try:
            return turn_records(file, text)
        except InvalidInput:
            return _parse_passages(file, urls)
    return _parse_passages(file, urls)


def _first_object(text: str) -> dict[str, Json]:
    line = next((line for line in text.splitlines() if line.strip()), "")
    try:
        values = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def _is_turn(values: Mapping[str, Json]) -> bool:
    """Return whether an object is a turn: a text, and who said it or in which conversation."""
    has_text = any(isinstance(values.get(name), str) for name in ("text", "content", "message", "body"))
    who = ("speaker", "role", "author", "sender", "from", "session", "session_id", "conversation_id")
    return has_text and any(values.get(name) not in (None, "") for name in who)


def _example_records(file: SourceFile, text: str) -> list[Record]:
    from sennit.ingest.pages import example_records, examples_from_jsonl

    prefix = text_profile.id_prefix(file.place)
    examples = [
        example if example.id.startswith(prefix) else replace(example, id=f"{prefix}{example.id}")
        for example in examples_from_jsonl(text, path=file.place)
    ]
    timestamp = text_profile.modified_at(file.mtime_ns)
    return example_records(examples, path=file.place, collection=EXAMPLES, timestamp=timestamp)


def turn_records(file: SourceFile, text: str) -> list[Record]:
    """Return the turns of a conversation. Sessions and ids of different files stay apart."""
    prefix = text_profile.id_prefix(file.place)
    stem = file.path.rpartition("/")[2].rpartition(".")[0]
    free: dict[str, int] = {}
    out: dict[str, Record] = {}
    for lines, turn in numbered_turns(text, stem):
        position = turn.position if turn.position is not None else free.get(turn.session, 0)
        free[turn.session] = max(free.get(turn.session, 0), position + 1)
        record = replace(turn, position=position).to_record()
        name = f"{prefix}{_turn_id(turn, position)}"
        out[name] = replace(record, id=name, parent=f"{prefix}{turn.session}", path=file.place, lines=lines)
    return list(out.values())


def _turn_id(turn: Turn, position: int) -> str:
    """Return the id of a turn, which keeps turns apart that say the same."""
    return f"{turn.id}-{position}" if turn.id.startswith("turn:") else turn.id


READERS: Final = (
    Reader("pages", _is_page, lambda _: f"pages/{PAGES_VERSION}", _parse_page, (PAGES, EXAMPLES), EXAMPLES),
    Reader(
        "code",
        _is_code,
        lambda _: f"code/{CODE_VERSION}",
        _parse_code,
        (ENTITIES, OUTLINES),
        OUTLINES,
    ),
    Reader(
        "lines",
        lambda path: path.lower().endswith(_LINES_EXTENSIONS),
        lambda path: f"lines/{LINES_VERSION}.{text_profile.reader_version(path)}",
        _parse_lines,
        (EXAMPLES, TURNS, PASSAGES),
    ),
    Reader(
        "transcripts",
        lambda path: path.lower().endswith(_TRANSCRIPT_EXTENSIONS),
        lambda path: f"transcripts/{TRANSCRIPTS_VERSION}.{text_profile.reader_version(path)}",
        _parse_transcript,
        (TURNS, PASSAGES),
    ),
    Reader("passages", lambda _: True, text_profile.reader_version, _parse_passages, (PASSAGES,)),
)
"""The readers. The first that handles a file reads it."""
