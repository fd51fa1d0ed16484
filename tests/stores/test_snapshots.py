"""Every search sees a consistent snapshot, while other threads write, search, merge and close."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import sennit
from sennit import Record
from sennit.errors import StoreClosed
from sennit.filters import parse_filter
from sennit.stores.embedded.snapshot import EmbeddedSnapshot

from .helpers import COMMON_WORD, embedded_store, ids, search_keyword, search_vector, versioned_record, word


@contextmanager
def earlier_snapshot(
    db: sennit.Database, look: Callable[[EmbeddedSnapshot], list[int]]
) -> Iterator[list[int]]:
    """Another thread opens a snapshot before the block and calls `look` on it after the block. The list then holds the
    result."""
    ready, go = threading.Event(), threading.Event()
    seen: list[int] = []

    def hold() -> None:
        with embedded_store(db).snapshot() as snapshot:
            ready.set()
            go.wait(10)
            seen.extend(look(snapshot))

    thread = threading.Thread(target=hold)
    thread.start()
    ready.wait(10)
    try:
        yield seen
    finally:
        go.set()
        thread.join()


@contextmanager
def concurrently(*works: Callable[[], None]) -> Iterator[None]:
    """Repeat each function in its own thread for the duration of the block."""
    stop = threading.Event()
    errors: list[BaseException] = []

    def repeat(work: Callable[[], None]) -> None:
        try:
            while not stop.is_set():
                work()
        except BaseException as error:  # noqa: BLE001 - handed to the test
            errors.append(error)

    threads = [threading.Thread(target=repeat, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not errors, errors


@pytest.mark.parametrize("place", ["disk", "memory"])
def test_a_record_that_is_being_updated_is_found_by_every_search(tmp_path: Path, place: str) -> None:
    with sennit.open(":memory:" if place == "memory" else tmp_path / "db", store__flush_at=8) as db:
        db.add([versioned_record(f"r{n}", n, kind="note") for n in range(20)])
        count = iter(range(1000, 10**9))

        def update() -> None:
            db.add([versioned_record(f"r{n}", next(count), kind="note") for n in (3, 7)])

        def search() -> None:
            for recipe in ("keyword", "vector", "default"):
                result = db.search(COMMON_WORD, recipe=recipe, limit=100, filters={"kind": "note"})
                assert not result.degraded, result.degraded
                assert sorted(ids(result)) == sorted(f"r{n}" for n in range(20)), recipe

        with concurrently(update, search, search):
            for _ in range(60):
                search()
                db.maintainer.merge()


def test_an_earlier_snapshot_does_not_corrupt_the_fields_of_a_later_one(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([versioned_record("old", 1, kind="note", metadata={"colour": "red"})])
        with earlier_snapshot(db, lambda snapshot: [snapshot.count(parse_filter({"colour": "red"}))]) as seen:
            db.add([versioned_record("new", 2, kind="note", metadata={"colour": "red"})])
            assert set(search_keyword(db, COMMON_WORD, filters="kind = 'note'")) == {"old", "new"}
        assert seen == [1]
        assert set(search_keyword(db, COMMON_WORD, filters="colour = 'red'")) == {"old", "new"}


def test_an_earlier_snapshot_does_not_see_later_writes(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([versioned_record(f"r{n}", n) for n in range(5)])
        db.admin.optimise()

        def look(snapshot: EmbeddedSnapshot) -> list[int]:
            vector = db.embeddings.embed_query(snapshot.model, COMMON_WORD)
            return [snapshot.count(), len(snapshot.vector_search(vector, 100).keys)]

        with earlier_snapshot(db, look) as seen:
            db.remove(["r1"])
            db.add([versioned_record("r2", 99)])
            db.admin.optimise()
            assert set(search_vector(db, COMMON_WORD)) == {"r0", "r2", "r3", "r4"}
        assert seen == [5, 5]


@pytest.mark.parametrize("place", ["disk", "memory"])
def test_records_may_be_changed_while_they_are_listed(tmp_path: Path, place: str) -> None:
    with sennit.open(":memory:" if place == "memory" else tmp_path / "db") as db:
        db.add([versioned_record(f"r{n}", n) for n in range(10)])
        listed = []
        for record in db:
            listed.append(record.id)
            assert db.remove([record.id]) == 1
            db.add([versioned_record(f"s{record.id}", 100 + len(listed))])
            assert db.get(record.id) is None
            assert record.id not in search_keyword(db, COMMON_WORD)
        assert listed == [f"r{n}" for n in range(10)]
        assert len(db) == 10


def test_an_unfinished_listing_does_not_block_writers(tmp_path: Path) -> None:
    for place in (":memory:", tmp_path / "db"):
        with sennit.open(place) as db:
            db.add([versioned_record(f"r{n}", n) for n in range(3)])
            listing = iter(db)
            next(listing)
            done = threading.Thread(target=lambda db=db: db.add([versioned_record("late", 9)]), daemon=True)
            done.start()
            done.join(10)
            assert not done.is_alive()
            assert search_keyword(db, word(9)) == ["late"]


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_many_short_threads_do_not_leak_file_descriptors(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([versioned_record("r", 1)])
        before = open_files()
        for _ in range(60):
            thread = threading.Thread(target=search_keyword, args=(db, COMMON_WORD))
            thread.start()
            thread.join()
        assert open_files() < before + 20


@pytest.mark.parametrize("turn", range(3))
def test_closing_raises_store_closed_in_running_searches_and_writes(tmp_path: Path, turn: int) -> None:
    db = sennit.open(tmp_path / "db", store__flush_at=4)
    db.add([versioned_record(f"r{n}", n) for n in range(30)])
    count = iter(range(100, 10**6))
    unexpected: list[BaseException] = []
    started = threading.Barrier(4)

    def work(step: Callable[[], object]) -> None:
        started.wait()
        try:
            while True:
                step()
        except StoreClosed:
            pass
        except BaseException as error:  # noqa: BLE001 - handed to the test
            unexpected.append(error)

    steps: list[Callable[[], object]] = [
        lambda: db.search(COMMON_WORD),
        lambda: db.search(COMMON_WORD, recipe="vector", filters="exists id"),
        lambda: db.add([versioned_record("x", next(count))]),
    ]
    threads = [threading.Thread(target=work, args=(step,)) for step in steps]
    for thread in threads:
        thread.start()
    started.wait()
    for _ in range(turn * 3):
        db.search(COMMON_WORD)
    db.close()
    db.close()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert not unexpected, unexpected


def test_a_term_frequency_of_a_hundred_thousand_survives_a_flush(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([Record(id="many", text="echo " * 100_000), Record(id="one", text="echo chamber")])
        before = db.search("echo", recipe="keyword")
        db.admin.optimise()
        after = db.search("echo", recipe="keyword")
        assert not before.degraded
        assert [(hit.id, hit.score) for hit in before] == [(hit.id, hit.score) for hit in after]
        assert set(ids(after)) == {"many", "one"}


def test_a_snapshot_is_freed_without_the_garbage_collector() -> None:
    """A search allocates arrays as long as the database, and the next search should reuse their memory."""
    with sennit.open(":memory:") as db:
        db.add([versioned_record("a", 1)])
        gc.disable()
        try:
            with db.store.snapshot() as snapshot:
                has_names = db.backend.graph.view(snapshot).has_names
                reference = weakref.ref(snapshot)
            del snapshot
            assert not has_names
            assert reference() is None
        finally:
            gc.enable()
