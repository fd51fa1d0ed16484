"""A model on a server: records are found by keyword at once, and by vector when the server has answered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import sennit
from sennit import Database, Record
from sennit.stores.embedded import keeper, layers

from .embedding_server import EmbeddingServer
from .helpers import COMMON, by_keyword, numbered, poll, segments


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingServer]:
    monkeypatch.setattr(keeper, "RETRY_SECONDS", 0.05)
    running = EmbeddingServer()
    yield running
    running.close()


def found(db: Database, query: str = COMMON) -> set[str]:
    """What the vector source finds, whether it is degraded or not."""
    return {hit.id for hit in db.search(query, recipe="vector", limit=1000)}


def make(count: int, first: int = 0) -> dict[str, Record]:
    return {f"r{n}": numbered(f"r{n}", n) for n in range(first, first + count)}


def test_a_record_is_found_by_keyword_at_once_and_by_vector_later(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    server.hold()
    with sennit.open(tmp_path / "db", **server.settings) as db:
        records = make(5)
        began = time.monotonic()
        db.add(records.values())
        assert set(by_keyword(db, COMMON)) == set(records)
        assert time.monotonic() - began < 5
        assert found(db) == set()
        server.release()
        poll(lambda: found(db) == set(records))
        for record in records.values():
            result = db.search(record.text, recipe="vector", limit=1)
            assert result[0].record == record
            assert result[0].score == pytest.approx(1, abs=1e-3)
        assert not db.search(COMMON).degraded
        db.add([numbered("r2", 100)])
        poll(lambda: len(found(db)) == 5)


def test_a_server_that_is_down_is_named_and_nothing_is_lost(tmp_path: Path, server: EmbeddingServer) -> None:
    server.failing = True
    records = make(8)
    with sennit.open(tmp_path / "db", **server.settings) as db:
        db.add(records.values())
        result = db.search(COMMON)
        assert {hit.id for hit in result} == set(records)
        assert [entry.source for entry in result.degraded] == ["vector"]
        poll(lambda: db.keeper.last_error is not None)
        assert "503" in str(db.keeper.last_error)
        server.failing = False
        poll(lambda: found(db) == set(records))
        assert db.keeper.last_error is None
        assert not db.search(COMMON).degraded
        server.failing = True
        more = make(3, first=50)
        db.add(more.values())
        result = db.search("a question nobody has asked before " + COMMON)
        assert [entry.source for entry in result.degraded] == ["vector"]
        assert set(by_keyword(db, COMMON)) == set(records | more)
        server.failing = False
        poll(lambda: found(db) == set(records | more))


def test_what_a_process_did_not_get_to_the_next_does(tmp_path: Path, server: EmbeddingServer) -> None:
    server.hold()
    records = make(6)
    with sennit.open(tmp_path / "db", **server.settings) as db:
        db.add(records.values())
        server.failing = True
        server.release()
    server.failing = False
    with sennit.open(tmp_path / "db", **server.settings) as db:
        poll(lambda: found(db) == set(records))


def test_a_hanging_server_holds_up_neither_a_search_nor_closing(
    tmp_path: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper, "CLOSE_SECONDS", 0.2)
    records = make(3)
    with sennit.open(tmp_path / "db", search__deadline=0.2, **server.settings) as db:
        db.add(records.values())
        poll(lambda: found(db) == set(records))
        server.hold()
        began = time.monotonic()
        db.add([numbered("new", 77)])
        for n in range(8):
            result = db.search(f"question {n} {COMMON}")
            assert {hit.id for hit in result} == {*records, "new"}
            assert [entry.source for entry in result.degraded] == ["vector"]
        assert time.monotonic() - began < 5
        assert "earlier calls" in result.degraded[0].reason
    assert time.monotonic() - began < 8


def test_late_vectors_are_in_the_index_once_however_it_is_folded(
    tmp_path: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layers, "FOLD_CHUNK", 4)
    folder = tmp_path / "db"
    records = make(10)
    with sennit.open(folder, **server.settings) as db:
        db.add(list(records.values())[:2])
        poll(lambda: len(found(db)) == 2)
        server.hold()
        db.add(list(records.values())[2:])
        db.keeper.fold(wait=True)
        server.release()
        poll(lambda: found(db) == set(records))
        db.keeper.fold(wait=True)
        (model,) = db.store.models.wanted()
        entries = db.store.vector_index(model).covered()
        assert sum(entry.count for entry in entries) == 10
        assert found(db) == set(records)
    # A lost segment is built anew, with vectors that another segment has because they came late.
    segments(folder, "vector-1")[0].unlink()
    with sennit.open(folder, **server.settings) as db:
        result = db.search(COMMON, recipe="vector", limit=100)
        assert not result.degraded
        assert sorted(hit.id for hit in result) == sorted(records)
        db.optimise()
        assert found(db) == set(records)
        (entry,) = db.store.vector_index(model).covered()
        assert entry.count == 10


def test_a_database_never_sends_texts_where_its_user_did_not_say(
    tmp_path: Path, server: EmbeddingServer
) -> None:
    with sennit.open(tmp_path / "db", **server.settings) as db:
        db.add(make(2).values())
        poll(lambda: len(found(db)) == 2)
    asked = len(server.texts)
    with sennit.open(tmp_path / "db") as db:
        db.add([numbered("new", 9)])
        result = db.search(COMMON)
        assert len(result) == 3
        assert [entry.source for entry in result.degraded] == ["vector"]
        assert "openai" in result.degraded[0].reason
        assert len(db.store.models.wanted()) == 1
    assert len(server.texts) == asked
