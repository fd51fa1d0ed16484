"""The files under index/ are caches: whatever happens to them, the next search is right, and the repair is said."""

from __future__ import annotations

import json
import logging
import random
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import xxhash

import sennit
from sennit import Record
from sennit.stores.embedded import keeper

from .helpers import COMMON, assert_holds, index_files, numbered, scores, segments, word

Expected = dict[str, Record]


@pytest.fixture
def prepared(tmp_path: Path) -> tuple[Path, Expected]:
    """A closed database of several segments, with updates, removals and a tail."""
    folder = tmp_path / "db"
    expected: Expected = {}
    with sennit.open(folder) as db:
        for batch in range(4):
            records = [numbered(f"r{n}", n) for n in range(batch * 10, batch * 10 + 10)]
            db.add(records)
            db.keeper.fold(wait=True)
            expected.update((record.id, record) for record in records)
        updates = [numbered(f"r{n}", 100 + n) for n in (1, 12, 23)]
        db.add(updates)
        expected.update((record.id, record) for record in updates)
        db.remove(["r2", "r35"])
        del expected["r2"], expected["r35"]
    return folder, expected


GONE = [word(n) for n in (1, 2, 12, 23, 35)]


def check(folder: Path, expected: Expected, *, said: bool = True) -> None:
    with sennit.open(folder) as db:
        assert_holds(db, expected, GONE)
        assert bool(db.store.notices) == said, db.store.notices
        db.optimise()
        assert_holds(db, expected, GONE)
    with sennit.open(folder) as db:
        assert_holds(db, expected, GONE)
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


HARMS: list[Callable[[Path], None]] = [Path.unlink, truncate, flip, grow, empty, folder_instead]


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("kind", ["keyword", "vector-1"])
def test_a_harmed_segment_is_rebuilt(
    prepared: tuple[Path, Expected], harm: Callable[[Path], None], kind: str
) -> None:
    folder, expected = prepared
    paths = segments(folder, kind)
    assert len(paths) >= 2
    harm(paths[1])
    check(folder, expected)


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("kind", ["keyword", "vector-1"])
def test_a_harmed_list_is_rebuilt(
    prepared: tuple[Path, Expected], harm: Callable[[Path], None], kind: str
) -> None:
    folder, expected = prepared
    harm(folder / "index" / kind / "manifest.json")
    check(folder, expected)


@pytest.mark.parametrize("harm", [*HARMS[:3], empty])
def test_every_file_may_be_harmed_at_once(
    prepared: tuple[Path, Expected], harm: Callable[[Path], None]
) -> None:
    folder, expected = prepared
    for path in index_files(folder):
        if path.suffix != ".lock":
            harm(path)
    with sennit.open(folder) as db:
        assert_holds(db, expected, GONE)


def test_a_lock_that_was_deleted_or_written_to_is_only_a_lock(prepared: tuple[Path, Expected]) -> None:
    folder, expected = prepared
    for at, path in enumerate(sorted((folder / "index").glob("*.lock"))):
        path.unlink() if at % 2 else path.write_bytes(b"anything")
    check(folder, expected, said=False)


@pytest.mark.parametrize("kind", ["keyword", "vector-1"])
def test_two_swapped_segments_are_rebuilt(prepared: tuple[Path, Expected], kind: str) -> None:
    folder, expected = prepared
    one, other = segments(folder, kind)[:2]
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)
    check(folder, expected)


def test_two_swapped_indexes_are_rebuilt(prepared: tuple[Path, Expected]) -> None:
    folder, expected = prepared
    index = folder / "index"
    (index / "keyword").rename(index / "aside")
    (index / "vector-1").rename(index / "keyword")
    (index / "aside").rename(index / "vector-1")
    check(folder, expected)


def forge(path: Path, change: Callable[[list[dict[str, object]]], None]) -> None:
    """Change the list of segments, and give it the checksum of what it says then."""
    body = json.loads(path.read_bytes())["body"]
    change(body["segments"])
    checksum = xxhash.xxh3_128_hexdigest(json.dumps(body, sort_keys=True).encode())
    path.write_text(json.dumps({"body": body, "checksum": checksum}))


