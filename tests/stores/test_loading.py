"""Bulk loads: merging waits for the end of a load, and a load may pass prepared records."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from sennit import Database, Fact, Record
from sennit.engine import maintenance
from sennit.stores.codec import embedding_hash
from sennit.stores.contract import WriteResult
from sennit.stores.prepared_records import WritableRecords, prepare_record
from sennit.stores.sql.records import SELECT_WITH_HASHES

from .helpers import assert_contains_exactly, embedded_store, versioned_record

BATCHES = [[versioned_record(f"r{n}", n) for n in range(at, at + 8)] for at in range(0, 48, 8)]
EXPECTED = {record.id: record for batch in BATCHES for record in batch}


@pytest.fixture(autouse=True)
def low_load_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "LARGE_LOAD_RECORDS", 40)


def segment_counts(db: Database) -> list[int]:
    """The number of segments of each index."""
    return [len(index.segment_infos()) for index in embedded_store(db).live_indexes()]


def load(db: Database) -> None:
    """Add batch after batch; flush each, and merge as the background thread would."""
    for batch in BATCHES:
        db.add(batch)
        db.maintainer.flush(wait=True)
        db.maintainer.merge(max_unmerged=maintenance.MAX_SEGMENTS_DURING_LOAD)


def test_segments_of_a_load_are_merged_when_it_ends(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        with db.maintainer.bulk_load():
            load(db)
            db.add([versioned_record("buffered", 99)])
            assert segment_counts(db) == [len(BATCHES)] * 2
            assert_contains_exactly(db, {**EXPECTED, "buffered": versioned_record("buffered", 99)})
        assert max(segment_counts(db)) < len(BATCHES)
    with sennit.open(tmp_path / "db") as db:
        with embedded_store(db).pool.read() as connection:
            (last,) = connection.execute("SELECT max(row) FROM records").fetchone()
        # No record is left to be read into a buffer.
        assert all(index.segment_infos()[-1].high >= last for index in embedded_store(db).live_indexes())
        assert_contains_exactly(db, {**EXPECTED, "buffered": versioned_record("buffered", 99)})


def test_segments_above_the_limit_are_merged_during_a_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "MAX_SEGMENTS_DURING_LOAD", 3)
    with sennit.open(tmp_path / "db") as db, db.maintainer.bulk_load():
        load(db)
        assert max(segment_counts(db)) <= 3
        assert_contains_exactly(db, EXPECTED)


def test_failed_and_small_loads_do_not_merge(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        with contextlib.suppress(KeyboardInterrupt), db.maintainer.bulk_load():
            load(db)
            raise KeyboardInterrupt
        assert segment_counts(db) == [len(BATCHES)] * 2
        with db.maintainer.bulk_load():
            db.add([versioned_record("r0", 0)])
        assert segment_counts(db) == [len(BATCHES)] * 2
        assert_contains_exactly(db, EXPECTED)


RECORDS = [
    Record(id="plain", text="words"),
    Record(
        id="of a tenant", text="words", tenant="acme", title="Jaws (film)", metadata={"aliases": ["Shark"]}
    ),
    Fact(subject="Ann", relation="knows", object="Bob").to_record(),
]


def write_all(db: sennit.Database, records: WritableRecords) -> WriteResult:
    prepared, vectors = db.writes.embed(records)
    with db.writes.transaction() as transaction:
        transaction.write(prepared, vectors)
    return transaction.result


def test_prepared_records_are_written_like_others(tmp_path: Path) -> None:
    everything = (
        SELECT_WITH_HASHES,
        "SELECT * FROM names",
        "SELECT * FROM edges",
        "SELECT hash, vector FROM vectors",
    )
    found = []
    for name, given_records in (
        ("plain", RECORDS),
        ("ready", [prepare_record(record) for record in RECORDS]),
    ):
        with sennit.open(tmp_path / name) as db:
            assert write_all(db, given_records).added == len(RECORDS)
            assert write_all(db, given_records).unchanged == len(RECORDS)
            with embedded_store(db).pool.read() as connection:
                found.append([sorted(connection.execute(select), key=repr) for select in everything])
            assert [record for record in db.store.iter_records() if not record.tenant] == [
                RECORDS[2],
                RECORDS[0],
            ]
    assert found[0] == found[1]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_prepared_record_has_the_ids_and_hashes_of_its_record(title: str, text: str) -> None:
    record = Record(id="a", text=text, title=title)
    prepared = prepare_record(record)
    assert prepared.id == record.full_id
    assert prepared.content_hash.hex() == record.content_hash
    assert prepared.embedding_text == record.embedding_text
    assert prepared.embedding_hash == embedding_hash(record.embedding_text)
    assert prepare_record(prepared) is prepared
