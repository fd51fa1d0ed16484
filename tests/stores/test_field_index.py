"""Field values are stored in files, which are used only while they are intact and belong to this database."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from sennit import Filter, Record, field
from sennit.filters import Scalar, flatten
from sennit.stores.embedded import field_index
from sennit.stores.embedded.field_columns import (
    Column,
    columns_from_arrays,
    columns_to_arrays,
    read_values,
    type_of,
)
from sennit.stores.embedded.ranges import read_version
from sennit.stores.sql.connection import Connection
from sennit.stores.sql.schema import APPLICATION_ID, MIGRATIONS
from test_filters import records

from .helpers import COMMON_WORD, embedded_store, ids, versioned_record, wait_until

scalars = st.one_of(
    st.text(max_size=5),
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False, allow_infinity=False),
)


@pytest.fixture(autouse=True)
def low_write_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write files after a few changes instead of thousands."""
    monkeypatch.setattr(field_index, "COMPACT_AFTER", 4)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """The field and range of changes of each read from the records."""
    ranges: list[tuple[str, int, int]] = []

    def record_read(connection: Connection, name: str, low: int, high: int) -> object:
        ranges.append((name, low, high))
        return read_values(connection, name, low, high)

    monkeypatch.setattr(field_index, "read_values", record_read)
    return ranges


def some(first: int, last: int) -> Iterator[Record]:
    return (versioned_record(f"r{n}", n, metadata={"n": n, "even": n % 2 == 0}) for n in range(first, last))


def found(db: sennit.Database, where: Filter) -> set[str]:
    return set(ids(db.search(COMMON_WORD, limit=1000, filters=where)))


def changes(db: sennit.Database) -> int:
    with embedded_store(db).pool.read() as connection:
        return read_version(connection)[0]


def stored_seqs(folder: Path) -> dict[str, int]:
    """The last change that the file of each field covers."""
    manifest = folder / "index" / "fields" / "manifest.json"
    return {info["field"]: info["high"] for info in json.loads(manifest.read_bytes())["body"]["segments"]}


def test_new_process_reads_only_records_newer_than_the_file(
    tmp_path: Path, read: list[tuple[str, int, int]]
) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add(some(0, 20))
        assert found(db, field("n") < 3) == {"r0", "r1", "r2"}
        assert ("n", 0, changes(db)) in read
        assert stored_seqs(tmp_path / "db")["n"] == changes(db)
    with sennit.open(tmp_path / "db") as db:
        read.clear()
        assert found(db, field("n") >= 18) == {"r18", "r19"}
        assert "n" not in {name for name, _, _ in read}
        before = changes(db)
        db.add(some(20, 22))
        assert found(db, field("n") >= 19) == {"r19", "r20", "r21"}
        assert [(low, high) for name, low, high in read if name == "n"] == [(before, changes(db))]


