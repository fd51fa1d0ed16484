"""Much at once: merging waits for the end of a load, and a load may bring its records ready to be written."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from sennit import Database, Fact, Record
from sennit.stores.embedded import keeper
from sennit.stores.embedded.codec import SELECT, embedding_hash
from sennit.stores.embedded.prepared import prepared

from .helpers import assert_holds, numbered

BATCHES = [[numbered(f"r{n}", n) for n in range(at, at + 8)] for at in range(0, 48, 8)]
EXPECTED = {record.id: record for batch in BATCHES for record in batch}


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "MUCH", 40)


def counts(db: Database) -> list[int]:
    """How many segments each index has."""
    return [len(index.covered()) for index in db.store.live_indexes()]


def load(db: Database) -> None:
    """Batch after batch, each folded at once and then settled as in the background."""
    for batch in BATCHES:
        db.add(batch)
        db.keeper.fold(wait=True)
        db.keeper.settle(most=keeper.COMING)


def test_segments_of_a_load_are_merged_when_it_ends(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        with db.keeper.loading():
            load(db)
            db.add([numbered("tail", 99)])
            assert counts(db) == [len(BATCHES)] * 2
            assert_holds(db, {**EXPECTED, "tail": numbered("tail", 99)})
        assert max(counts(db)) < len(BATCHES)
    with sennit.open(tmp_path / "db") as db:
        with db.store.database.read() as connection:
            (last,) = connection.execute("SELECT max(row) FROM records").fetchone()
        # Nothing is left to be read into a tail.
        assert all(index.covered()[-1].high >= last for index in db.store.live_indexes())
        assert_holds(db, {**EXPECTED, "tail": numbered("tail", 99)})


def test_more_segments_than_are_let_be_are_merged_during_a_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "COMING", 3)
    with sennit.open(tmp_path / "db") as db, db.keeper.loading():
        load(db)
        assert max(counts(db)) <= 3
        assert_holds(db, EXPECTED)


def test_a_load_that_fails_and_one_of_little_leave_merging_to_others(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        with contextlib.suppress(KeyboardInterrupt), db.keeper.loading():
            load(db)
            raise KeyboardInterrupt
        assert counts(db) == [len(BATCHES)] * 2
        with db.keeper.loading():
            db.add([numbered("r0", 0)])
        assert counts(db) == [len(BATCHES)] * 2
        assert_holds(db, EXPECTED)


RECORDS = [
    Record(id="plain", text="words"),
    Record(
        id="of a tenant", text="words", tenant="acme", title="Jaws (film)", metadata={"aliases": ["Shark"]}
    ),
    Fact(subject="Ann", relation="knows", object="Bob").to_record(),
]


def test_records_that_come_prepared_are_written_as_others_are(tmp_path: Path) -> None:
    everything = (SELECT, "SELECT * FROM names", "SELECT * FROM edges", "SELECT hash, vector FROM vectors")
    found = []
    for name, given_records in (("plain", RECORDS), ("ready", [prepared(record) for record in RECORDS])):
        with sennit.open(tmp_path / name) as db:
            assert db.apply(given_records).added == len(RECORDS)
            assert db.apply(given_records).unchanged == len(RECORDS)
            with db.store.database.read() as connection:
                found.append([sorted(connection.execute(select), key=repr) for select in everything])
            assert [record for record in db.store.every() if not record.tenant] == [RECORDS[2], RECORDS[0]]
    assert found[0] == found[1]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_what_is_prepared_says_of_itself_what_the_record_does(title: str, text: str) -> None:
    record = Record(id="a", text=text, title=title)
    ready = prepared(record)
    assert ready.id == record.full_id
    assert ready.content.hex() == record.content_hash
    assert ready.embedding_text == record.embedding_text
    assert ready.embedding == embedding_hash(record.embedding_text)
    assert prepared(ready) is ready