@pytest.mark.parametrize("kind", ["keyword", "vector-1"])
def test_a_list_that_names_other_files_is_not_believed(prepared: tuple[Path, Expected], kind: str) -> None:
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
    check(folder, expected)


@pytest.mark.parametrize("document", ["[]", "null", "{}", '{"body": {}}', '{"body": 7, "checksum": ""}'])
def test_a_list_of_another_shape_is_rebuilt(prepared: tuple[Path, Expected], document: str) -> None:
    folder, expected = prepared
    (folder / "index" / "keyword" / "manifest.json").write_text(document)
    check(folder, expected)


def test_an_entry_of_another_shape_is_rebuilt(prepared: tuple[Path, Expected]) -> None:
    folder, expected = prepared

    def change(entries: list[dict[str, object]]) -> None:
        entries[0]["low"] = "zero"
        entries[1]["file"] = 3
        entries[2]["more"] = "things"

    forge(folder / "index" / "keyword" / "manifest.json", change)
    check(folder, expected)


def test_the_whole_index_folder_may_be_removed(prepared: tuple[Path, Expected]) -> None:
    folder, expected = prepared
    shutil.rmtree(folder / "index")
    check(folder, expected, said=False)


@pytest.mark.parametrize("path", ["index", "index/keyword", "index/vector-1"])
def test_a_file_where_the_index_should_be_costs_speed_only(
    prepared: tuple[Path, Expected], path: str
) -> None:
    folder, expected = prepared
    shutil.rmtree(folder / path)
    (folder / path).write_text("in the way")
    with sennit.open(folder, store__fold_at=1) as db:
        assert_holds(db, expected, GONE)
        db.add([numbered("new", 999)])
        assert_holds(db, {**expected, "new": numbered("new", 999)}, GONE)
        assert db.store.notices


def test_an_index_folder_of_an_earlier_day_is_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Copied before later writes, whose removals have been forgotten since."""
    monkeypatch.setattr(keeper, "PURGE_AT", 1)
    folder, expected = tmp_path / "db", {}
    with sennit.open(folder) as db:
        db.add([numbered(f"r{n}", n) for n in range(30)])
        db.optimise()
        shutil.copytree(folder / "index", tmp_path / "earlier")
        expected = {record.id: record for record in [numbered(f"r{n}", 100 + n) for n in range(10, 30)]}
        db.add(expected.values())
        db.remove([f"r{n}" for n in range(10)])
        db.optimise()
        assert db.store.purge(1) == 30
    shutil.rmtree(folder / "index")
    shutil.copytree(tmp_path / "earlier", folder / "index")
    with sennit.open(folder) as db:
        assert_holds(db, expected, [word(n) for n in range(30)])
        assert db.store.notices


def test_records_of_an_earlier_day_are_right_with_a_later_index(tmp_path: Path) -> None:
    """The database file is restored from a backup, the index folder is not."""
    folder = tmp_path / "db"
    with sennit.open(folder) as db:
        db.add([numbered(f"r{n}", n) for n in range(10)])
    shutil.copy(folder / "sennit.db", tmp_path / "backup.db")
    with sennit.open(folder) as db:
        db.add([numbered(f"r{n}", 100 + n) for n in range(20)])
        db.optimise()
    for path in folder.glob("sennit.db*"):
        path.unlink()
    shutil.copy(tmp_path / "backup.db", folder / "sennit.db")
    with sennit.open(folder) as db:
        db.add([numbered(f"s{n}", 200 + n) for n in range(50)])
        expected = {f"r{n}": numbered(f"r{n}", n) for n in range(10)}
        expected |= {f"s{n}": numbered(f"s{n}", 200 + n) for n in range(50)}
        assert_holds(db, expected, [word(n) for n in range(100, 120)])
        assert db.store.notices


def test_the_index_of_another_database_is_not_taken_for_ours(tmp_path: Path) -> None:
    for name, first in (("one", 0), ("two", 500)):
        with sennit.open(tmp_path / name) as db:
            db.add([numbered(f"r{n}", first + n) for n in range(20)])
            db.optimise()
    shutil.rmtree(tmp_path / "two" / "index")
    shutil.copytree(tmp_path / "one" / "index", tmp_path / "two" / "index")
    with sennit.open(tmp_path / "two") as db:
        assert_holds(db, {f"r{n}": numbered(f"r{n}", 500 + n) for n in range(20)}, [word(3)])
        assert db.store.notices


def test_an_index_left_behind_by_a_deleted_database_is_not_believed(prepared: tuple[Path, Expected]) -> None:
    folder, _ = prepared
    for path in folder.glob("sennit.db*"):
        path.unlink()
    with sennit.open(folder) as db:
        records = [numbered(f"n{n}", 300 + n) for n in range(60)]
        db.add(records)
        assert_holds(db, {record.id: record for record in records}, [word(n) for n in range(40)])


def test_a_hole_between_segments_is_not_merged_over(tmp_path: Path) -> None:
    """The background work merges while a lost segment's records are still too few to be folded."""
    folder = tmp_path / "db"
    expected = {f"r{n}": numbered(f"r{n}", n) for n in range(9)}
    with sennit.open(folder) as db:
        for n in range(0, 9, 3):
            db.add([expected[f"r{m}"] for m in range(n, n + 3)])
            db.keeper.fold(wait=True)
    segments(folder, "keyword")[1].unlink()
    segments(folder, "vector-1")[1].unlink()
    with sennit.open(folder) as db:
        assert_holds(db, expected)
        db.keeper.fold(1000)
        db.keeper.settle(whole=True)
        assert_holds(db, expected)
    with sennit.open(folder) as db:
        assert_holds(db, expected)


