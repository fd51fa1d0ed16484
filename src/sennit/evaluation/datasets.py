"""Test collections with relevance judgements, read from folders.

The BEIR format has `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`. A file `CORPUS` in place of the first one holds
the relative path of a `corpus.jsonl`. To support another format, add a reader to `READERS`, and override
`Collection.ranking` if the judgements do not name records.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Final

from sennit.errors import InvalidInput, NotFound
from sennit.records import Json, Record
from sennit.results import Hit

CORPUS_FILE: Final = "corpus.jsonl"
CORPUS_POINTER: Final = "CORPUS"
QUERIES_FILE: Final = "queries.jsonl"
JUDGEMENT_FILES: Final = ("qrels.tsv", "qrels/test.tsv")
"""The second is the path in BEIR's own archives."""

MAX_PATH_CHARACTERS: Final = 4096

Judgements = Mapping[str, Mapping[str, int]]
"""By query, the grade of each judged document. A grade of 0 or less means not relevant."""


@dataclass(frozen=True, slots=True)
class Query:
    """A query of a collection."""

    id: str
    text: str
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Collection:
    """Documents, queries and judgements. Every query has at least one relevant document."""

    name: str
    documents: tuple[Record, ...]
    queries: tuple[Query, ...]
    judgements: Judgements
    warnings: tuple[str, ...] = ()
    """Problems in the files. What they concern was left out, or counts as never found."""

    @cached_property
    def digest(self) -> str:
        """A hash of all documents."""
        digest = hashlib.blake2b(digest_size=12)
        for record in self.documents:
            digest.update(record.content_hash.encode())
        return digest.hexdigest()

    def ranking(self, query: Query, hits: Sequence[Hit]) -> list[str]:  # noqa: ARG002 - for other formats
        """The id of each hit as the judgements name it. In the BEIR format, that is the record's id."""
        return [hit.id for hit in hits]

    def with_first_queries(self, count: int | None) -> Collection:
        """The collection with only its first queries. None means all of them."""
        return self if count is None else replace(self, queries=self.queries[:count])


def read_collection(folder: Path) -> Collection:
    """Read the collection in a folder, in any supported format."""
    if not folder.is_dir():
        raise NotFound(
            f"There is no folder {folder}; give one that has {QUERIES_FILE} and {JUDGEMENT_FILES[0]}."
        )
    for matches, read in READERS:
        if matches(folder):
            return read(folder)
    raise NotFound(
        f"{folder} is not a collection: it has neither {CORPUS_FILE} nor {CORPUS_POINTER}. "
        "docs/how-to/measure-quality.md describes the format."
    )


def read_beir(folder: Path) -> Collection:
    """Read a collection in the BEIR format."""
    documents = tuple(_documents(_corpus_file(folder)))
    all_queries = read_queries(_file(folder, QUERIES_FILE))
    file = _file(folder, *JUDGEMENT_FILES)
    judgements = read_judgements(file)
    if not documents:
        raise InvalidInput(f"{folder}: the corpus is empty.")
    if not all_queries:
        raise InvalidInput(f"{folder / QUERIES_FILE} is empty.")
    warnings = _unknown_ids(file, judgements, {record.id for record in documents}, all_queries)
    queries = tuple(
        query
        for query in all_queries.values()
        if any(grade > 0 for grade in judgements.get(query.id, {}).values())
    )
    if not queries:
        raise InvalidInput(
            f"{file} has no relevant document for any query of {QUERIES_FILE}; do the ids agree?"
        )
    if len(queries) < len(all_queries):
        left_out = len(all_queries) - len(queries)
        warnings.append(
            f"{left_out:,} of {len(all_queries):,} queries have no relevant document and are left out"
        )
    kept = {query.id: judgements[query.id] for query in queries}
    return Collection(folder.resolve().name, documents, queries, kept, tuple(warnings))


READERS: Final[tuple[tuple[Callable[[Path], bool], Callable[[Path], Collection]], ...]] = (
    (lambda folder: any((folder / name).exists() for name in (CORPUS_FILE, CORPUS_POINTER)), read_beir),
)
"""For each format: a function that recognises a folder, and one that reads it."""


def _unknown_ids(
    file: Path, judgements: Judgements, documents: set[str], queries: Mapping[str, Query]
) -> list[str]:
    """Warnings about queries and documents that the judgements name and that do not exist."""
    out = []
    unknown = [query for query in judgements if query not in queries]
    if unknown:
        out.append(
            f"{file} names {len(unknown):,} queries that are not in {QUERIES_FILE}, such as {unknown[0]!r}; left out"
        )
    missing = [
        document
        for query in judgements
        if query in queries
        for document, grade in judgements[query].items()
        if grade > 0 and document not in documents
    ]
    if missing:
        out.append(
            f"{file} names {len(set(missing)):,} relevant documents that are not in the corpus, such as {missing[0]!r}; "
            "they count as never found"
        )
    return out


