"""A worker process builds the same segments as this process, and a flush succeeds without it."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import sennit
from sennit import Database
from sennit.stores.embedded import keyword_index
from sennit.stores.embedded.arrays import Arrays
from sennit.stores.embedded.segment_builder import SegmentBuilder
from sennit.stores.embedded.segment_store import SegmentInfo
from sennit.workers import Message, WorkerProcess

from .helpers import assert_contains_exactly, embedded_store, versioned_record

RECORDS = [versioned_record(f"r{n}", n) for n in range(40)]
TITLED = [versioned_record(f"t{n}", 50 + n, title=f"Title {n}") for n in range(9)]


@pytest.fixture(autouse=True)
def low_worker_threshold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyword_index, "MIN_WORKER_RECORDS", 10)


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[SegmentInfo | None]:
    """What each request to the worker process returned."""
    out: list[SegmentInfo | None] = []
    build = SegmentBuilder.build

    def record(self: SegmentBuilder, low: int, high: int) -> SegmentInfo | None:
        out.append(build(self, low, high))
        return out[-1]

    monkeypatch.setattr(SegmentBuilder, "build", record)
    return out


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    with sennit.open(tmp_path / "db") as opened:
        yield opened


def arrays_of(db: Database) -> list[Arrays]:
    segments = embedded_store(db).keyword._store
    return [segments.read(info) for info in segments.infos()]


def test_worker_segment_is_identical_to_a_local_one(
    db: Database, tmp_path: Path, built: list[SegmentInfo | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    db.add(RECORDS + TITLED)
    db.maintainer.flush(wait=True)
    assert [info is not None and info.count for info in built] == [len(RECORDS + TITLED)]
    monkeypatch.setattr(keyword_index, "MIN_WORKER_RECORDS", 1000)
    with sennit.open(tmp_path / "here") as here:
        here.add(RECORDS + TITLED)
        here.maintainer.flush(wait=True)
        assert len(built) == 1
        (one,), (other,) = arrays_of(db), arrays_of(here)
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_records_flushed_by_the_worker_are_found(db: Database, built: list[SegmentInfo | None]) -> None:
    db.add(RECORDS)
    db.maintainer.flush(wait=True)
    assert built[0] is not None
    assert_contains_exactly(db, {record.id: record for record in RECORDS}, [])


def test_running_worker_also_builds_small_segments(db: Database, built: list[SegmentInfo | None]) -> None:
    few = [versioned_record(f"s{n}", 100 + n) for n in range(5)]
    db.add(few)
    db.maintainer.flush(wait=True)
    assert not built
    db.add(RECORDS)
    db.maintainer.flush(wait=True)
    db.add(versioned_record(f"u{n}", 200 + n) for n in range(5))
    db.maintainer.flush(wait=True)
    assert [info and info.count for info in built] == [len(RECORDS), 5]


def test_flush_is_local_if_the_worker_does_not_answer(
    db: Database, built: list[SegmentInfo | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = embedded_store(db)._builder
    assert builder is not None
    # This module ends without an answer.
    builder._worker = WorkerProcess("sennit.errors")
    db.add(RECORDS)
    db.maintainer.flush(wait=True)
    assert built == [None]
    assert sum(len(arrays["rows"]) for arrays in arrays_of(db)) == len(RECORDS)
    assert_contains_exactly(db, {record.id: record for record in RECORDS}, [])


def test_worker_of_another_version_is_refused(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    db.add(RECORDS)
    builder = embedded_store(db)._builder
    assert builder is not None
    monkeypatch.setitem(builder._request, "identity", "keyword-0")
    assert builder.build(0, 40) is None


def test_record_deleted_during_a_build_stays_visible_to_an_older_snapshot(db: Database) -> None:
    db.add(RECORDS)
    builder = embedded_store(db)._builder
    assert builder is not None
    with db.store.snapshot() as before:
        assert before.count() == len(RECORDS)
        assert db.path is not None
        with sennit.open(db.path) as other:
            other.remove(["r3"])
            info = builder.build(0, before.seq)
            assert info is not None
            assert info.count == len(RECORDS) - 1
            # The segment has applied a later delete, so the older snapshot does not use it.
            assert info.deletes_applied == before.seq + 1
            embedded_store(db).keyword._store.publish([info])
        assert before.count() == len(RECORDS)
        assert len(before.records_matching(sennit.filters.EVERYTHING)) == len(RECORDS)
    assert len(db) == len(RECORDS) - 1


def test_worker_imports_nothing_from_the_working_directory(
    db: Database, tmp_path: Path, built: list[SegmentInfo | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    db.add(RECORDS)
    db.maintainer.flush(wait=True)
    assert built[0] is not None


def test_worker_ends_when_idle_and_when_the_database_is_closed(tmp_path: Path) -> None:
    db = sennit.open(tmp_path / "db")
    builder = embedded_store(db)._builder
    assert builder is not None
    db.add(RECORDS)
    db.maintainer.flush(wait=True)
    first = builder._worker
    assert first is not None
    assert not first.has_ended
    embedded_store(db).rest()
    assert first.has_ended
    db.add(versioned_record(f"s{n}", 100 + n) for n in range(20))
    db.maintainer.flush(wait=True)
    second = builder._worker
    assert second is not None
    db.close()
    assert second.has_ended


@pytest.mark.parametrize("module", ["sennit.errors", "sennit.there_is_no_such_module", "this"])
def test_worker_that_ends_or_prints_something_else_returns_no_message(module: str) -> None:
    worker = WorkerProcess(module)
    worker.send(Message({}))
    assert worker.receive() is None
    assert worker.has_ended
    worker.close()


def test_closing_kills_a_busy_worker(tmp_path: Path) -> None:
    db = sennit.open(tmp_path / "db")
    builder = embedded_store(db)._builder
    assert builder is not None
    # This module reads all of its input before it answers.
    builder._worker = WorkerProcess("json.tool")
    waiting = threading.Thread(target=builder.build, args=(0, 10))
    waiting.start()
    db.close()
    waiting.join(60)
    assert not waiting.is_alive()


def test_flush_is_local_if_no_worker_can_be_started(
    db: Database, built: list[SegmentInfo | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "")
    db.add(RECORDS)
    db.maintainer.flush(wait=True)
    assert built == [None]
    assert_contains_exactly(db, {record.id: record for record in RECORDS}, [])


def test_in_memory_database_is_flushed_locally() -> None:
    with sennit.open(":memory:") as db:
        db.add(RECORDS)
        db.maintainer.flush(wait=True)
        assert sum(len(arrays["rows"]) for arrays in arrays_of(db)) == len(RECORDS)
