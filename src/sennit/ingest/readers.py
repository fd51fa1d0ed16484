"""Readers: how files become records. Each file has one reader, chosen by its kind.

Documentation becomes pages, code becomes entities, conversations become turns, files of example records become examples,
tables become rows, and everything else becomes passages. Some kinds show only in the content: a reader of such files
decides when it reads. A package may bring further readers, by the entry point `sennit.readers`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, NamedTuple

from sennit.errors import InvalidInput, MissingExtra
from sennit.ingest import text_profile
from sennit.ingest.conversation import is_transcript, numbered_turns
from sennit.ingest.file_reader import UnreadableFile, decode
from sennit.ingest.languages import file_kind
from sennit.ingest.roles import text_role
from sennit.ingest.units import Units
from sennit.places import FOLDER_FIELD, Folder
from sennit.records import CODE_COLLECTION, FRAGMENT_FIELD, OUTLINE_COLLECTION, Json, Record
from sennit.turns import COLLECTION as TURNS
from sennit.turns import Turn

if TYPE_CHECKING:
    from sennit.ingest.formats.marked_text import MarkedText
    from sennit.ingest.formats.tables import Row

PASSAGES: Final = "files"
PAGES: Final = "docs"
EXAMPLES: Final = "examples"
"""The collection of code examples, and the folder that holds files of them."""

PAGES_VERSION: Final = 5
CODE_VERSION: Final = 6
LINES_VERSION: Final = 1
TRANSCRIPTS_VERSION: Final = 3
DOCUMENTS_VERSION: Final = 3
TABLES_VERSION: Final = 3
MAIL_VERSION: Final = 3
EXPORTS_VERSION: Final = 2
ROLES_VERSION: Final = 1
"""Increase when the same file would produce other records. Files of an older version are indexed again."""

MISSING_CODE: Final = (
    "Code is read as plain text, because the extra 'code' is not installed. Run pip install 'sennit[code]' and index "
    "again: then `plan` and `search --recipe code` find it."
)

_LINES_EXTENSIONS: Final = (".jsonl", ".ndjson")
_TRANSCRIPT_EXTENSIONS: Final = (".txt", ".text", ".transcript")
_DOCUMENT_EXTENSIONS: Final = (".docx", ".epub", ".ipynb")
_TABLE_EXTENSIONS: Final = (".csv", ".tsv", ".parquet")
_MAIL_EXTENSIONS: Final = (".eml", ".mbox")
_ASCIIDOC: Final = ("adoc", "asciidoc")
_MARKUP_LANGUAGES: Final = ("rst", *_ASCIIDOC)
"""Markup that is read as pages besides Markdown and HTML."""

ENTRY_POINT_GROUP: Final = "sennit.readers"
"""The entry points by which a package brings readers of its own."""


class SourceFile(NamedTuple):
    """A file to be read."""

    place: str
    """What the ids of its records begin with: unique among all readings of all files."""
    path: str
    data: bytes
    mtime_ns: int
    row_template: str = ""
    """The text of a row of a table, with names of columns in braces; empty for a line for each column."""


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
    units: Callable[[SourceFile], Units | None] | None = None
    """Reads the parts of a file that fragments of citations count; None for files with lines."""


def reader_of(path: str) -> Reader:
    """Return the reader of a file, by its name."""
    return next(reader for reader in all_readers() if reader.handles(path))


@cache
def all_readers() -> tuple[Reader, ...]:
    """Return the readers of installed packages, by name, then our own."""
    found = []
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda one: one.name):
        reader = entry.load()
        if not isinstance(reader, Reader):
            raise InvalidInput(
                f"The entry point {entry.name!r} of {ENTRY_POINT_GROUP} must be a sennit.ingest.Reader, "
                f"not {type(reader).__name__}. Correct or remove the package {entry.dist and entry.dist.name}."
            )
        found.append(reader)
    return (*found, *READERS)


def reader_version(path: str) -> str:
    """Return the name of a file's reader, with its version."""
    return f"{reader_of(path).version(path)}+{ROLES_VERSION}"


