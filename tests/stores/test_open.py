"""Opening what is no database, files of other programs and versions, damaged files, and a full disk."""

from __future__ import annotations

import re
import sqlite3
import subprocess
from pathlib import Path

import pytest

import sennit
from sennit.errors import StoreCorrupt, StoreError, StoreFull, StoreVersion
from sennit.stores.sql.dialect import SQLITE
from sennit.stores.sql.schema import APPLICATION_ID, MIGRATIONS, VERSION

from .helpers import assert_contains_exactly, embedded_store, search_keyword, versioned_record


def test_a_file_cannot_be_opened_as_a_database(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(StoreError, match="is a file"):
        sennit.open(path)
    assert path.read_text() == "mine"
    with pytest.raises(StoreError):
        sennit.open(path / "below")


def test_a_folder_with_other_files_is_refused_untouched(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"picture")
    with pytest.raises(StoreError, match=re.escape("holiday.jpg")):
        sennit.open(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["holiday.jpg"]


def test_an_empty_folder_and_missing_parents_are_accepted(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "a" / "b" / "ü c"):
        with sennit.open(folder) as db:
            db.add([versioned_record("a", 1)])
            assert len(db) == 1


def test_git_ignores_a_database(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with sennit.open(tmp_path / ".sennit") as db:
        db.add([versioned_record("a", 1)])
    status = subprocess.run(
        ["git", "-C", str(tmp_path), "status", "--porcelain", "--untracked-files=all"],
        check=True,
        capture_output=True,
    )
    assert status.stdout == b""


def test_a_gitignore_of_ones_own_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("*.log\n")
    with pytest.raises(StoreError, match="holds other files"):
        sennit.open(tmp_path)
    assert (tmp_path / ".gitignore").read_text() == "*.log\n"


def test_a_database_of_another_program_is_refused_untouched(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    folder.mkdir()
    with sqlite3.connect(folder / "sennit.db") as connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")
    connection.close()
    before = (folder / "sennit.db").read_bytes()
    with pytest.raises(StoreVersion, match="another program"):
        sennit.open(folder)
    assert (folder / "sennit.db").read_bytes() == before


def test_a_newer_database_is_refused_with_advice(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    sennit.open(folder).close()
    with sqlite3.connect(folder / "sennit.db") as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    with pytest.raises(StoreVersion, match=r"newer sennit.*pip install -U sennit"):
        sennit.open(folder)


@pytest.mark.parametrize(
    "content", [b"not a database at all, but long enough to be one " * 50, b"SQLite format 3\0"]
)
def test_a_file_that_is_not_sqlite_is_reported_as_damaged(tmp_path: Path, content: bytes) -> None:
    folder = tmp_path / "db"
    folder.mkdir()
    (folder / "sennit.db").write_bytes(content)
    with pytest.raises(StoreCorrupt, match="sennit export"):
        sennit.open(folder)


def test_a_damaged_page_is_reported_when_it_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    with sennit.open(folder) as db:
        db.add(versioned_record(f"r{n}", n) for n in range(500))
        with embedded_store(db).pool.write() as connection:
            (page,) = connection.execute(
                "SELECT rootpage FROM sqlite_master WHERE name = 'records'"
            ).fetchone()
    data = bytearray((folder / "sennit.db").read_bytes())
    size = int.from_bytes(data[16:18], "big")
    data[(page - 1) * size : page * size] = b"\xff" * size
    (folder / "sennit.db").write_bytes(data)
    with pytest.raises(StoreCorrupt, match="backup"), sennit.open(folder) as db:
        list(db)


def test_an_empty_file_becomes_an_empty_database(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    folder.mkdir()
    (folder / "sennit.db").write_bytes(b"")
    with sennit.open(folder) as db:
        db.add([versioned_record("a", 1)])
        assert_contains_exactly(db, {"a": versioned_record("a", 1)})


def test_a_full_disk_loses_no_committed_write(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([versioned_record("a", 1, metadata={"colour": "red"})])
        with embedded_store(db).pool.write() as connection:
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            connection.execute(f"PRAGMA max_page_count = {pages + 2}")
        with pytest.raises(StoreFull, match="Free some space"):
            db.add(versioned_record(f"r{n}", 10 + n, metadata={"shape": "round"}) for n in range(300))
        assert_contains_exactly(db, {"a": versioned_record("a", 1, metadata={"colour": "red"})})
        with embedded_store(db).pool.write() as connection:
            connection.execute("PRAGMA max_page_count = 1073741823")
        db.add([versioned_record("b", 2, metadata={"shape": "round"})])
        # A field that first occurred in the failed batch works in filters.
        assert search_keyword(db, "gemeinsam", filters="shape = 'round'") == ["b"]
        assert search_keyword(db, "gemeinsam", filters="colour = 'red'") == ["a"]
    with sennit.open(tmp_path / "db") as db:
        assert search_keyword(db, "gemeinsam", filters="shape = 'round'") == ["b"]


def test_a_full_disk_under_the_indexes_fails_no_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sennit.stores.embedded import segment_store

    def full(path: Path, arrays: object) -> str:
        raise OSError(28, "No space left on device")

    with sennit.open(tmp_path / "db", store__flush_at=2) as db:
        monkeypatch.setattr(segment_store, "write_arrays", full)
        expected = {f"r{n}": versioned_record(f"r{n}", n) for n in range(20)}
        for record in expected.values():
            db.add([record])
        assert_contains_exactly(db, expected)
        with pytest.raises(StoreError, match="No space left"):
            db.admin.optimise()
        monkeypatch.undo()
        db.admin.optimise()
        assert_contains_exactly(db, expected)


def tables(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
    return {(name, " ".join(sql.split())) for name, sql in found if sql}


@pytest.mark.parametrize("start", range(VERSION + 1))
def test_a_database_of_any_earlier_version_is_migrated(tmp_path: Path, start: int) -> None:
    sennit.open(tmp_path / "fresh").close()
    folder = tmp_path / "older"
    folder.mkdir()
    connection = sqlite3.connect(folder / "sennit.db")
    for step in MIGRATIONS[:start]:
        connection.executescript(step.format_map(SQLITE.types))
    if start:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {start}")
    connection.close()
    with sennit.open(folder) as db:
        db.add([versioned_record("a", 1)])
        assert_contains_exactly(db, {"a": versioned_record("a", 1)})
    fresh, older = (sqlite3.connect(tmp_path / name / "sennit.db") for name in ("fresh", "older"))
    assert tables(fresh) == tables(older)
    for pragma in ("application_id", "user_version", "journal_mode"):
        assert fresh.execute(f"PRAGMA {pragma}").fetchone() == older.execute(f"PRAGMA {pragma}").fetchone()
    fresh.close()
    older.close()


def test_a_failed_migration_leaves_the_database_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sennit.stores.sql import schema, sqlite

    folder = tmp_path / "db"
    with sennit.open(folder) as db:
        db.add([versioned_record("a", 1)])
    with monkeypatch.context() as patch:
        broken = (*MIGRATIONS, "CREATE TABLE later (x); INSERT INTO nowhere VALUES (1);")
        patch.setattr(schema, "MIGRATIONS", broken)
        patch.setattr(sqlite, "VERSION", VERSION + 1)
        with pytest.raises(StoreError):
            sennit.open(folder)
    with sennit.open(folder) as db:
        assert_contains_exactly(db, {"a": versioned_record("a", 1)})


def test_a_database_that_another_process_is_creating_is_no_folder_of_other_files(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    folder.mkdir()
    (folder / ".gitignore").touch()
    with sennit.open(folder) as db:
        assert db.count() == 0
