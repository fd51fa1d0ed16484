"""Helpers for the store tests: records with unique words, and an assertion over every kind of search."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import sennit
from sennit import Database, Record, SearchResult
from sennit.stores.embedded.store import EmbeddedStore

LETTERS = "bdfghjlmnprtvz"
COMMON_WORD = "gemeinsam"
"""A word in every record that `versioned_record` makes."""

TOPICS = (
    "the river floods the valley in spring",
    "a compiler turns source into machine code",
    "bread rises because yeast makes gas",
    "the orchestra tunes to the oboe",
    "glaciers carve valleys over centuries",
    "interest rates follow inflation",
    "the goalkeeper saved a late penalty",
)


def word(number: int) -> str:
    """A unique word for a number. Analysis keeps it as one term."""
    out = ""
    while True:
        out = LETTERS[number % len(LETTERS)] + "a" + out
        number //= len(LETTERS)
        if not number:
            return f"q{out}xk"


def versioned_record(record_id: str, number: int, **fields: object) -> Record:
    """Version `number` of a record: a unique word, the common word, and a topic."""
    text = f"{word(number)} {COMMON_WORD} {TOPICS[number % len(TOPICS)]}"
    return Record.from_dict({"id": record_id, "text": text, **fields})


def embedded_store(db: Database) -> EmbeddedStore:
    """The embedded store of a database, for tests that look below the contract."""
    assert isinstance(db.store, EmbeddedStore)
    return db.store


def add_records(store: EmbeddedStore, records: Iterable[Record]) -> None:
    """Add records without vectors."""
    with store.transaction() as transaction:
        transaction.write(records)


def remove_records(store: EmbeddedStore, record_ids: Iterable[str]) -> None:
    with store.transaction() as transaction:
        transaction.write((), remove=record_ids)


def ids(result: SearchResult | Iterable[sennit.Hit]) -> list[str]:
    return [hit.id for hit in result]


def scores(result: SearchResult) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in result]


def search_keyword(db: Database, query: str, limit: int = 1000, filters: str | None = None) -> list[str]:
    return ids(_assert_not_degraded(db.search(query, recipe="keyword", limit=limit, filters=filters)))


def search_vector(db: Database, query: str, limit: int = 1000) -> list[str]:
    return ids(_assert_not_degraded(db.search(query, recipe="vector", limit=limit)))


def is_nearest(db: Database, record: Record) -> bool:
    """Whether a search for a record's own text returns it with the best score; another record may tie."""
    result = _assert_not_degraded(db.search(record.text, recipe="vector", limit=10))
    best = result[0].score
    return abs(best - 1) < 0.01 and any(hit.record == record and best - hit.score < 1e-3 for hit in result)


def _assert_not_degraded(result: SearchResult) -> SearchResult:
    assert result.degraded == ()
    return result


def assert_contains_exactly(db: Database, expected: Mapping[str, Record], gone: Iterable[str] = ()) -> None:
    """The database returns exactly the expected records by id, by keyword and by vector, and none for a word of `gone`."""
    assert len(db) == len(expected)
    assert {record.id: record for record in db} == expected
    for recipe in ("keyword", "vector", "default"):
        result = _assert_not_degraded(db.search(COMMON_WORD, recipe=recipe, limit=1000))
        assert {hit.id: hit.record for hit in result} == expected, recipe
        assert len(result) == len(expected)
    for record in expected.values():
        assert db.get(record.id) == record
        own = record.text.split()[0]
        assert search_keyword(db, own) == [record.id]
        assert is_nearest(db, record)
    for removed_word in gone:
        assert search_keyword(db, removed_word) == []


def wait_until(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until the condition holds; fail after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {condition}"
        time.sleep(0.005)


def index_files(folder: Path) -> list[Path]:
    """Every file of the derived indexes, sorted."""
    return sorted(path for path in (folder / "index").rglob("*") if path.is_file())


def segments(folder: Path, kind: str = "*") -> list[Path]:
    return sorted((folder / "index").glob(f"{kind}/*.seg"))