def has_reader(path: str, collections: Sequence[str]) -> bool:
    """Return whether the reader of a file can produce records of these collections; none stands for all."""
    return not collections or not set(collections).isdisjoint(reader_of(path).collections)


def check_readers(collections: Collection[str]) -> None:
    """Raise MissingExtra if nothing but code is to be read, and the extra for it is not installed."""
    if collections and set(collections) <= {CODE_COLLECTION, OUTLINE_COLLECTION} and not has_code_reader():
        raise MissingExtra("Indexing code", "code")


def fills(collections: Sequence[str]) -> bool:
    """Return whether some reader produces records of one of these collections."""
    return any(not set(collections).isdisjoint(reader.collections) for reader in all_readers())


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
    file = SourceFile(folder.place(path, target), path, data, mtime_ns, folder.row_template)
    found = reader.parse(file, urls)
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
        record.set_access_from_metadata()
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
    kind, language = file_kind(path)
    return kind in ("markdown", "html") or language in _MARKUP_LANGUAGES


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
    language = file_kind(file.path)[1]
    if language in _MARKUP_LANGUAGES:
        from sennit.ingest.formats.markup_pages import markdown_of_asciidoc, markdown_of_rst

        text = markdown_of_rst(text) if language == "rst" else markdown_of_asciidoc(text)
        options = PageOptions(urls=urls, mdx=False)
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

    options = CodeOptions(
        outline_collection=OUTLINE_COLLECTION,
        title_path=file.path,
        timestamp=text_profile.modified_at(file.mtime_ns),
    )
    return code_records(parse_code(file.place, file.data), collection=CODE_COLLECTION, options=options)


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
    from sennit.ingest.formats.whatsapp import parse_whatsapp

    text = decode(file.data).text
    try:
        exported = parse_whatsapp(text, _stem(file.path))
        if exported:
            return _turns_with_lines(file, exported)
        if is_transcript(text):
            return turn_records(file, text)
    except InvalidInput:
        return _parse_passages(file, urls)
    return _parse_passages(file, urls)


def _export_units(file: SourceFile) -> Units | None:
    from sennit.ingest.formats.chat_exports import parse_export

    turns = parse_export(decode(file.data).text, _stem(file.path))
    return None if not turns else Units("message", ((number, _said(turn)) for number, turn in turns))


def _said(turn: Turn) -> str:
    return f"{turn.speaker}: {turn.text}" if turn.speaker else turn.text


def _parse_export(file: SourceFile, urls: Mapping[str, str]) -> list[Record]:
    """Read JSON: the export of an assistant or a chat tool, or plain text."""
    from sennit.ingest.formats.chat_exports import parse_export

    try:
        turns = parse_export(decode(file.data).text, _stem(file.path))
        if not turns:
            return _parse_passages(file, urls)
        found = _turns_with_lines(file, ((None, turn) for _, turn in turns))
    except InvalidInput:
        return _parse_passages(file, urls)
    for (number, _), record in zip(turns, found, strict=True):
        object.__setattr__(record, "metadata", {**record.metadata, FRAGMENT_FIELD: f"message={number}"})
    return found


def _marked_text(file: SourceFile) -> MarkedText | None:
    """Return the text of a packed document; None if it is read as plain text."""
    extension = _extension(file.path)
    if extension == "ipynb":
        if not _is_installed("nbformat"):
            return None
        from sennit.ingest.formats.notebook import read_notebook

        return read_notebook(decode(file.data).text)
    if extension == "docx":
        from sennit.ingest.formats.docx import read_docx

        return read_docx(file.data)
    from sennit.ingest.formats.epub import read_epub

    return read_epub(file.data)


def _document_units(file: SourceFile) -> Units | None:
    marked = _marked_text(file)
    return None if marked is None else marked.units()


