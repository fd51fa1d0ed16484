"""A change of the embedding model: built beside the old one, switched once, and never mixed."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest

import sennit
from sennit import Database
from sennit.stores.embedded import keeper, layers, models

from .helpers import COMMON, assert_holds, by_keyword, by_vector, is_nearest, numbered, poll

SMALL: dict[str, Any] = {"embedding__dimensions": 64}


def model_of(db: Database) -> str:
    trace = db.search(COMMON, recipe="vector", limit=1, explain=True).trace
    assert trace is not None
    model = trace.state["model"]
    assert isinstance(model, str)
    return model.split(":")[2]


def stored(db: Database) -> dict[int, int]:
    """How many vectors the database holds of each length."""
    with db.store.database.read() as connection:
        found = connection.execute("SELECT length(vector) / 2, count(*) FROM vectors GROUP BY 1").fetchall()
    return dict(found)


def is_swept(db: Database, dimensions: int) -> bool:
    return set(stored(db)) == {dimensions} and len(db.store.models.wanted()) == 1


def test_every_answer_of_a_change_in_the_middle_comes_from_one_model(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    expected = {f"r{n}": numbered(f"r{n}", n) for n in range(300)}
    with sennit.open(folder) as old:
        old.add(expected.values())
        stop, one, other, odd = threading.Event(), list[str](), list[str](), list[object]()
        numbers = iter(range(1000, 10**6))

        def search(seen: list[str]) -> None:
            while not stop.is_set():
                result = old.search(expected["r7"].text, recipe="vector", limit=400, explain=True)
                assert result.trace is not None
                model = str(result.trace.state["model"]).split(":")[2]
                if result.degraded or not 0.99 < result[0].score < 1.01:
                    odd.append(result)
                if len(result) < 300:
                    odd.append(len(result))
                if not seen or seen[-1] != model:
                    seen.append(model)

        def write() -> None:
            while not stop.is_set():
                record = numbered(f"w{next(numbers) % 50}", next(numbers))
                old.add([record])
                expected[record.id] = record

        works = (lambda: search(one), lambda: search(other), write)
        threads = [threading.Thread(target=work) for work in works]
        for thread in threads:
            thread.start()
        poll(lambda: bool(one and other))
        with sennit.open(folder, **SMALL) as new:
            poll(lambda: model_of(new) == "64" and "64" in one and "64" in other)
            stop.set()
            for thread in threads:
                thread.join()
            poll(lambda: is_swept(new, 64))
            assert_holds(new, expected)
        assert odd == []
        # A thread asks again when it has been answered, so none goes back; of two, one may be answered late.
        assert one == other == ["256", "64"]
        assert_holds(old, expected)


def test_the_switch_is_seen_once_by_each_searcher(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    with sennit.open(folder) as old, sennit.open(folder) as reader:
        old.add(numbered(f"r{n}", n) for n in range(50))
        seen = [model_of(reader)]
        with sennit.open(folder, **SMALL) as new:
            new.vectors.settle()

            def switched() -> bool:
                seen.append(model_of(reader))
                return seen[-1] == "64"

            poll(switched)
            seen += [model_of(reader) for _ in range(10)]
        assert sorted(seen, key=("256", "64").index) == seen


def test_a_process_without_its_own_settings_keeps_the_database_s_model(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "db"
    with sennit.open(folder, **SMALL) as db:
        db.add(numbered(f"r{n}", n) for n in range(5))
    with sennit.open(folder) as db, caplog.at_level(logging.WARNING):
        assert model_of(db) == "64"
        db.add([numbered("more", 99)])
        assert model_of(db) == "64"
        assert stored(db) == {64: 6}
        assert [model.state for model in db.store.models.wanted()] == ["active"]
        assert "changes" not in caplog.text


def test_an_interrupted_rebuild_is_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "EMBED_BATCH", 4)
    folder = tmp_path / "db"
    expected = {f"r{n}": numbered(f"r{n}", n) for n in range(40)}
    with sennit.open(folder) as db:
        db.add(expected.values())
    with sennit.open(folder, **SMALL) as db:
        db.keeper.close()  # nobody works in the background
        db.vectors.settle()
        building = db.store.models.wanted()[1]
        batch = db.store.models.backlog(building.number, 8)
        vectors = db.vectors.for_backlog(building, [text for _, text in batch])
        assert vectors is not None
        db.store.models.fill(building.number, dict(zip((h for h, _ in batch), vectors, strict=True)))
        assert model_of(db) == "256"
        assert db.store.models.progress()[1].pending == 32
    with sennit.open(folder) as db:
        # Any process continues, also one that was told nothing about models.
        poll(lambda: is_swept(db, 64))
        assert model_of(db) == "64"
        assert_holds(db, expected)


def test_records_written_while_the_model_is_built_are_in_both(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    expected = {f"r{n}": numbered(f"r{n}", n) for n in range(20)}
    with sennit.open(folder) as db:
        db.add(expected.values())
    with sennit.open(folder, **SMALL) as db, sennit.open(folder) as other:
        for handle in (db, other):
            handle.keeper.close()  # nobody works in the background
        db.vectors.settle()
        for handle, name, number in ((db, "here", 100), (other, "there", 101), (db, "r3", 102)):
            record = expected[name] = numbered(name, number)
            handle.add([record])
            assert model_of(db) == "256"
            assert is_nearest(db, record)
        db.remove(["r4"])
        del expected["r4"]
        db.keeper._stop.clear()
        db.keeper.embed_backlog()
        assert model_of(db) == "64"
        assert_holds(db, expected)
        assert_holds(other, expected)
        assert set(stored(db)) == {64}


def test_a_reader_s_change_of_model_is_built_without_a_write(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    with sennit.open(folder) as db:
        db.add(numbered(f"r{n}", n) for n in range(10))
    with sennit.open(folder, embedding__dimensions=128) as db:
        poll(lambda: model_of(db) == "128")
        poll(lambda: is_swept(db, 128))
        assert not list((folder / "index").glob("vector-1/*.seg"))


def test_there_and_back_leaves_no_vectors_of_other_models(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    expected = {f"r{n}": numbered(f"r{n}", n) for n in range(30)}
    with sennit.open(folder) as db:
        db.add(expected.values())
    for dimensions in (64, 128, 256, 64, 256):
        with sennit.open(folder, embedding__dimensions=dimensions) as db:
            db.keeper.close()
            db.vectors.settle()
            for state in db.store.models.progress():
                batch = db.store.models.backlog(state.model.number, 100)
                made = db.vectors.for_backlog(state.model, [text for _, text in batch]) or []
                db.store.models.fill(state.model.number, dict(zip((h for h, _ in batch), made, strict=True)))
                db.store.models.switch(state.model.number)
            assert model_of(db) == str(dimensions)
    with sennit.open(folder) as db:
        db.keeper.nudge()
        poll(lambda: is_swept(db, 256))
        assert stored(db) == {256: 30}
        assert_holds(db, expected)


def test_a_change_of_mind_gives_up_the_model_being_built(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    with sennit.open(folder) as db:
        db.add(numbered(f"r{n}", n) for n in range(10))
    with sennit.open(folder, **SMALL) as db:
        db.keeper.close()
        db.vectors.settle()
    with sennit.open(folder, embedding__dimensions=256) as db:
        db.vectors.settle()
        db.keeper.nudge()
        poll(lambda: is_swept(db, 256))
        assert model_of(db) == "256"


def test_a_rebuilt_index_holds_each_record_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors that came late lie in later ranges than their records; folding in chunks must not double them."""
    monkeypatch.setattr(layers, "FOLD_CHUNK", 16)
    monkeypatch.setattr(keeper, "EMBED_BATCH", 10)
    monkeypatch.setattr(models, "RETIRE_BATCH", 7)
    folder = tmp_path / "db"
    expected = {f"r{n}": numbered(f"r{n}", n) for n in range(100)}
    with sennit.open(folder, store__fold_at=8) as db:
        db.add(expected.values())
    with sennit.open(folder, store__fold_at=8, **SMALL) as db:
        poll(lambda: is_swept(db, 64))
        db.keeper.fold(wait=True)
        (model,) = db.store.models.wanted()
        entries = db.store.vector_index(model).covered()
        assert sum(entry.count for entry in entries) == 100
        assert_holds(db, expected)
        db.optimise()
        assert_holds(db, expected)


