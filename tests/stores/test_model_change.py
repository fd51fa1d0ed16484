"""A change of the embedding model: the new vectors are built while the old ones answer, and are never mixed with them."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest

import sennit
from sennit import Database
from sennit.engine import maintenance
from sennit.stores.embedded import models, segmented_index

from .helpers import (
    COMMON_WORD,
    assert_contains_exactly,
    embedded_store,
    is_nearest,
    search_keyword,
    search_vector,
    versioned_record,
    wait_until,
)

SMALL: dict[str, Any] = {"embedding__dimensions": 64}


def model_of(db: Database) -> str:
    trace = db.search(COMMON_WORD, recipe="vector", limit=1, explain=True).trace
    assert trace is not None
    model = trace.state["model"]
    assert isinstance(model, str)
    return model.split(":")[2]


def stored_vectors(db: Database) -> dict[int, int]:
    """The number of stored vectors by their dimensions."""
    with embedded_store(db).pool.read() as connection:
        found = connection.execute("SELECT length(vector) / 2, count(*) FROM vectors GROUP BY 1").fetchall()
    return dict(found)


def only_model_is(db: Database, dimensions: int) -> bool:
    return set(stored_vectors(db)) == {dimensions} and len(db.store.models.current()) == 1


def test_every_search_during_a_model_change_uses_one_model(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    expected = {f"r{n}": versioned_record(f"r{n}", n) for n in range(300)}
    with sennit.open(folder) as old:
        old.add(expected.values())
        stop, one, other, wrong = threading.Event(), list[str](), list[str](), list[object]()
        numbers = iter(range(1000, 10**6))

        def search(seen: list[str]) -> None:
            while not stop.is_set():
                result = old.search(expected["r7"].text, recipe="vector", limit=400, explain=True)
                assert result.trace is not None
                model = str(result.trace.state["model"]).split(":")[2]
                if result.degraded or not 0.99 < result[0].score < 1.01:
                    wrong.append(result)
                if len(result) < 300:
                    wrong.append(len(result))
                if not seen or seen[-1] != model:
                    seen.append(model)

        def write() -> None:
            while not stop.is_set():
                record = versioned_record(f"w{next(numbers) % 50}", next(numbers))
                old.add([record])
                expected[record.id] = record

        targets = (lambda: search(one), lambda: search(other), write)
        threads = [threading.Thread(target=target) for target in targets]
        for thread in threads:
            thread.start()
        wait_until(lambda: bool(one and other))
        with sennit.open(folder, **SMALL) as new:
            wait_until(lambda: model_of(new) == "64" and "64" in one and "64" in other)
            stop.set()
            for thread in threads:
                thread.join()
            wait_until(lambda: only_model_is(new, 64))
            assert_contains_exactly(new, expected)
        assert wrong == []
        # A thread searches again only after its last search returned, so it never sees the old model again.
        assert one == other == ["256", "64"]
        assert_contains_exactly(old, expected)


def test_a_reader_sees_the_switch_once(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    with sennit.open(folder) as old, sennit.open(folder) as reader:
        old.add(versioned_record(f"r{n}", n) for n in range(50))
        seen = [model_of(reader)]
        with sennit.open(folder, **SMALL) as new:
            new.embeddings.select_model()

            def switched() -> bool:
                seen.append(model_of(reader))
                return seen[-1] == "64"

            wait_until(switched)
            seen += [model_of(reader) for _ in range(10)]
        assert sorted(seen, key=("256", "64").index) == seen


def test_a_process_without_model_settings_keeps_the_model_of_the_database(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "db"
    with sennit.open(folder, **SMALL) as db:
        db.add(versioned_record(f"r{n}", n) for n in range(5))
    with sennit.open(folder) as db, caplog.at_level(logging.WARNING):
        assert model_of(db) == "64"
        db.add([versioned_record("more", 99)])
        assert model_of(db) == "64"
        assert stored_vectors(db) == {64: 6}
        assert [model.state for model in db.store.models.current()] == ["active"]
        assert "changes" not in caplog.text


def test_an_interrupted_rebuild_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance, "EMBED_BATCH_TEXTS", 4)
    folder = tmp_path / "db"
    expected = {f"r{n}": versioned_record(f"r{n}", n) for n in range(40)}
    with sennit.open(folder) as db:
        db.add(expected.values())
    with sennit.open(folder, **SMALL) as db:
        db.maintainer.close()  # no background work
        db.embeddings.select_model()
        building = db.store.models.current()[1]
        batch = db.store.models.pending_texts(building.number, 8)
        vectors = db.embeddings.embed_texts(building, [text for _, text in batch])
        assert vectors is not None
        db.store.models.add_late_vectors(
            building.number, dict(zip((h for h, _ in batch), vectors, strict=True))
        )
        assert model_of(db) == "256"
        assert db.store.models.progress()[1].pending == 32
    with sennit.open(folder) as db:
        # Any process continues the rebuild, even one without model settings.
        wait_until(lambda: only_model_is(db, 64))
        assert model_of(db) == "64"
        assert_contains_exactly(db, expected)


def test_records_written_during_a_rebuild_are_in_both_models(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    expected = {f"r{n}": versioned_record(f"r{n}", n) for n in range(20)}
    with sennit.open(folder) as db:
        db.add(expected.values())
    with sennit.open(folder, **SMALL) as db, sennit.open(folder) as other:
        for handle in (db, other):
            handle.maintainer.close()  # no background work
        db.embeddings.select_model()
        for handle, name, number in ((db, "here", 100), (other, "there", 101), (db, "r3", 102)):
            record = expected[name] = versioned_record(name, number)
            handle.add([record])
            assert model_of(db) == "256"
            assert is_nearest(db, record)
        db.remove(["r4"])
        del expected["r4"]
        db.maintainer._stop.clear()
        db.maintainer.embed_pending()
        assert model_of(db) == "64"
        assert_contains_exactly(db, expected)
        assert_contains_exactly(other, expected)
        assert set(stored_vectors(db)) == {64}


def test_opening_with_another_model_starts_the_rebuild_without_a_write(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    with sennit.open(folder) as db:
        db.add(versioned_record(f"r{n}", n) for n in range(10))
    with sennit.open(folder, embedding__dimensions=128) as db:
        wait_until(lambda: model_of(db) == "128")
        wait_until(lambda: only_model_is(db, 128))
        assert not list((folder / "index").glob("vector-1/*.seg"))


def test_switching_back_and_forth_leaves_no_vectors_of_other_models(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    expected = {f"r{n}": versioned_record(f"r{n}", n) for n in range(30)}
    with sennit.open(folder) as db:
        db.add(expected.values())
    for dimensions in (64, 128, 256, 64, 256):
        with sennit.open(folder, embedding__dimensions=dimensions) as db:
            db.maintainer.close()
            db.embeddings.select_model()
            for state in db.store.models.progress():
                batch = db.store.models.pending_texts(state.model.number, 100)
                vectors = db.embeddings.embed_texts(state.model, [text for _, text in batch]) or []
                db.store.models.add_late_vectors(
                    state.model.number, dict(zip((h for h, _ in batch), vectors, strict=True))
                )
                db.store.models.activate_if_complete(state.model.number)
            assert model_of(db) == str(dimensions)
    with sennit.open(folder) as db:
        db.maintainer.wake()
        wait_until(lambda: only_model_is(db, 256))
        assert stored_vectors(db) == {256: 30}
        assert_contains_exactly(db, expected)


def test_returning_to_the_active_model_retires_the_one_being_built(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    with sennit.open(folder) as db:
        db.add(versioned_record(f"r{n}", n) for n in range(10))
    with sennit.open(folder, **SMALL) as db:
        db.maintainer.close()
        db.embeddings.select_model()
    with sennit.open(folder, embedding__dimensions=256) as db:
        db.embeddings.select_model()
        db.maintainer.wake()
        wait_until(lambda: only_model_is(db, 256))
        assert model_of(db) == "256"


def test_a_rebuilt_index_contains_each_record_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors that came late lie in later ranges than their records; folding in chunks must not double them."""
    monkeypatch.setattr(segmented_index, "FLUSH_CHUNK_RECORDS", 16)
    monkeypatch.setattr(maintenance, "EMBED_BATCH_TEXTS", 10)
    monkeypatch.setattr(models, "RETIRE_BATCH", 7)
    folder = tmp_path / "db"
    expected = {f"r{n}": versioned_record(f"r{n}", n) for n in range(100)}
    with sennit.open(folder, store__flush_at=8) as db:
        db.add(expected.values())
    with sennit.open(folder, store__flush_at=8, **SMALL) as db:
        wait_until(lambda: only_model_is(db, 64))
        db.maintainer.flush(wait=True)
        (model,) = db.store.models.current()
        entries = embedded_store(db).vector_index(model).segment_infos()
        assert sum(entry.count for entry in entries) == 100
        assert_contains_exactly(db, expected)
        db.admin.optimise()
        assert_contains_exactly(db, expected)


