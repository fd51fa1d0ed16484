"""What filters read of fields is kept in files: read once, believed only while it is sound and of this database."""

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
from sennit.stores.embedded import columns, fields
from sennit.stores.embedded.columns import Column, from_arrays, stored, to_arrays, type_of
from sennit.stores.embedded.ranges import moment
from sennit.stores.embedded.schema import APPLICATION_ID, MIGRATIONS
from test_filters import records

from .helpers import COMMON, ids, numbered, poll

scalars = st.one_of(
    st.text(max_size=5),
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False, allow_infinity=False),
)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files after a few changes instead of thousands."""
    monkeypatch.setattr(fields, "SETTLE_AT", 4)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """Which ranges of changes were read from the records for which field."""
    seen: list[tuple[str, int, int]] = []

    def watched(connection: sqlite3.Connection, name: str, low: int, high: int) -> object:
        seen.append((name, low, high))
        return stored(connection, name, low, high)

    monkeypatch.setattr(fields, "stored", watched)
    return seen


def some(first: int, last: int) -> Iterator[Record]:
    return (numbered(f"r{n}", n, metadata={"n": n, "even": n % 2 == 0}) for n in range(first, last))


def found(db: sennit.Database, wanted: Filter) -> set[str]:
    return set(ids(db.search(COMMON, limit=1000, filters=wanted)))


def changes(db: sennit.Database) -> int:
    with db.store.database.read() as connection:
        return moment(connection)[0]


def kept(folder: Path) -> dict[str, int]:
    """Up to which change each field is kept."""
    manifest = folder / "index" / "fields" / "manifest.json"
    return {entry["of"]: entry["high"] for entry in json.loads(manifest.read_bytes())["body"]["segments"]}


def test_a_new_process_reads_only_what_is_newer_than_what_is_kept(
    tmp_path: Path, read: list[tuple[str, int, int]]
) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add(some(0, 20))
        assert found(db, field("n") < 3) == {"r0", "r1", "r2"}
        assert ("n", 0, changes(db)) in read
        assert kept(tmp_path / "db")["n"] == changes(db)
    with sennit.open(tmp_path / "db") as db:
        read.clear()
        assert found(db, field("n") >= 18) == {"r18", "r19"}
        assert "n" not in {name for name, _, _ in read}
        before = changes(db)
        db.add(some(20, 22))
        assert found(db, field("n") >= 19) == {"r19", "r20", "r21"}
        assert [(low, high) for name, low, high in read if name == "n"] == [(before, changes(db))]


def test_a_write_writes_no_row_for_a_field(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([numbered("a", 1, metadata={"tags": [f"t{n}" for n in range(500)]})])
    with closing(sqlite3.connect(tmp_path / "db" / "sennit.db")) as connection:
        tables = [
            name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        assert "fields" not in tables
        assert sum(connection.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in tables) < 20


def test_who_may_see_a_record_is_kept_without_being_asked_for(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add(some(0, 20))
        db.optimise()
    assert kept(tmp_path / "db").keys() == set(fields.ALWAYS)


def test_few_changes_to_many_are_not_written_again(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add(some(0, 100))
        assert len(found(db, field("n") >= 0)) == 100
        before = changes(db)
        db.add(some(100, 110))
        assert len(found(db, field("n") >= 1)) == 109
        assert kept(tmp_path / "db")["n"] == before
        db.add(some(110, 120))
        assert len(found(db, field("n") >= 2)) == 118
        assert kept(tmp_path / "db")["n"] == changes(db)


def test_who_names_ever_new_fields_does_not_fill_memory_or_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fields, "FIELDS_KEPT", 3)
    with sennit.open(tmp_path / "db") as db:
        db.add(some(0, 20))
        for turn in range(2):
            for name in ("n", "even", "missing", "absent", "gone", "never", "n"):
                assert len(found(db, field(name) >= turn)) == (20 - turn if name == "n" else 0)
        db.optimise()
        asked = kept(tmp_path / "db").keys() - set(fields.ALWAYS)
        assert len(asked) == 3
        assert len(list((tmp_path / "db" / "index" / "fields").glob("*.seg"))) == 3 + len(fields.ALWAYS)


def test_a_damaged_file_is_read_from_the_records_again_and_said(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add(some(0, 20))
        assert len(found(db, field("even") == True)) == 10  # noqa: E712
    for file in (tmp_path / "db" / "index" / "fields").glob("*.seg"):
        file.write_bytes(file.read_bytes()[:-1] + b"x")
    with sennit.open(tmp_path / "db") as db:
        assert len(found(db, field("even") == True)) == 10  # noqa: E712
        assert any("the field even are read from the records again" in said for said in db.store.notices)


def test_a_damaged_list_of_files_costs_time_only(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add(some(0, 20))
        assert len(found(db, field("n") < 3)) == 3
    (tmp_path / "db" / "index" / "fields" / "manifest.json").write_text("{")
    with sennit.open(tmp_path / "db") as db:
        assert len(found(db, field("n") < 3)) == 3
        assert any("fields are read from the records again" in said for said in db.store.notices)
        assert kept(tmp_path / "db")["n"] == changes(db)


def test_files_of_a_database_that_was_set_back_are_not_believed(tmp_path: Path) -> None:
    path = tmp_path / "db"
    with sennit.open(path) as db:
        db.add(some(0, 10))
    shutil.copy(path / "sennit.db", tmp_path / "copy")
    with sennit.open(path) as db:
        db.add(some(10, 30))
        assert len(found(db, field("n") >= 10)) == 20
    shutil.copy(tmp_path / "copy", path / "sennit.db")
    with sennit.open(path) as db:
        db.add(numbered(f"x{n}", n, metadata={"n": -n}) for n in range(1, 21))
        assert found(db, field("n") >= 10) == set()
        assert len(found(db, field("n") < 0)) == 20


def test_a_folder_that_cannot_be_written_does_not_fail_a_search(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add(some(0, 20))
        place = tmp_path / "db" / "index" / "fields"
        shutil.rmtree(place, ignore_errors=True)
        place.with_suffix(".fold.lock").unlink(missing_ok=True)
        place.with_suffix(".fold.lock").mkdir(parents=True)
        assert len(found(db, field("n") < 3)) == 3


def test_a_search_begun_before_a_file_was_written_does_not_see_what_came_after(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as one, sennit.open(tmp_path / "db") as other:
        one.add(some(0, 10))
        with one.store.snapshot() as before:
            other.add(some(10, 20))
            # While the other one keeps a field of its own, this is put off until the next filter.
            bounds = iter(range(5, 500))
            poll(lambda: bool(found(other, field("n") < next(bounds))) and "n" in kept(tmp_path / "db"))
            assert kept(tmp_path / "db")["n"] == changes(other)
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
def test_columns_are_the_same_however_they_came_about(pairs: list[tuple[Scalar, int]], at: int) -> None:
    early: dict[int, Column] = {}
    for value, row in pairs[:at]:
        early.setdefault(type_of(value), Column()).add(value, row)
    through_files = from_arrays(to_arrays({kind: column.settled() for kind, column in early.items()}))
    whole: dict[int, Column] = {}
    for value, row in pairs:
        whole.setdefault(type_of(value), Column()).add(value, row)
    for value, row in pairs[at:]:
        through_files.setdefault(type_of(value), Column()).add(value, row)
    assert through_files.keys() == whole.keys()
    for kind, column in whole.items():
        expected = sorted((value, row) for value, row in pairs if type_of(value) == kind)
        for one in (column, through_files[kind]):
            assert sorted(one.settled().pairs()) == expected
            for value in {value for value, _ in expected}:
                rows = sorted(row for some in one.equal(value) for row in some.tolist())
                assert rows == [row for other, row in expected if other == value]


@given(record=records)
def test_a_field_read_from_the_records_has_the_values_that_flatten_gives(record: Record) -> None:
    with sennit.open(":memory:") as db:
        db.add([record])
        with db.store.database.read() as connection:
            for name in {name for name, _ in flatten(record)} | {"missing", "kind", "tenant"}:
                wanted = {(type_of(value), value) for other, value in flatten(record) if other == name}
                given = list(columns.stored(connection, name, 0, 10))
                assert {(type_of(value), value) for value, _ in given} == wanted
                assert len(given) == len(wanted)
