"""A model on a server: keyword search finds a record at once, vector search when the server has answered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import sennit
from sennit import Database, Record
from sennit.engine import maintenance
from sennit.stores.embedded import segmented_index

from .embedding_server import EmbeddingServer
from .helpers import COMMON_WORD, embedded_store, search_keyword, segments, versioned_record, wait_until


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    monkeypatch.setattr(maintenance, "RETRY_SECONDS", 0.05)
    running = EmbeddingServer()
    yield running
    running.close()


def found(db: Database, query: str = COMMON_WORD) -> set[str]:
    """The ids that the vector source finds, degraded or not."""
    return {hit.id for hit in db.search(query, recipe="vector", limit=1000)}


def make(count: int, first: int = 0) -> dict[str, Record]:
    return {f"r{n}": versioned_record(f"r{n}", n) for n in range(first, first + count)}


def test_record_is_found_by_keyword_at_once_and_by_vector_later(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    server.hold()
    with sennit.open(tmp_path / "db", **server.settings) as db:
        records = make(5)
        began = time.monotonic()
        db.add(records.values())
        assert set(search_keyword(db, COMMON_WORD)) == set(records)
        assert time.monotonic() - began < 5
        assert found(db) == set()
        server.release()
        wait_until(lambda: found(db) == set(records))
        for record in records.values():
            result = db.search(record.text, recipe="vector", limit=1)
            assert result[0].record == record
            assert result[0].score == pytest.approx(1, abs=1e-3)
        assert not db.search(COMMON_WORD).degraded
        db.add([versioned_record("r2", 100)])
        wait_until(lambda: len(found(db)) == 5)


def test_failing_server_is_reported_and_nothing_is_lost(tmp_path: Path, server: EmbeddingServer) -> None:
    server.failing = True
    records = make(8)
    with sennit.open(tmp_path / "db", **server.settings) as db:
        db.add(records.values())
        result = db.search(COMMON_WORD)
        assert {hit.id for hit in result} == set(records)
        assert [entry.source for entry in result.degraded] == ["vector"]
        wait_until(lambda: db.maintainer.last_error is not None)
        assert "503" in str(db.maintainer.last_error)
        server.failing = False
        wait_until(lambda: found(db) == set(records))
        assert db.maintainer.last_error is None
        assert not db.search(COMMON_WORD).degraded
        server.failing = True
        more = make(3, first=50)
        db.add(more.values())
        result = db.search("a question nobody has asked before " + COMMON_WORD)
        assert [entry.source for entry in result.degraded] == ["vector"]
        assert set(search_keyword(db, COMMON_WORD)) == set(records | more)
        server.failing = False
        wait_until(lambda: found(db) == set(records | more))


def test_next_process_makes_the_missing_vectors(tmp_path: Path, server: EmbeddingServer) -> None:
    server.hold()
    records = make(6)
    with sennit.open(tmp_path / "db", **server.settings) as db:
        db.add(records.values())
        server.failing = True
        server.release()
    server.failing = False
    with sennit.open(tmp_path / "db", **server.settings) as db:
        wait_until(lambda: found(db) == set(records))


def test_hanging_server_delays_neither_search_nor_close(
    tmp_path: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "CLOSE_SECONDS", 0.2)
    records = make(3)
    with sennit.open(tmp_path / "db", search__deadline=0.2, **server.settings) as db:
        db.add(records.values())
        wait_until(lambda: found(db) == set(records))
        server.hold()
        began = time.monotonic()
        db.add([versioned_record("new", 77)])
        for n in range(8):
            result = db.search(f"question {n} {COMMON_WORD}")
            assert {hit.id for hit in result} == {*records, "new"}
            assert [entry.source for entry in result.degraded] == ["vector"]
        assert time.monotonic() - began < 5
        assert "earlier calls" in result.degraded[0].reason
    assert time.monotonic() - began < 8


def test_late_vectors_are_indexed_once_in_any_order_of_flushes(
    tmp_path: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(segmented_index, "FLUSH_CHUNK_RECORDS", 4)
    folder = tmp_path / "db"
    records = make(10)
    with sennit.open(folder, **server.settings) as db:
        db.add(list(records.values())[:2])
        wait_until(lambda: len(found(db)) == 2)
        server.hold()
        db.add(list(records.values())[2:])
        db.maintainer.flush(wait=True)
        server.release()
        wait_until(lambda: found(db) == set(records))
        db.maintainer.flush(wait=True)
        (model,) = db.store.models.current()
        infos = embedded_store(db).vector_index(model).segment_infos()
        assert sum(info.count for info in infos) == 10
        assert found(db) == set(records)
    # A lost segment is rebuilt. Its range includes late vectors, which another segment already holds.
    segments(folder, "vector-1")[0].unlink()
    with sennit.open(folder, **server.settings) as db:
        result = db.search(COMMON_WORD, recipe="vector", limit=100)
        assert not result.degraded
        assert sorted(hit.id for hit in result) == sorted(records)
        db.admin.optimise()
        assert found(db) == set(records)
        (info,) = embedded_store(db).vector_index(model).segment_infos()
        assert info.count == 10


def test_texts_are_never_sent_to_a_server_that_the_user_did_not_configure(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    with sennit.open(tmp_path / "db", **server.settings) as db:
        db.add(make(2).values())
        wait_until(lambda: len(found(db)) == 2)
    sent = len(server.texts)
    with sennit.open(tmp_path / "db") as db:
        db.add([versioned_record("new", 9)])
        result = db.search(COMMON_WORD)
        assert len(result) == 3
        assert [entry.source for entry in result.degraded] == ["vector"]
        assert "openai" in result.degraded[0].reason
        assert len(db.store.models.current()) == 1
    assert len(server.texts) == sent