def test_without_a_model_keyword_search_works_and_the_result_is_degraded(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    with sennit.open(folder, embedding__provider="none") as db:
        db.add([versioned_record("a", 1), versioned_record("b", 2)])
        result = db.search(COMMON_WORD)
        assert {hit.id for hit in result} == {"a", "b"}
        assert [entry.source for entry in result.degraded] == ["vector"]
        assert "none" in result.degraded[0].reason
        assert search_keyword(db, COMMON_WORD) == ["a", "b"]
        assert stored_vectors(db) == {}
    with sennit.open(folder) as db:
        db.add([versioned_record("c", 3)])
        wait_until(lambda: len(search_vector(db, COMMON_WORD)) == 3)
    with sennit.open(folder, embedding__provider="none") as db:
        # A record written without a model gets its vector from the next process that has one.
        db.add([versioned_record("d", 4)])
    with sennit.open(folder) as db:
        wait_until(lambda: set(search_vector(db, COMMON_WORD)) == {"a", "b", "c", "d"})


def test_a_removed_text_leaves_no_vector_behind(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([versioned_record("a", 1), versioned_record("a", 2)])
        assert stored_vectors(db) == {256: 1}
        db.add([versioned_record("same", 2)])
        db.remove(["a"])
        assert stored_vectors(db) == {256: 1}
        db.remove(["same"])
        assert stored_vectors(db) == {}
        db.add([versioned_record("b", 3)])
        ((model, missing),) = db.store.models.missing_vectors([b"0" * 16], {})
        db.store.models.add_late_vectors(model.number, dict.fromkeys(missing, b"\x00" * 512))
        assert stored_vectors(db) == {256: 1}