def _file(folder: Path, *names: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise NotFound(f"{folder} has no {' or '.join(names)}.")


def _corpus_file(folder: Path) -> Path:
    if (folder / CORPUS_FILE).is_file():
        return folder / CORPUS_FILE
    pointer = _file(folder, CORPUS_FILE, CORPUS_POINTER)
    with _open(pointer) as stream:
        name = stream.read(MAX_PATH_CHARACTERS).strip()
    if not name or "\n" in name or "\0" in name or Path(name).is_absolute():
        raise InvalidInput(f"{pointer} must hold one relative path, such as ../other/{CORPUS_FILE}.")
    target = folder / name
    if not target.is_file():
        raise NotFound(f"{pointer} names {name}, and there is no file {target}.")
    return target


def _session(metadata: Mapping[str, Json]) -> str | None:
    """The parent id of a conversation turn. The turns of a session are in the order of the file."""
    session = metadata.get("session")
    return None if session is None else f"{metadata.get('conversation', '')}/{session}"


def _documents(file: Path) -> Iterator[Record]:
    seen: set[str] = set()
    turns: Counter[str] = Counter()
    for where, values in read_objects(file):
        try:
            metadata = _metadata(values, where)
            session = _session(metadata)
            record = Record(
                id=_id(values, where),
                text=_text(values, "text", where),
                title=_text(values, "title", where, required=False),
                parent=session,
                position=None if session is None else turns[session],
                metadata=metadata,
            )
            if session is not None:
                turns[session] += 1
        except InvalidInput as error:
            raise InvalidInput(str(error) if str(error).startswith(where) else f"{where}: {error}") from error
        if record.id in seen:
            raise InvalidInput(f"{where}: there is an earlier document with the _id {record.id!r}.")
        seen.add(record.id)
        yield record


def read_queries(file: Path) -> dict[str, Query]:
    """Return the queries of a file in the BEIR format, by id."""
    out: dict[str, Query] = {}
    for where, values in read_objects(file):
        query = Query(_id(values, where), _text(values, "text", where), _metadata(values, where))
        if query.id in out:
            raise InvalidInput(f"{where}: there is an earlier query with the _id {query.id!r}.")
        out[query.id] = query
    return out


def read_judgements(file: Path) -> dict[str, dict[str, int]]:
    """Return the judgements of a file in the BEIR format."""
    out: dict[str, dict[str, int]] = {}
    for where, line in _lines(file):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 3 or not cells[0] or not cells[1]:
            raise InvalidInput(f"{where}: needs query-id, corpus-id and score, separated by tabs.")
        try:
            grade = int(cells[2])
        except ValueError:
            if not out and where.endswith(":1"):  # the header
                continue
            raise InvalidInput(f"{where}: the score must be an integer, not {cells[2][:40]!r}.") from None
        out.setdefault(cells[0], {})[cells[1]] = grade
    if not out:
        raise InvalidInput(f"{file} has no judgements.")
    return out


def _open(file: Path) -> IO[str]:
    try:
        return file.open(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror or error}.") from error


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    """Each non-blank line, with `file:number` for error messages."""
    number = 0
    try:
        with _open(file) as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield f"{file}:{number}", line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file}: not UTF-8 text after line {number} ({error.reason}).") from error


def read_objects(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each object of a file of JSON lines, with `file:number` for error messages."""
    for where, line in _lines(file):
        try:
            values = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{where}: not a line of JSON ({error}).") from error
        if not isinstance(values, dict):
            raise InvalidInput(f"{where}: must be an object with _id and text, not {type(values).__name__}.")
        yield where, values


def _id(values: Mapping[str, Any], where: str) -> str:
    value = values.get("_id")
    if type(value) is int:  # some exporters write ids as numbers
        value = str(value)
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{where}: _id must be a non-empty string.")
    return value


def _text(values: Mapping[str, Any], key: str, where: str, *, required: bool = True) -> str:
    value = values.get(key)
    if value is None and not required:
        return ""
    if not isinstance(value, str):
        raise InvalidInput(
            f"{where}: {key} must be a string" + (", and it is missing." if value is None else ".")
        )
    return value


def _metadata(values: Mapping[str, Any], where: str) -> Mapping[str, Json]:
    value = values.get("metadata")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidInput(f"{where}: metadata must be an object, not {type(value).__name__}.")
    return value
