"""The files under index/ are derived: after any damage the next search is right, and the repair is reported."""

from __future__ import annotations

import json
import logging
import random
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
import xxhash

import sennit
from sennit import Record
from sennit.engine import maintenance
from sennit.stores.embedded import store
from sennit.stores.embedded.keyword_index import KeywordIndex

from .helpers import (
    COMMON_WORD,
    assert_contains_exactly,
    embedded_store,
    index_files,
    scores,
    segments,
    versioned_record,
    word,
)

Expected = dict[str, Record]


@pytest.fixture
def prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Expected]:
    """A closed database with several segments, updates, deletes and unflushed records."""
    folder = tmp_path / "db"
    expected: Expected = {}
    # On a busy machine the background thread would merge the segments before the database is closed.
    monkeypatch.setattr(maintenance.IndexMaintainer, "wake", lambda _: None)
    with sennit.open(folder) as db:
        for batch in range(4):
            records = [versioned_record(f"r{n}", n) for n in range(batch * 10, batch * 10 + 10)]
            db.add(records)
            db.maintainer.flush(wait=True)
            expected.update((record.id, record) for record in records)
        updates = [versioned_record(f"r{n}", 100 + n) for n in (1, 12, 23)]
        db.add(updates)
        expected.update((record.id, record) for record in updates)
        db.remove(["r2", "r35"])
        del expected["r2"], expected["r35"]
    monkeypatch.undo()
    return folder, expected


DELETED_WORDS = [word(n) for n in (1, 2, 12, 23, 35)]


def assert_repaired(folder: Path, expected: Expected, *, reported: bool = True) -> None:
    with sennit.open(folder) as db:
        assert_contains_exactly(db, expected, DELETED_WORDS)
        assert bool(db.store.notices) == reported, db.store.notices
        db.admin.optimise()
        assert_contains_exactly(db, expected, DELETED_WORDS)
    with sennit.open(folder) as db:
        assert_contains_exactly(db, expected, DELETED_WORDS)
        assert not db.store.notices


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    chance = random.Random(path.name)
    data = bytearray(path.read_bytes())
    for _ in range(3):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    path.write_bytes(data)


def grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


DAMAGES: list[Callable[[Path], None]] = [Path.unlink, truncate, flip, grow, empty, folder_instead]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["keyword", "vector-1"])
def test_damaged_segment_is_rebuilt(
    prepared: tuple[Path, Expected], damage: Callable[[Path], None], kind: str
) -> None:
    folder, expected = prepared
    paths = segments(folder, kind)
    assert len(paths) >= 2
    damage(paths[1])
    assert_repaired(folder, expected)


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("kind", ["keyword", "vector-1"])
def test_damaged_manifest_is_rebuilt(
    prepared: tuple[Path, Expected], damage: Callable[[Path], None], kind: str
) -> None:
    folder, expected = prepared
    damage(folder / "index" / kind / "manifest.json")
    assert_repaired(folder, expected)


@pytest.mark.parametrize("damage", [*DAMAGES[:3], empty])
def test_all_files_damaged_at_once_are_rebuilt(
    prepared: tuple[Path, Expected], damage: Callable[[Path], None]
) -> None:
    folder, expected = prepared
    for path in index_files(folder):
        if path.suffix != ".lock":
            damage(path)
    with sennit.open(folder) as db:
        assert_contains_exactly(db, expected, DELETED_WORDS)


def test_deleted_or_overwritten_lock_file_does_no_harm(prepared: tuple[Path, Expected]) -> None:
    folder, expected = prepared
    for at, path in enumerate(sorted((folder / "index").glob("*.lock"))):
        path.unlink() if at % 2 else path.write_bytes(b"anything")
    assert_repaired(folder, expected, reported=False)


@pytest.mark.parametrize("kind", ["keyword", "vector-1"])
def test_swapped_segments_are_rebuilt(prepared: tuple[Path, Expected], kind: str) -> None:
    folder, expected = prepared
    one, other = segments(folder, kind)[:2]
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)
    assert_repaired(folder, expected)


def test_swapped_indexes_are_rebuilt(prepared: tuple[Path, Expected]) -> None:
    folder, expected = prepared
    index = folder / "index"
    (index / "keyword").rename(index / "aside")
    (index / "vector-1").rename(index / "keyword")
    (index / "aside").rename(index / "vector-1")
    assert_repaired(folder, expected)


def forge(path: Path, change: Callable[[list[dict[str, object]]], None]) -> None:
    """Change a manifest and update its checksum."""
    body = json.loads(path.read_bytes())["body"]
    change(body["segments"])
    checksum = xxhash.xxh3_128_hexdigest(json.dumps(body, sort_keys=True).encode())
    path.write_text(json.dumps({"body": body, "checksum": checksum}))


