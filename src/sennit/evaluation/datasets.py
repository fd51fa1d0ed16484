"""Collections with judgements, read from folders.

BEIR's format is `corpus.jsonl`, `queries.jsonl` and `qrels.tsv`; a file `CORPUS` in place of the first holds the
relative path of one. Another format is one more reader in `READERS`, and a `Collection` whose `ranking` says in
the terms of its judgements what a hit counts as.
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

CORPUS: Final = "corpus.jsonl"
CORPUS_ELSEWHERE: Final = "CORPUS"
QUERIES: Final = "queries.jsonl"
JUDGEMENTS: Final = ("qrels.tsv", "qrels/test.tsv")
"""The second is where BEIR's own archives have it."""

MAX_PATH_CHARACTERS: Final = 4096

Judgements = Mapping[str, Mapping[str, int]]
"""By query: what was judged for it, and how relevant it is; 0 and below is not."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question of a collection."""

    id: str
    text: str
    metadata: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Collection:
    """Documents, questions, and which documents answer which question. Every question here has an answer."""

    name: str
    documents: tuple[Record, ...]
    queries: tuple[Query, ...]
    judgements: Judgements
    warnings: tuple[str, ...] = ()
    """What was found wrong, and left out or counted as never found."""

    @cached_property
    def digest(self) -> str:
        """Changes when any document does."""
        digest = hashlib.blake2b(digest_size=12)
        for record in self.documents:
            digest.update(record.content_hash.encode())
        return digest.hexdigest()

    def ranking(self, query: Query, hits: Sequence[Hit]) -> list[str]:  # noqa: ARG002 - for other formats
        """What each hit counts as in the judgements; here a record is the document itself."""
        return [hit.id for hit in hits]

    def first(self, count: int | None) -> Collection:
        """The collection with its first questions only."""
        return self if count is None else replace(self, queries=self.queries[:count])


def read_collection(folder: Path) -> Collection:
    """The collection in a folder, whichever format it has."""
    if not folder.is_dir():
        raise NotFound(f"There is no folder {folder}; give one that has {QUERIES} and {JUDGEMENTS[0]}.")
    for fits, read in READERS:
        if fits(folder):
            return read(folder)
    raise NotFound(
        f"{folder} is not a collection: it has neither {CORPUS} nor {CORPUS_ELSEWHERE}. "
        "docs/evaluation.md describes the format."
    )


def read_beir(folder: Path) -> Collection:
    """A collection in BEIR's format."""
    documents = tuple(_documents(_corpus_file(folder)))
    asked = _queries(_file(folder, QUERIES))
    file = _file(folder, *JUDGEMENTS)
    judged = _judgements(file)
    if not documents:
        raise InvalidInput(f"{folder}: the corpus is empty.")
    if not asked:
        raise InvalidInput(f"{folder / QUERIES} is empty.")
    warnings = _wrong_names(file, judged, {record.id for record in documents}, asked)
    queries = tuple(
        query for query in asked.values() if any(g > 0 for g in judged.get(query.id, {}).values())
    )
    if not queries:
        raise InvalidInput(f"{file} has no relevant document for any query of {QUERIES}; do the ids agree?")
    if len(queries) < len(asked):
        left = len(asked) - len(queries)
        warnings.append(f"{left:,} of {len(asked):,} queries have no relevant document and are left out")
    kept = {query.id: judged[query.id] for query in queries}
    return Collection(folder.resolve().name, documents, queries, kept, tuple(warnings))


READERS: Final[tuple[tuple[Callable[[Path], bool], Callable[[Path], Collection]], ...]] = (
    (lambda folder: any((folder / name).exists() for name in (CORPUS, CORPUS_ELSEWHERE)), read_beir),
)
"""Each format: whether a folder has it, and what reads it."""


