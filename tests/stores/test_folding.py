"""Segments that another program builds are those that this one would have built, and nothing depends on it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import sennit
from sennit import Database
from sennit.programs import Message, Program
from sennit.stores.embedded import keyword
from sennit.stores.embedded.arrays import Arrays
from sennit.stores.embedded.folding import Folder
from sennit.stores.embedded.segments import Entry

from .helpers import assert_holds, numbered

RECORDS = [numbered(f"r{n}", n) for n in range(40)]
TITLED = [numbered(f"t{n}", 50 + n, title=f"Title {n}") for n in range(9)]


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyword, "ELSEWHERE", 10)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Entry | None]:
    """What the other program answered."""
    out: list[Entry | None] = []
    fold = Folder.fold

    def watched(self: Folder, low: int, high: int) -> Entry | None:
        out.append(fold(self, low, high))
        return out[-1]

    monkeypatch.setattr(Folder, "fold", watched)
    return out


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with sennit.open(tmp_path / "db") as opened:
        yield opened


def arrays_of(db: Database) -> list[Arrays]:
    segments = db.store.keyword._store
    return [segments.read(entry) for entry in segments.entries()]


def test_a_segment_of_another_program_is_the_same_to_the_last_bit(
    db: Database, tmp_path: Path, asked: list[Entry | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    db.add(RECORDS + TITLED)
    db.keeper.fold(wait=True)
    assert [entry is not None and entry.count for entry in asked] == [len(RECORDS + TITLED)]
    monkeypatch.setattr(keyword, "ELSEWHERE", 1000)
    with sennit.open(tmp_path / "here") as here:
        here.add(RECORDS + TITLED)
        here.keeper.fold(wait=True)
        assert len(asked) == 1
        (one,), (other,) = arrays_of(db), arrays_of(here)
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_what_another_program_folded_is_found(db: Database, asked: list[Entry | None]) -> None:
    db.add(RECORDS)
    db.keeper.fold(wait=True)
    assert asked[0] is not None
    assert_holds(db, {record.id: record for record in RECORDS}, [])


def test_once_started_a_program_folds_few_records_too(db: Database, asked: list[Entry | None]) -> None:
    few = [numbered(f"s{n}", 100 + n) for n in range(5)]
    db.add(few)
    db.keeper.fold(wait=True)
    assert not asked
    db.add(RECORDS)
    db.keeper.fold(wait=True)
    db.add(numbered(f"u{n}", 200 + n) for n in range(5))
    db.keeper.fold(wait=True)
    assert [entry and entry.count for entry in asked] == [len(RECORDS), 5]


def test_where_no_program_answers_this_one_folds(
    db: Database, asked: list[Entry | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert db.store._folder is not None
    # A module that ends without an answer.
    db.store._folder._program = Program("sennit.errors")
    db.add(RECORDS)
    db.keeper.fold(wait=True)
    assert asked == [None]
    assert sum(len(arrays["rows"]) for arrays in arrays_of(db)) == len(RECORDS)
    assert_holds(db, {record.id: record for record in RECORDS}, [])


def test_a_program_of_another_version_is_not_believed(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.add(RECORDS)
    folder = db.store._folder
    assert folder is not None
    monkeypatch.setitem(folder._request, "identity", "keyword-0")
    assert folder.fold(0, 40) is None


def test_what_is_removed_while_a_program_folds_is_still_seen_by_an_earlier_moment(db: Database) -> None:
    db.add(RECORDS)
    folder = db.store._folder
    assert folder is not None
    with db.store.snapshot() as before:
        assert before.count() == len(RECORDS)
        assert db.store.database.path is not None
        with sennit.open(db.store.database.path.parent) as beside:
            beside.remove(["r3"])
            entry = folder.fold(0, before.seq)
            assert entry is not None
            assert entry.count == len(RECORDS) - 1
            # It says that it knows of the removal, so this moment leaves it alone.
            assert entry.clean == before.seq + 1
            db.store.keyword._store.publish([entry])
        assert before.count() == len(RECORDS)
        assert len(before.passing(sennit.filters.EVERYTHING)) == len(RECORDS)
    assert len(db) == len(RECORDS) - 1


def test_the_program_imports_nothing_from_the_working_folder(
    db: Database, tmp_path: Path, asked: list[Entry | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    db.add(RECORDS)
    db.keeper.fold(wait=True)
    assert asked[0] is not None


def test_the_program_ends_when_there_is_no_more_to_do_and_when_the_database_is_closed(tmp_path: Path) -> None:
    db = sennit.open(tmp_path / "db")
    folder = db.store._folder
    assert folder is not None
    db.add(RECORDS)
    db.keeper.fold(wait=True)
    first = folder._program
    assert first is not None
    assert not first.ended
    db.store.rest()
    assert first.ended
    db.add(numbered(f"s{n}", 100 + n) for n in range(20))
    db.keeper.fold(wait=True)
    second = folder._program
    assert second is not None
    db.close()
    assert second.ended


@pytest.mark.parametrize("module", ["sennit.errors", "sennit.there_is_no_such_module", "this"])
def test_a_program_that_ends_or_says_something_else_gives_no_answer(module: str) -> None:
    program = Program(module)
    program.ask(Message({}))
    assert program.answer() is None
    assert program.ended
    program.end()


def test_closing_ends_a_program_that_is_at_work(tmp_path: Path) -> None:
    db = sennit.open(tmp_path / "db")
    folder = db.store._folder
    assert folder is not None
    # It reads until there is no more, and then only answers.
    folder._program = Program("json.tool")
    waiting = threading.Thread(target=folder.fold, args=(0, 10))
    waiting.start()
    db.close()
    waiting.join(60)
    assert not waiting.is_alive()


def test_where_no_program_can_be_started_this_one_folds(
    db: Database, asked: list[Entry | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    db.add(RECORDS)
    db.keeper.fold(wait=True)
    assert asked == [None]
    assert_holds(db, {record.id: record for record in RECORDS}, [])


def test_a_database_in_memory_is_folded_here() -> None:
    with sennit.open(":memory:") as db:
        db.add(RECORDS)
        db.keeper.fold(wait=True)
        assert sum(len(arrays["rows"]) for arrays in arrays_of(db)) == len(RECORDS)