def _parse_document(file: SourceFile, urls: Mapping[str, str]) -> list[Record]:
    from sennit.ingest.pages import PageOptions

    marked = _marked_text(file)
    if marked is None:
        return _parse_passages(file, urls)
    found = marked.records(
        file.place,
        collection=PAGES,
        options=PageOptions(urls=urls, mdx=False),
        timestamp=text_profile.modified_at(file.mtime_ns),
    )
    if not found:
        raise UnreadableFile("it has no text")
    return found


def _rows(file: SourceFile) -> Iterator[Row]:
    from sennit.ingest.formats.tables import read_csv, read_parquet

    extension = _extension(file.path)
    if extension == "parquet":
        return read_parquet(file.data)
    return read_csv(file.data, "\t" if extension == "tsv" else None)


def _table_units(file: SourceFile) -> Units:
    from sennit.ingest.formats.tables import row_text

    return Units("row", ((number, row_text(values)) for number, values in _rows(file)))


def _parse_table(file: SourceFile, urls: Mapping[str, str]) -> list[Record]:
    from sennit.ingest.formats.tables import row_records

    try:
        return row_records(
            _rows(file),
            file.place,
            template=file.row_template,
            collection=PASSAGES,
            timestamp=text_profile.modified_at(file.mtime_ns),
        )
    except UnreadableFile:
        if _extension(file.path) == "parquet":
            raise
        return _parse_passages(file, urls)


def _parse_mail(file: SourceFile, _urls: Mapping[str, str]) -> list[Record]:
    from sennit.ingest.formats.mail import mail_records

    return mail_records(file.data, file.place, collection=PASSAGES, is_mailbox=_is_mailbox(file))


def _mail_units(file: SourceFile) -> Units:
    from sennit.ingest.formats.mail import message_texts

    return Units("message", message_texts(file.data, is_mailbox=_is_mailbox(file)))


def _is_mailbox(file: SourceFile) -> bool:
    return _extension(file.path) == "mbox"


def _passage_units(file: SourceFile) -> Units | None:
    return Units("page", text_profile.page_texts(file.data)) if _extension(file.path) == "pdf" else None


def _extension(path: str) -> str:
    return path.rpartition(".")[2].lower()


def _stem(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[0]


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
    return _turns_with_lines(file, numbered_turns(text, _stem(file.path)))


def _turns_with_lines(file: SourceFile, turns: Iterable[tuple[tuple[int, int] | None, Turn]]) -> list[Record]:
    prefix = text_profile.id_prefix(file.place)
    free: dict[str, int] = {}
    out: dict[str, Record] = {}
    for lines, turn in turns:
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
        (CODE_COLLECTION, OUTLINE_COLLECTION),
        OUTLINE_COLLECTION,
    ),
    Reader(
        "documents",
        lambda path: path.lower().endswith(_DOCUMENT_EXTENSIONS),
        lambda _: f"documents/{DOCUMENTS_VERSION}.{int(_is_installed('nbformat'))}",
        _parse_document,
        (PAGES, PASSAGES),
        units=_document_units,
    ),
    Reader(
        "tables",
        lambda path: path.lower().endswith(_TABLE_EXTENSIONS),
        lambda path: f"tables/{TABLES_VERSION}.{text_profile.reader_version(path)}",
        _parse_table,
        (PASSAGES,),
        units=_table_units,
    ),
    Reader(
        "mail",
        lambda path: path.lower().endswith(_MAIL_EXTENSIONS),
        lambda path: f"mail/{MAIL_VERSION}.{text_profile.reader_version(path)}",
        _parse_mail,
        (PASSAGES,),
        units=_mail_units,
    ),
    Reader(
        "exports",
        lambda path: path.lower().endswith(".json"),
        lambda path: f"exports/{EXPORTS_VERSION}.{text_profile.reader_version(path)}",
        _parse_export,
        (TURNS, PASSAGES),
        units=_export_units,
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
    Reader(
        "passages",
        lambda _: True,
        text_profile.reader_version,
        _parse_passages,
        (PASSAGES,),
        units=_passage_units,
    ),
)
"""The readers. The first that handles a file reads it."""
