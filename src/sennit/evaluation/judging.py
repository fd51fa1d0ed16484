"""A folder of judgements in the making: queries, and the grades that somebody gives their results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import sennit
from sennit.errors import InvalidInput, NotFound
from sennit.evaluation.datasets import (
    CORPUS_FILE,
    CORPUS_POINTER,
    JUDGEMENT_FILES,
    QUERIES_FILE,
    Query,
    read_judgements,
    read_queries,
)
from sennit.evaluation.feedback_formats import decode_token, write_corpus, write_judgements
from sennit.feedback import check_grade
from sennit.records import Json
from sennit.results import Hit


@dataclass(frozen=True, slots=True)
class JudgingTask:
    """A result of a query that has no grade yet."""

    query: Query
    id: str
    citation: str
    title: str
    text: str

    def to_dict(self) -> dict[str, Json]:
        return {
            "query": self.query.id,
            "query_text": self.query.text,
            "id": self.id,
            "citation": self.citation,
            "title": self.title,
            "text": self.text,
        }


class JudgingFolder:
    """A folder in the BEIR format to which grades are added. Each is on disk before the next is asked for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        queries, judgements = folder / QUERIES_FILE, folder / JUDGEMENT_FILES[0]
        self._queries = read_queries(queries) if queries.is_file() else {}
        found = read_judgements(judgements) if self._has_judgements() else {}
        self._grades = {
            query: {decode_token(name): grade for name, grade in graded.items()}
            for query, graded in found.items()
        }

    @property
    def count(self) -> int:
        """How many grades there are."""
        return sum(map(len, self._grades.values()))

    def add_queries(self, texts: Iterable[str]) -> None:
        """Add queries that the folder does not have."""
        known = {query.text for query in self._queries.values()}
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if any(not text.strip() for text in new):
            raise InvalidInput("A query must not be empty")
        for text in new:
            number = len(self._queries) + 1
            while f"q{number}" in self._queries:
                number += 1
            self._queries[f"q{number}"] = Query(f"q{number}", text)
        if not self._queries:
            raise NotFound(f"{self.folder} has no {QUERIES_FILE}; add a query with --query")
        if new:
            self.folder.mkdir(parents=True, exist_ok=True)
            with (self.folder / QUERIES_FILE).open("w", encoding="utf-8") as stream:
                for query in self._queries.values():
                    values: dict[str, Json] = {"_id": query.id, "text": query.text}
                    if query.metadata:
                        values["metadata"] = dict(query.metadata)
                    stream.write(json.dumps(values, ensure_ascii=False) + "\n")

    def tasks(self, db: sennit.Database, recipes: Sequence[str], limit: int) -> Iterator[JudgingTask]:
        """Yield the results without a grade. Those of a query are pooled over the recipes, in an order by chance.

        The order is by a hash, so that it tells nothing about the rank, and is the same when judging goes on.
        """
        for query in self._queries.values():
            found: dict[str, Hit] = {}
            for recipe in recipes:
                for hit in db.search(
                    query.text, recipe=recipe, limit=min(limit, db.recipes[recipe].max_limit)
                ):
                    found.setdefault(hit.id, hit)
            for name in sorted(found, key=lambda name: _shuffled(query.id, name)):
                if name not in self._grades.get(query.id, {}):
                    hit = found[name]
                    yield JudgingTask(query, name, hit.citation, hit.title, hit.text)

    def add(self, query: str, name: str, grade: int) -> None:
        """Save a grade, in place of an earlier one."""
        self.add_all([(query, name, grade)])

    def add_all(self, grades: Iterable[tuple[str, str, int]]) -> int:
        """Save grades, all or none; return how many."""
        given = list(grades)
        for query, name, grade in given:
            if query not in self._queries:
                raise NotFound(f"There is no query {query!r} in {self.folder / QUERIES_FILE}")
            if not name:
                raise InvalidInput("The id of a record must not be empty")
            check_grade(grade)
        for query, name, grade in given:
            self._grades.setdefault(query, {})[name] = grade
        if given:
            self._save()
        return len(given)

    def remove(self, query: str, name: str) -> None:
        """Take a grade back."""
        if self._grades.get(query, {}).pop(name, None) is not None:
            self._save()

    def write_corpus(self, db: sennit.Database) -> None:
        """Write what the default caller may see as the corpus, unless the folder has one."""
        if not any((self.folder / name).exists() for name in (CORPUS_FILE, CORPUS_POINTER)):
            with db.admin.export() as (_, records):
                write_corpus(self.folder / CORPUS_FILE, records)

    def _has_judgements(self) -> bool:
        """Whether there is a grade; a file with the header alone has none."""
        file = self.folder / JUDGEMENT_FILES[0]
        return file.is_file() and len(file.read_text(encoding="utf-8-sig").split("\n")) > 2

    def _save(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        write_judgements(self.folder / JUDGEMENT_FILES[0], self._grades)


def _shuffled(query: str, name: str) -> bytes:
    return hashlib.blake2b(f"{query}\0{name}".encode(), digest_size=8).digest()
