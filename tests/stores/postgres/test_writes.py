"""Writes on Postgres: add, update, remove, and any text that Python can hold."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sennit
from sennit import Caller, Record
from sennit.stores.sql.postgres import MAX_IDLE_CONNECTIONS, PostgresPool

from ..helpers import assert_contains_exactly, embedded_store, ids, versioned_record, word

HOSTILE = (
    "\x00",
    "\x01",
    "a\x00\x01\x02\x01\x00z",
    "'; DROP TABLE records; --",
    "%s %% $1 ? ?1 {text}",
    "\\x00 \\ E'\\''",
    "\u202e\ufeff\U0010ffff",
    "x" * 3000,
)


def test_add_update_remove_and_get(dsn: str) -> None:
    with sennit.open(dsn) as db:
        assert db.path is None
        db.add(versioned_record(f"r{n}", n) for n in range(30))
        assert db.add([versioned_record("r1", 1)]).unchanged == 1
        assert db.add([versioned_record("r1", 101)]).updated == 1
        assert db.remove(["r2", "missing"]) == 1
        expected = {f"r{n}": versioned_record(f"r{n}", n) for n in range(30) if n != 2}
        expected["r1"] = versioned_record("r1", 101)
        assert_contains_exactly(db, expected, gone=[word(1), word(2)])
    with sennit.open(dsn) as db:
        assert_contains_exactly(db, expected, gone=[word(1), word(2)])


def test_hostile_texts_come_back_as_they_were(dsn: str) -> None:
    records = [
        Record(
            id=f"{text[:200]}-{n}",
            text=f"apple {text}",
            title=text,
            kind=text,
            parent=text,
            position=n,
            path=text,
            url=text,
            metadata={text[:100]: text, "list": [text, {"deep": text}]},
        )
        for n, text in enumerate(HOSTILE)
    ]
    with sennit.open(dsn, privacy__open=True) as db:
        db.add(records)
        assert {record.id: record for record in db} == {record.id: record for record in records}
        assert [record.id for record in db] == sorted(record.id for record in records)
        for record in records:
            assert db.get(record.id) == record
        assert set(ids(db.search("apple", limit=20))) == {record.id for record in records}
        for n, text in enumerate(HOSTILE):
            where = {text[:100].replace("\\", "\\\\"): text}
            assert ids(db.search("apple", filters=where)) == [records[n].id], text
            found = db.search("apple", filters={"parent": text}, neighbours=1)
            assert ids(found) == [records[n].id]
        assert db.remove(record.id for record in records) == len(records)
        assert len(db) == 0


@given(
    st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8), min_size=2, max_size=6
    )
)
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_texts_keep_their_value_and_their_order(dsn: str, texts: list[str]) -> None:
    pool = PostgresPool(dsn)
    try:
        with pool.read() as connection:
            for text in texts:
                assert connection.execute("SELECT ?::text", (text,)).fetchone() == (text,)
            values = " UNION ALL ".join(['SELECT ?::text COLLATE "C"'] * len(texts))
            found = connection.execute(f"{values} ORDER BY 1", texts).fetchall()
            assert [text for (text,) in found] == sorted(texts)
    finally:
        pool.close()


def write_and_stop(db: sennit.Database) -> None:
    with db.store.transaction() as transaction:
        transaction.write([versioned_record("b", 2)])
        raise RuntimeError("stop")


def add_folder_twice(db: sennit.Database) -> None:
    with embedded_store(db).pool.write() as connection:
        connection.execute("INSERT INTO folders VALUES ('/a')")
        with pytest.raises(sennit.SennitError):
            connection.execute("INSERT INTO folders VALUES ('/a')")


def test_a_failed_write_leaves_nothing(dsn: str) -> None:
    with sennit.open(dsn) as db:
        db.add([versioned_record("a", 1)])
        with pytest.raises(RuntimeError, match="stop"):
            write_and_stop(db)
        assert_contains_exactly(db, {"a": versioned_record("a", 1)}, gone=[word(2)])


def test_a_statement_that_failed_is_never_committed(dsn: str) -> None:
    with sennit.open(dsn) as db:
        with pytest.raises(sennit.SennitError, match="rolled back"):
            add_folder_twice(db)
        with embedded_store(db).pool.read() as connection:
            assert connection.execute("SELECT count(*) FROM folders").fetchone() == (0,)


def test_a_caller_sees_only_its_own(dsn: str) -> None:
    with sennit.open(dsn) as db:
        db.add(
            [
                Record(id="open", text="apple"),
                Record(id="closed", text="apple", sensitivity="private"),
                Record(id="other", text="apple", tenant="t"),
            ]
        )
        assert ids(db.search("apple", caller=Caller())) == ["open"]
        assert set(ids(db.search("apple", caller=Caller(clearance="private")))) == {"open", "closed"}
        assert ids(db.search("apple", caller=Caller(tenant="t"))) == ["other"]


def test_idle_connections_are_limited(dsn: str) -> None:
    pool = PostgresPool(dsn)
    blocks = [pool.read_separately() for _ in range(MAX_IDLE_CONNECTIONS + 4)]
    connections = [block.__enter__() for block in blocks]
    assert {connection.version() for connection in connections} == {(0, 0, 0)}
    for block in blocks:
        block.__exit__(None, None, None)
    assert len(pool._idle) == MAX_IDLE_CONNECTIONS
    pool.close()
    assert not pool._idle