@pytest.mark.parametrize("kind", ["keyword", "vector-1"])
def test_manifest_that_names_other_files_is_rebuilt(prepared: tuple[Path, Expected], kind: str) -> None:
    folder, expected = prepared
    other = "vector-1" if kind == "keyword" else "keyword"
    stranger = segments(folder, other)[0]
    shutil.copy(stranger, folder / "index" / kind / "stranger.seg")

    def change(entries: list[dict[str, object]]) -> None:
        entries[0]["file"] = "../../sennit.db"
        entries[1]["file"] = "not-there.seg"
        entries[2]["file"] = "stranger.seg"
        entries[2]["checksum"] = xxhash.xxh3_128_hexdigest(stranger.read_bytes())

    forge(folder / "index" / kind / "manifest.json", change)
    assert_repaired(folder, expected)


@pytest.mark.parametrize("document", ["[]", "null", "{}", '{"body": {}}', '{"body": 7, "checksum": ""}'])
def test_manifest_of_another_shape_is_rebuilt(prepared: tuple[Path, Expected], document: str) -> None:
    folder, expected = prepared
    (folder / "index" / "keyword" / "manifest.json").write_text(document)
    assert_repaired(folder, expected)


def test_manifest_entry_of_another_shape_is_rebuilt(prepared: tuple[Path, Expected]) -> None:
    folder, expected = prepared

    def change(entries: list[dict[str, object]]) -> None:
        entries[0]["low"] = "zero"
        entries[1]["file"] = 3
        entries[2]["more"] = "things"

    forge(folder / "index" / "keyword" / "manifest.json", change)
    assert_repaired(folder, expected)


def test_deleted_index_folder_is_rebuilt(prepared: tuple[Path, Expected]) -> None:
    folder, expected = prepared
    shutil.rmtree(folder / "index")
    assert_repaired(folder, expected, reported=False)


@pytest.mark.parametrize("path", ["index", "index/keyword", "index/vector-1"])
def test_file_in_place_of_the_index_folder_changes_no_result(
    prepared: tuple[Path, Expected], path: str
) -> None:
    folder, expected = prepared
    shutil.rmtree(folder / path)
    (folder / path).write_text("in the way")
    with sennit.open(folder, store__flush_at=1) as db:
        assert_contains_exactly(db, expected, DELETED_WORDS)
        db.add([versioned_record("new", 999)])
        assert_contains_exactly(db, {**expected, "new": versioned_record("new", 999)}, DELETED_WORDS)
        assert db.store.notices


