"""What the database refuses, and what it guarantees after close."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sennit
from sennit import Database, Record
from sennit.errors import FilterError, InvalidInput, NotFound, SennitError, SettingsError, StoreClosed
from sennit.search_parameters import QUERY


@pytest.fixture
def db() -> Database:
    opened = sennit.open(":memory:")
    opened.add([Record(id="a", text="harbour lights"), Record(id="b", text="mountain lights")])
    return opened


@pytest.mark.parametrize(
    "call",
    [
        lambda db: db.add(5),
        lambda db: db.add(None),
        lambda db: db.add(Record(id="c", text="one record is not a list")),
        lambda db: db.add(["text"]),
        lambda db: db.add([Record(id="c", text="fine"), {"id": "d", "words": "no text"}]),
        lambda db: db.add("text"),
        lambda db: db.remove("a"),
        lambda db: db.remove(5),
        lambda db: db.remove(None),
        lambda db: db.remove([1]),
        lambda db: db.remove(["a", None]),
        lambda db: db.remove([b"a"]),
        lambda db: db.get(1),
        lambda db: db.get(None),
        lambda db: db.search(None),
        lambda db: db.search(b"lights"),
        lambda db: db.search(["lights"]),
        lambda db: db.search("x" * (QUERY.max_characters + 1)),
        lambda db: db.search("lights", limit=0),
        lambda db: db.search("lights", limit=-1),
        lambda db: db.search("lights", limit=1001),
        lambda db: db.search("lights", limit=2.0),
        lambda db: db.search("lights", limit="2"),
        lambda db: db.search("lights", limit=True),
        lambda db: db.search("lights", recipe="no such recipe"),
        lambda db: db.search("lights", recipe=5),
        lambda db: db.search("lights", filters=5),
        lambda db: db.search("lights", filters=["kind"]),
        lambda db: db.search("lights", filters="kind ="),
        lambda db: db.search("lights", filters={"kind": {"$near": "x"}}),
        lambda db: db.why("lights", 5),
        lambda db: db.why("lights", None),
        lambda db: db.why(None, "a"),
        lambda db: db.why("lights", "a", limit=0),
    ],
)
def test_an_invalid_argument_is_refused_and_changes_nothing(
    db: Database, call: Callable[[Any], object]
) -> None:
    with pytest.raises((InvalidInput, NotFound)) as caught:
        call(db)
    assert len(str(caught.value)) > 10
    assert sorted(record.id for record in db) == ["a", "b"]
    assert len(db.search("lights")) == 2


def test_generators_and_empty_lists_are_accepted(db: Database) -> None:
    assert db.add(Record(id=f"g{n}", text="lights") for n in range(3)).added == 3
    assert db.add([]).added == 0
    assert db.remove(name for name in ("g0", "g1", "unknown", "g1")) == 2
    assert db.remove([]) == 0
    assert len(db) == 3


def test_a_failing_batch_writes_nothing(db: Database) -> None:
    def broken() -> Any:
        yield Record(id="c", text="lights")
        raise RuntimeError("the reader broke")

    with pytest.raises(RuntimeError, match="the reader broke"):
        db.add(broken())
    with pytest.raises(RuntimeError, match="the reader broke"):
        db.remove(record.id for record in [*db, *broken()])
    assert sorted(record.id for record in db) == ["a", "b"]


def test_an_empty_query_is_no_error(db: Database) -> None:
    for query in ("", "   ", "?!", "\n"):
        result = db.search(query)
        assert not result.degraded
        assert result.query == query


def test_an_empty_database_can_be_searched(tmp_path: Path) -> None:
    for place in (":memory:", tmp_path / "db"):
        with sennit.open(place) as empty:
            result = empty.search("anything", filters="kind = 'x'", explain=True)
            assert len(result) == 0
            assert not result.degraded
            assert len(empty) == 0
            assert list(empty) == []
            empty.admin.optimise()
            with pytest.raises(NotFound):
                empty.why("anything", "a")


def test_unknown_settings_and_recipes_are_refused_when_opening(tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        sennit.open(tmp_path / "db", search__limt=3)
    with pytest.raises(NotFound, match="default"):
        sennit.open(tmp_path / "db", search__recipe="nothing")
    with pytest.raises(InvalidInput):
        sennit.open(tmp_path / "db", settings=sennit.Settings(), search__limit=3)
    assert not (tmp_path / "db").exists()


@pytest.mark.parametrize("place", ["memory", "disk"])
def test_using_a_closed_database_is_an_error(tmp_path: Path, place: str) -> None:
    db = sennit.open(":memory:" if place == "memory" else tmp_path / "db")
    db.add([Record(id="a", text="harbour")])
    listing = iter(db)
    next(listing)
    db.close()
    db.close()
    calls: list[Callable[[], object]] = [
        lambda: db.add([Record(id="b", text="x")]),
        lambda: db.remove(["a"]),
        lambda: db.search("harbour"),
        lambda: db.why("harbour", "a"),
        lambda: db.get("a"),
        lambda: len(db),
        lambda: list(db),
        db.admin.optimise,
    ]
    for call in calls:
        with pytest.raises(StoreClosed, match="closed"):
            call()


def test_a_filter_error_shows_the_position(db: Database) -> None:
    with pytest.raises(FilterError) as caught:
        db.search("lights", filters="kind = 'note' and and")
    assert caught.value.position == 18


def test_databases_in_memory_are_separate(db: Database) -> None:
    with sennit.open(":memory:") as other:
        assert len(other) == 0
    assert len(db) == 2


def test_a_process_that_exits_without_closing_loses_nothing(tmp_path: Path) -> None:
    code = (
        "import sys, sennit; db = sennit.open(sys.argv[1], store__flush_at=4);"
        "[db.add([sennit.Record(id=str(n), text='harbour')]) for n in range(50)]; db.search('harbour')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "db")], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    with sennit.open(tmp_path / "db") as db:
        assert len(db.search("harbour", limit=100)) == 50


def test_errors_are_sennit_errors() -> None:
    assert issubclass(InvalidInput, SennitError)
    assert issubclass(InvalidInput, ValueError)
    assert issubclass(NotFound, LookupError)


# Misspelt names


def test_a_misspelt_collection_is_an_error_with_the_nearest_name() -> None:
    with sennit.open(":memory:", privacy__open=True) as db:
        assert not db.search("vines", collections=["recieps"])
        db.add([sennit.Record(id="a", text="Prune the vines", collection="recipes-of-ana")])
        db.add([sennit.Record(id="h", text="vines", collection="diary", sensitivity="private")])
        with pytest.raises(
            NotFound, match=r"no collection 'recipes-of-anna'. Did you mean 'recipes-of-ana'\?"
        ):
            db.search("vines", collections=["recipes-of-anna"])
        with pytest.raises(NotFound, match=r"no collection 'recipes-of-anna'"):
            db.why("vines", "a", collections=["recipes-of-anna"])
        assert not db.search("vines", collections=["memory"]), "a recipe knows it"


def test_a_hidden_collection_does_not_exist_for_the_caller() -> None:
    caller = sennit.Caller(clearance="normal")
    with sennit.open(":memory:", privacy__open=True) as db:
        db.add([sennit.Record(id="a", text="vines", collection="garden")])
        db.add([sennit.Record(id="h", text="vines", collection="diary", sensitivity="private")])
        assert len(db.search("vines", collections=["diary"])) == 1
        with pytest.raises(NotFound) as caught:
            db.search("vines", collections=["diaries"], caller=caller)
        assert "diary" not in str(caught.value)
        with pytest.raises(NotFound, match="no collection 'diary'"):
            db.search("vines", collections=["diary"], caller=caller)


def test_a_documented_field_that_no_record_has_yet_finds_nothing() -> None:
    with sennit.open(":memory:") as db:
        db.add([Record(id="a", text="harbour")])
        for name in ("artifact_type", "source_system", "tags"):
            assert not db.search("harbour", filters={name: "x"})
        with pytest.raises(FilterError, match="No record has the field 'artefact_type'"):
            db.search("harbour", filters={"artefact_type": "x"})


def test_a_misspelt_recipe_is_an_error_with_the_nearest_name() -> None:
    with sennit.open(":memory:") as db, pytest.raises(NotFound, match=r"Did you mean 'memory'\?"):
        db.search("vines", recipe="memroy")
