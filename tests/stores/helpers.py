"""What the proofs of the store share: words that occur once, records, and one check of all ways to find."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import sennit
from sennit import Database, Record, Result

LETTERS = "bdfghjlmnprtvz"
COMMON = "gemeinsam"
"""A word of every record that `numbered` makes."""

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
    """A word that no other number has, which analysis leaves whole."""
    out = ""
    while True:
        out = LETTERS[number % len(LETTERS)] + "a" + out
        number //= len(LETTERS)
        if not number:
            return f"q{out}xk"


def numbered(record_id: str, number: int, **fields: object) -> Record:
    """The version `number` of a record: a word of its own, a topic, and the common word."""
    text = f"{word(number)} {COMMON} {TOPICS[number % len(TOPICS)]}"
    return Record.from_dict({"id": record_id, "text": text, **fields})


def ids(result: Result | Iterable[sennit.Hit]) -> list[str]:
    return [hit.id for hit in result]


def scores(result: Result) -> list[tuple[str, float]]:
    return [(hit.id, hit.score) for hit in result]


def by_keyword(db: Database, query: str, limit: int = 1000, filters: str | None = None) -> list[str]:
    return ids(_sound(db.search(query, recipe="keyword", limit=limit, filters=filters)))


def by_vector(db: Database, query: str, limit: int = 1000) -> list[str]:
    return ids(_sound(db.search(query, recipe="vector", limit=limit)))


def is_nearest(db: Database, record: Record) -> bool:
    """Whether a search for a record's own text finds it as near as can be; another may be as near."""
    result = _sound(db.search(record.text, recipe="vector", limit=10))
    best = result[0].score
    return abs(best - 1) < 0.01 and any(hit.record == record and best - hit.score < 1e-3 for hit in result)


def _sound(result: Result) -> Result:
    assert result.degraded == ()
    return result


def assert_holds(db: Database, expected: Mapping[str, Record], gone: Iterable[str] = ()) -> None:
    """Exactly the expected records are found, by id, by keyword and by vector; no word of `gone` is."""
    assert len(db) == len(expected)
    assert {record.id: record for record in db} == expected
    for recipe in ("keyword", "vector", "default"):
        result = _sound(db.search(COMMON, recipe=recipe, limit=1000))
        assert {hit.id: hit.record for hit in result} == expected, recipe
        assert len(result) == len(expected)
    for record in expected.values():
        assert db.get(record.id) == record
        own = record.text.split()[0]
        assert by_keyword(db, own) == [record.id]
        assert is_nearest(db, record)
    for unwanted in gone:
        assert by_keyword(db, unwanted) == []


def poll(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Wait until the condition holds; fail when it does not within the time."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds} s: {condition}"
        time.sleep(0.005)


def index_files(folder: Path) -> list[Path]:
    """Every file of the derived indexes, in a fixed order."""
    return sorted(path for path in (folder / "index").rglob("*") if path.is_file())


def segments(folder: Path, kind: str = "*") -> list[Path]:
    return sorted((folder / "index").glob(f"{kind}/*.seg"))