def _wrong_names(
    file: Path, judged: Judgements, documents: set[str], queries: Mapping[str, Query]
) -> list[str]:
    """What the judgements name that does not exist."""
    out = []
    unknown = [name for name in judged if name not in queries]
    if unknown:
        out.append(
            f"{file} names {len(unknown):,} queries that are not in {QUERIES}, such as {unknown[0]!r}; left out"
        )
    lost = [
        name
        for query in judged
        if query in queries
        for name, grade in judged[query].items()
        if grade > 0 and name not in documents
    ]
    if lost:
        out.append(
            f"{file} names {len(set(lost)):,} relevant documents that are not in the corpus, such as {lost[0]!r}; "
            "they count as never found"
        )
    return out


def _file(folder: Path, *names: str) -> Path:
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise NotFound(f"{folder} has no {' or '.join(names)}.")


def _corpus_file(folder: Path) -> Path:
    if (folder / CORPUS).is_file():
        return folder / CORPUS
    pointer = _file(folder, CORPUS, CORPUS_ELSEWHERE)
    with _opened(pointer) as stream:
        name = stream.read(MAX_PATH_CHARACTERS).strip()
    if not name or "\n" in name or "\0" in name or Path(name).is_absolute():
        raise InvalidInput(f"{pointer} must hold one relative path, such as ../other/{CORPUS}.")
    target = folder / name
    if not target.is_file():
        raise NotFound(f"{pointer} names {name}, and there is no file {target}.")
    return target


def _session(metadata: Mapping[str, Json]) -> str | None:
    """What a turn of a conversation is a part of: turns stand in the order in which they were said."""
    session = metadata.get("session")
    return None if session is None else f"{metadata.get('conversation', '')}/{session}"


def _documents(file: Path) -> Iterator[Record]:
    seen: set[str] = set()
    turns: Counter[str] = Counter()
    for where, values in _objects(file):
        try:
            metadata = _metadata(values, where)
            session = _session(metadata)
            record = Record(
                id=_id(values, where),
                text=_text(values, "text", where),
                title=_text(values, "title", where, needed=False),
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


def _queries(file: Path) -> dict[str, Query]:
    out: dict[str, Query] = {}
    for where, values in _objects(file):
        query = Query(_id(values, where), _text(values, "text", where), _metadata(values, where))
        if query.id in out:
            raise InvalidInput(f"{where}: there is an earlier query with the _id {query.id!r}.")
        out[query.id] = query
    return out


def _judgements(file: Path) -> dict[str, dict[str, int]]:
    out: dict[str, dict[str, int]] = {}
    for where, line in _lines(file):
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 3 or not cells[0] or not cells[1]:
            raise InvalidInput(f"{where}: needs query-id, corpus-id and score with tabs between them.")
        try:
            grade = int(cells[2])
        except ValueError:
            if not out and where.endswith(":1"):  # the header
                continue
            raise InvalidInput(f"{where}: the score must be a whole number, not {cells[2][:40]!r}.") from None
        out.setdefault(cells[0], {})[cells[1]] = grade
    if not out:
        raise InvalidInput(f"{file} has no judgements.")
    return out


def _opened(file: Path) -> IO[str]:
    try:
        return file.open(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror or error}.") from error


def _lines(file: Path) -> Iterator[tuple[str, str]]:
    """Each line that is not blank, with `file:number` for messages."""
    number = 0
    try:
        with _opened(file) as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield f"{file}:{number}", line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{file}: not UTF-8 text after line {number} ({error.reason}).") from error


def _objects(file: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
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
    if type(value) is int:  # some exporters forget the quotes
        value = str(value)
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"{where}: _id must be a text that is not empty.")
    return value


def _text(values: Mapping[str, Any], key: str, where: str, *, needed: bool = True) -> str:
    value = values.get(key)
    if value is None and not needed:
        return ""
    if not isinstance(value, str):
        raise InvalidInput(
            f"{where}: {key} must be a text" + (", and it is missing." if value is None else ".")
        )
    return value


def _metadata(values: Mapping[str, Any], where: str) -> Mapping[str, Json]:
    value = values.get("metadata")
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidInput(f"{where}: metadata must be an object, not {type(value).__name__}.")
    return value