def test_write_adds_no_table_rows_for_fields(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([versioned_record("a", 1, metadata={"tags": [f"t{n}" for n in range(500)]})])
    with closing(sqlite3.connect(tmp_path / "db" / "sennit.db")) as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        assert "fields" not in tables
        assert sum(connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables) < 20


def test_access_fields_are_stored_without_a_filter(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add(some(0, 20))
        db.admin.optimise()
    assert stored_seqs(tmp_path / "db").keys() == set(field_index.ACCESS_FIELDS)


def test_few_changes_do_not_rewrite_a_large_file(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add(some(0, 100))
        assert len(found(db, field("n") >= 0)) == 100
        before = changes(db)
        db.add(some(100, 110))
        assert len(found(db, field("n") >= 1)) == 109
        assert stored_seqs(tmp_path / "db")["n"] == before
        db.add(some(110, 120))
        assert len(found(db, field("n") >= 2)) == 118
        assert stored_seqs(tmp_path / "db")["n"] == changes(db)


def test_naming_ever_new_fields_does_not_fill_memory_or_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(field_index, "MAX_FIELDS", 3)
    with sennit.open(tmp_path / "db") as db:
        db.add(some(0, 20))
        for turn in range(2):
            for name in ("n", "even", "missing", "absent", "gone", "never", "n"):
                known = name in ("n", "even")
                where = field(name) >= turn if known else field(name).exists()
                assert len(found(db, where)) == (20 - turn if name == "n" else 0)
        db.admin.optimise()
        others = stored_seqs(tmp_path / "db").keys() - set(field_index.ACCESS_FIELDS)
        assert len(others) == 3
        assert len(list((tmp_path / "db" / "index" / "fields").glob("*.seg"))) == 3 + len(
            field_index.ACCESS_FIELDS
        )


def test_damaged_file_is_reported_and_read_from_the_records_again(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add(some(0, 20))
        assert len(found(db, field("even") == True)) == 10  # noqa: E712
    for file in (tmp_path / "db" / "index" / "fields").glob("*.seg"):
        file.write_bytes(file.read_bytes()[:-1] + b"x")
    with sennit.open(tmp_path / "db") as db:
        assert len(found(db, field("even") == True)) == 10  # noqa: E712
        assert any("the field even are read from the records again" in notice for notice in db.store.notices)


def test_damaged_manifest_changes_no_result(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add(some(0, 20))
        assert len(found(db, field("n") < 3)) == 3
    (tmp_path / "db" / "index" / "fields" / "manifest.json").write_text("{")
    with sennit.open(tmp_path / "db") as db:
        assert len(found(db, field("n") < 3)) == 3
        assert any("fields are read from the records again" in notice for notice in db.store.notices)
        assert stored_seqs(tmp_path / "db")["n"] == changes(db)


def test_files_are_not_used_after_the_database_was_restored_from_a_backup(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with sennit.open(path) as db:
        db.add(some(0, 10))
    shutil.copy(path / "sennit.db", tmp_path / "copy")
    with sennit.open(path) as db:
        db.add(some(10, 30))
        assert len(found(db, field("n") >= 10)) == 20
    shutil.copy(tmp_path / "copy", path / "sennit.db")
    with sennit.open(path) as db:
        db.add(versioned_record(f"x{n}", n, metadata={"n": -n}) for n in range(1, 21))
        assert found(db, field("n") >= 10) == set()
        assert len(found(db, field("n") < 0)) == 20


def test_search_succeeds_if_the_folder_cannot_be_written(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add(some(0, 20))
        place = tmp_path / "db" / "index" / "fields"
        shutil.rmtree(place, ignore_errors=True)
        place.with_suffix(".flush.lock").unlink(missing_ok=True)
        place.with_suffix(".flush.lock").mkdir(parents=True)
        assert len(found(db, field("n") < 3)) == 3


def test_snapshot_does_not_see_a_file_written_after_it_began(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as one, sennit.open(tmp_path / "db") as other:
        one.add(some(0, 10))
        with one.store.snapshot() as before:
            other.add(some(10, 20))
            # While the other handle writes another field, this one is written by a later filter.
            bounds = iter(range(5, 500))
            wait_until(
                lambda: bool(found(other, field("n") < next(bounds))) and "n" in stored_seqs(tmp_path / "db")
            )
            assert stored_seqs(tmp_path / "db")["n"] == changes(other)
            assert before.count(field("n") >= 5) == 5
        assert len(found(one, field("n") >= 5)) == 15


def test_the_table_of_fields_of_an_older_sennit_is_dropped(tmp_path: Path) -> None:
    before = next(at for at, step in enumerate(MIGRATIONS) if "DROP TABLE fields" in step)
    (tmp_path / "db").mkdir()
    with closing(sqlite3.connect(tmp_path / "db" / "sennit.db")) as connection:
        for step in MIGRATIONS[:before]:
            connection.executescript(step)
        connection.execute("INSERT INTO field_names VALUES (1, 'n')")
        connection.execute("INSERT INTO fields VALUES (1, 1, 7, 1)")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {before}")
        connection.commit()
    with sennit.open(tmp_path / "db") as db:
        db.add(some(0, 9))
        assert found(db, field("n") == 7) == {"r7"}


@given(st.lists(st.tuples(scalars, st.integers(1, 50)), max_size=40), st.integers(0, 40))
def test_columns_do_not_depend_on_when_they_were_compacted(pairs: list[tuple[Scalar, int]], at: int) -> None:
    early: dict[int, Column] = {}
    for value, row in pairs[:at]:
        early.setdefault(type_of(value), Column()).add(value, row)
    through_files = columns_from_arrays(
        columns_to_arrays({kind: column.compact() for kind, column in early.items()})
    )
    whole: dict[int, Column] = {}
    for value, row in pairs:
        whole.setdefault(type_of(value), Column()).add(value, row)
    for value, row in pairs[at:]:
        through_files.setdefault(type_of(value), Column()).add(value, row)
    assert through_files.keys() == whole.keys()
    for kind, column in whole.items():
        expected = sorted((value, row) for value, row in pairs if type_of(value) == kind)
        for one in (column, through_files[kind]):
            assert sorted(one.compact().pairs()) == expected
            for value in {value for value, _ in expected}:
                rows = sorted(row for some in one.rows_equal(value) for row in some.tolist())
                assert rows == [row for other, row in expected if other == value]


@given(record=records)
def test_read_values_returns_the_values_of_flatten(record: Record) -> None:
    with sennit.open(":memory:") as db:
        db.add([record])
        with embedded_store(db).pool.read() as connection:
            for name in {name for name, _ in flatten(record)} | {"missing", "kind", "tenant"}:
                wanted = {(type_of(value), value) for other, value in flatten(record) if other == name}
                given = list(read_values(connection, name, 0, 10))
                assert {(type_of(value), value) for value, _ in given} == wanted
                assert len(given) == len(wanted)