def test_older_copy_of_the_index_folder_gives_right_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy precedes writes whose tombstones have been purged."""
    monkeypatch.setattr(store, "MIN_TOMBSTONES_TO_PURGE", 1)
    folder, expected = tmp_path / "db", {}
    with sennit.open(folder) as db:
        db.add([versioned_record(f"r{n}", n) for n in range(30)])
        db.admin.optimise()
        shutil.copytree(folder / "index", tmp_path / "earlier")
        expected = {
            record.id: record for record in [versioned_record(f"r{n}", 100 + n) for n in range(10, 30)]
        }
        db.add(expected.values())
        db.remove([f"r{n}" for n in range(10)])
        db.admin.optimise()
        assert embedded_store(db).purge_tombstones(1) == 30
    shutil.rmtree(folder / "index")
    shutil.copytree(tmp_path / "earlier", folder / "index")
    with sennit.open(folder) as db:
        assert_contains_exactly(db, expected, [word(n) for n in range(30)])
        assert db.store.notices


def test_older_copy_of_the_database_gives_right_results_with_a_newer_index(tmp_path: Path) -> None:
    """The database file is restored from a backup, the index folder is not."""
    folder = tmp_path / "db"
    with sennit.open(folder) as db:
        db.add([versioned_record(f"r{n}", n) for n in range(10)])
    shutil.copy(folder / "sennit.db", tmp_path / "backup.db")
    with sennit.open(folder) as db:
        db.add([versioned_record(f"r{n}", 100 + n) for n in range(20)])
        db.admin.optimise()
    for path in folder.glob("sennit.db*"):
        path.unlink()
    shutil.copy(tmp_path / "backup.db", folder / "sennit.db")
    with sennit.open(folder) as db:
        db.add([versioned_record(f"s{n}", 200 + n) for n in range(50)])
        expected = {f"r{n}": versioned_record(f"r{n}", n) for n in range(10)}
        expected |= {f"s{n}": versioned_record(f"s{n}", 200 + n) for n in range(50)}
        assert_contains_exactly(db, expected, [word(n) for n in range(100, 120)])
        assert db.store.notices


def test_index_of_another_database_is_not_used(tmp_path: Path) -> None:
    for name, first in (("one", 0), ("two", 500)):
        with sennit.open(tmp_path / name) as db:
            db.add([versioned_record(f"r{n}", first + n) for n in range(20)])
            db.admin.optimise()
    shutil.rmtree(tmp_path / "two" / "index")
    shutil.copytree(tmp_path / "one" / "index", tmp_path / "two" / "index")
    with sennit.open(tmp_path / "two") as db:
        assert_contains_exactly(
            db, {f"r{n}": versioned_record(f"r{n}", 500 + n) for n in range(20)}, [word(3)]
        )
        assert db.store.notices


def test_index_of_a_deleted_database_is_not_used(prepared: tuple[Path, Expected]) -> None:
    folder, _ = prepared
    for path in folder.glob("sennit.db*"):
        path.unlink()
    with sennit.open(folder) as db:
        records = [versioned_record(f"n{n}", 300 + n) for n in range(60)]
        db.add(records)
        assert_contains_exactly(db, {record.id: record for record in records}, [word(n) for n in range(40)])


def test_merge_does_not_span_a_gap_between_segments(tmp_path: Path) -> None:
    """The background thread merges while the records of a lost segment are too few to be flushed."""
    folder = tmp_path / "db"
    expected = {f"r{n}": versioned_record(f"r{n}", n) for n in range(9)}
    with sennit.open(folder) as db:
        for n in range(0, 9, 3):
            db.add([expected[f"r{m}"] for m in range(n, n + 3)])
            db.maintainer.flush(wait=True)
    segments(folder, "keyword")[1].unlink()
    segments(folder, "vector-1")[1].unlink()
    with sennit.open(folder) as db:
        assert_contains_exactly(db, expected)
        db.maintainer.flush(1000)
        db.maintainer.merge(whole=True)
        assert_contains_exactly(db, expected)
    with sennit.open(folder) as db:
        assert_contains_exactly(db, expected)


def test_damage_to_an_open_database_is_repaired(
    prepared: tuple[Path, Expected], caplog: pytest.LogCaptureFixture
) -> None:
    folder, expected = prepared
    with sennit.open(folder) as db, caplog.at_level(logging.WARNING, "sennit.store"):
        before = scores(db.search(COMMON_WORD, recipe="keyword", limit=100))
        for path in index_files(folder):
            if path.suffix != ".lock":
                other = shutil.copy(path, path.with_suffix(".other"))
                flip(Path(other))
                Path(other).replace(path)
        assert scores(db.search(COMMON_WORD, recipe="keyword", limit=100)) == before
        db.add([versioned_record("new", 999)])
        expected["new"] = versioned_record("new", 999)
        assert_contains_exactly(db, expected, DELETED_WORDS)
        db.admin.optimise()
        assert_contains_exactly(db, expected, DELETED_WORDS)
        assert "rebuilt" in caplog.text
    assert_repaired(folder, expected, reported=False)


def test_replaced_files_are_deleted_at_once(prepared: tuple[Path, Expected]) -> None:
    folder, expected = prepared
    with sennit.open(folder) as db, sennit.open(folder) as other:
        assert_contains_exactly(other, expected, DELETED_WORDS)
        db.admin.optimise()
        assert len(segments(folder, "keyword")) == len(segments(folder, "vector-1")) == 1
        assert_contains_exactly(other, expected, DELETED_WORDS)
        assert not other.store.notices


def test_opening_while_segments_are_replaced_finds_everything(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    done = threading.Event()
    failures: list[object] = []

    def search_repeatedly() -> None:
        while not done.is_set():
            with sennit.open(folder, embedding__provider="none") as reader:
                found = len(reader.search("r1", recipe="keyword", limit=1))
                if not found or reader.store.notices:
                    failures.append((found, reader.store.notices))

    with sennit.open(folder) as db:
        db.add([versioned_record("r0", 0, title="r1")])
        reader = threading.Thread(target=search_repeatedly)
        reader.start()
        for n in range(1, 40):
            db.add([versioned_record(f"r{n}", n)])
            db.maintainer.flush(wait=True)
            db.maintainer.merge(whole=True)
        done.set()
        reader.join()
    assert failures == []


def test_a_flush_after_a_failed_opening_lists_no_deleted_segment(
    prepared: tuple[Path, Expected], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, expected = prepared
    with sennit.open(folder) as db, sennit.open(folder) as other:
        assert_contains_exactly(db, expected, DELETED_WORDS)
        other.add([versioned_record("new", 999)])
        other.admin.optimise()
        with monkeypatch.context() as broken:
            broken.setattr(KeywordIndex, "_open_view", Mock(side_effect=RuntimeError))
            with pytest.raises(RuntimeError):
                db.search(COMMON_WORD, recipe="keyword")
        db.maintainer.flush(wait=True)
        db.add([versioned_record("newer", 1000)])
        db.maintainer.flush(wait=True)
        added = {"new": versioned_record("new", 999), "newer": versioned_record("newer", 1000)}
        assert_contains_exactly(db, expected | added, DELETED_WORDS)
        with sennit.open(folder) as third:
            assert_contains_exactly(third, expected | added, DELETED_WORDS)
            assert not third.store.notices
        assert not db.store.notices