def test_without_a_model_keywords_answer_and_it_is_said(tmp_path: Path) -> None:
    folder = tmp_path / "db"
    with sennit.open(folder, embedding__provider="none") as db:
        db.add([numbered("a", 1), numbered("b", 2)])
        result = db.search(COMMON)
        assert {hit.id for hit in result} == {"a", "b"}
        assert [entry.source for entry in result.degraded] == ["vector"]
        assert "none" in result.degraded[0].reason
        assert by_keyword(db, COMMON) == ["a", "b"]
        assert stored(db) == {}
    with sennit.open(folder) as db:
        db.add([numbered("c", 3)])
        poll(lambda: len(by_vector(db, COMMON)) == 3)
    with sennit.open(folder, embedding__provider="none") as db:
        # What is written without a model gets its vector from the next who has one.
        db.add([numbered("d", 4)])
    with sennit.open(folder) as db:
        poll(lambda: set(by_vector(db, COMMON)) == {"a", "b", "c", "d"})


def test_a_removed_text_leaves_no_vector_behind(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([numbered("a", 1), numbered("a", 2)])
        assert stored(db) == {256: 1}
        db.add([numbered("same", 2)])
        db.remove(["a"])
        assert stored(db) == {256: 1}
        db.remove(["same"])
        assert stored(db) == {}
        db.add([numbered("b", 3)])
        ((model, gone),) = db.store.models.lacking([b"0" * 16], {})
        db.store.models.fill(model.number, dict.fromkeys(gone, b"\x00" * 512))
        assert stored(db) == {256: 1}