def test_harm_to_an_open_database_is_repaired_too(
    prepared: tuple[Path, Expected], caplog: pytest.LogCaptureFixture
) -> None:
    folder, expected = prepared
    with sennit.open(folder) as db, caplog.at_level(logging.WARNING, "sennit.store"):
        before = scores(db.search(COMMON, recipe="keyword", limit=100))
        for path in index_files(folder):
            if path.suffix != ".lock":
                other = shutil.copy(path, path.with_suffix(".other"))
                flip(Path(other))
                Path(other).replace(path)
        assert scores(db.search(COMMON, recipe="keyword", limit=100)) == before
        db.add([numbered("new", 999)])
        expected["new"] = numbered("new", 999)
        assert_holds(db, expected, GONE)
        db.optimise()
        assert_holds(db, expected, GONE)
        assert "rebuilt" in caplog.text
    check(folder, expected, said=False)


def test_replaced_files_are_gone_at_once(prepared: tuple[Path, Expected]) -> None:
    folder, expected = prepared
    with sennit.open(folder) as db, sennit.open(folder) as other:
        assert_holds(other, expected, GONE)
        db.optimise()
        assert len(segments(folder, "keyword")) == len(segments(folder, "vector-1")) == 1
        assert_holds(other, expected, GONE)
        assert not other.store.notices


def test_who_opens_while_segments_are_replaced_finds_everything(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    done = threading.Event()
    failures: list[object] = []

    def look() -> None:
        while not done.is_set():
            with sennit.open(folder, embedding__provider="none") as reader:
                found = len(reader.search("r1", recipe="keyword", limit=1))
                if not found or reader.store.notices:
                    failures.append((found, reader.store.notices))

    with sennit.open(folder) as db:
        db.add([numbered("r0", 0, title="r1")])
        reader = threading.Thread(target=look)
        reader.start()
        for n in range(1, 40):
            db.add([numbered(f"r{n}", n)])
            db.keeper.fold(wait=True)
            db.keeper.settle(whole=True)
        done.set()
        reader.join()
    assert failures == []
