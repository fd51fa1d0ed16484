"""Vectors that come with the records: stored as they are given, found by the query's own, and never mixed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sennit
from sennit import Record
from sennit.errors import EmbeddingError, InvalidInput
from sennit.stores.embedded.store import EmbeddedStore
from stores.helpers import wait_until

X, Y, Z = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]


@pytest.fixture
def db() -> Iterator[sennit.Database]:
    with sennit.open(":memory:") as opened:
        yield opened


def nearest(db: sennit.Database, vector: Any, limit: int = 10) -> list[str]:
    return [hit.id for hit in db.search("", recipe="vector", vector=vector, limit=limit)]


def model_names(db: sennit.Database) -> list[str]:
    return [model.name for model in db.admin.current_models()]


vectors = st.lists(
    st.lists(st.floats(-1e3, 1e3, width=16), min_size=4, max_size=4).filter(any), min_size=1, max_size=20
)


@given(vectors, st.lists(st.floats(-1, 1, width=16), min_size=4, max_size=4).filter(any))
@settings(max_examples=60)
def test_records_are_ranked_by_the_cosine_of_the_given_vectors(
    stored: list[list[float]], query: list[float]
) -> None:
    with sennit.open(":memory:") as db:
        db.add(Record(id=f"r{n:02}", text="the same text", vector=vector) for n, vector in enumerate(stored))
        found = db.search("", recipe="vector", vector=query, limit=50)

    def unit(numbers: list[float]) -> NDArray[np.float64]:
        array = np.array(numbers)
        scaled: NDArray[np.float64] = array / np.abs(array).max()
        return scaled / np.linalg.norm(scaled)

    expected = {f"r{n:02}": float(unit(vector) @ unit(query)) for n, vector in enumerate(stored)}
    assert {hit.id for hit in found} == expected.keys()
    for hit in found:
        assert hit.score == pytest.approx(expected[hit.id], abs=2e-3)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)


def test_a_new_database_takes_the_kind_of_its_first_vectors(db: sennit.Database) -> None:
    assert not db.search("anything", vector=X), "a search before the first write chooses no model"
    db.add(
        [
            {"id": "a", "text": "cats", "vector": np.array(X, np.float32)},
            Record(id="b", text="dogs", vector=Y),
        ]
    )
    assert model_names(db) == ["given/3"]
    assert nearest(db, [0.1, 5, 0]) == ["b", "a"]
    stored = db.get("a")
    assert stored == Record(id="a", text="cats")
    assert stored is not None
    assert stored.vector is None


def test_vectors_survive_reopening_and_flushing(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([Record(id="a", text="cats", vector=X), Record(id="b", text="dogs", vector=Y)])
    with sennit.open(tmp_path / "db") as db:
        assert nearest(db, Y) == ["b", "a"]
        db.admin.optimise()
        db.add([Record(id="c", text="cows", vector=Z)])
        assert nearest(db, Z)[0] == "c"
        assert model_names(db) == ["given/3"]


def test_a_search_fuses_the_given_vector_with_the_words(db: sennit.Database) -> None:
    db.add([Record(id="a", text="cats", vector=X), Record(id="b", text="dogs", vector=Y)])
    found = db.search("cats", vector=Y)
    assert {hit.id: set(hit.sources) for hit in found} == {"a": {"keyword", "vector"}, "b": {"vector"}}
    assert not found.degraded
    assert db.why("cats", "b", vector=Y).kept


def test_without_a_vector_the_search_is_by_keyword_and_says_so(db: sennit.Database) -> None:
    db.add([Record(id="a", text="cats", vector=X)])
    found = db.search("cats")
    assert [hit.id for hit in found] == ["a"]
    assert [one.source for one in found.degraded] == ["vector"]
    assert "vector=" in found.degraded[0].reason


def test_a_record_without_a_vector_is_found_by_keyword_only(db: sennit.Database) -> None:
    db.add([Record(id="a", text="cats", vector=X), Record(id="b", text="dogs")])
    assert db.admin.pending_vectors() == 1
    assert nearest(db, X) == ["a"]
    assert {hit.id for hit in db.search("dogs", vector=X)} == {"a", "b"}
    with pytest.raises(EmbeddingError, match="1 records lack a vector of the model given/3"):
        db.wait(timeout=60)
    db.add([Record(id="b", text="dogs", vector=Y)])
    assert nearest(db, Y) == ["b", "a"]
    assert db.wait(timeout=60)


def test_a_new_vector_alone_is_an_update(db: sennit.Database) -> None:
    db.add([Record(id="a", text="cats", vector=X), Record(id="b", text="cats", vector=Y)])
    assert nearest(db, X) == ["a", "b"]
    assert db.add([Record(id="a", text="cats", vector=X)]).unchanged == 1
    assert db.add([Record(id="a", text="cats", vector=[0, 1, 0.1])]).updated == 1
    assert nearest(db, [0, 0.5, 0.5]) == ["a", "b"]


def test_a_record_added_again_without_its_vector_keeps_it_while_the_text_is_the_same(
    db: sennit.Database,
) -> None:
    db.add([Record(id="a", text="cats", vector=X)])
    assert db.add([Record(id="a", text="cats")]).unchanged == 1
    assert db.add([Record(id="a", text="cats", kind="note")]).updated == 1
    assert nearest(db, X) == ["a"]
    assert db.admin.pending_vectors() == 0
    db.add([Record(id="a", text="other text")])
    assert nearest(db, X) == []
    assert db.admin.pending_vectors() == 1


def test_a_removed_record_leaves_no_vector(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([Record(id="a", text="cats", vector=X), Record(id="b", text="dogs", vector=Y)])
        db.remove(["a"])
        assert nearest(db, X) == ["b"]
        assert isinstance(db.store, EmbeddedStore)
        with db.store.pool.read() as connection:
            assert connection.execute("SELECT count(*) FROM vectors").fetchone() == (1,)


@pytest.mark.parametrize(
    ("vector", "advice"),
    [
        ([1.0, float("nan"), 0.0], "not finite"),
        ([1.0, float("inf"), 0.0], "not finite"),
        ([0.0, 0.0, 0.0], "zero"),
        ([], "1 to 65,536 numbers"),
        ([[1.0, 2.0]], "1 to 65,536 numbers"),
        ("abc", "numbers"),
        (["a", "b"], "numbers"),
        ([1.0, None], "numbers|finite"),
        (5, "1 to 65,536 numbers"),
    ],
)
def test_a_vector_that_cannot_be_used_is_refused(db: sennit.Database, vector: Any, advice: str) -> None:
    with pytest.raises(InvalidInput, match=f"record 'a'.*({advice})"):
        db.add([Record(id="a", text="cats", vector=vector)])
    with pytest.raises(InvalidInput, match=f"query.*({advice})"):
        db.search("cats", vector=vector)
    assert len(db) == 0


def test_vectors_of_another_length_are_refused(db: sennit.Database) -> None:
    with pytest.raises(InvalidInput, match="record 'b' has 2 numbers"):
        db.add([Record(id="a", text="cats", vector=X), Record(id="b", text="dogs", vector=[1, 0])])
    db.add([Record(id="a", text="cats", vector=X)])
    with pytest.raises(InvalidInput, match="has 2 numbers; those of this database have 3"):
        db.add([Record(id="b", text="dogs", vector=[1, 0])])
    with pytest.raises(InvalidInput, match="query has 2 numbers; those of this database have 3"):
        db.search("cats", vector=[1, 0])
    db.remove(["a"])
    db.add([Record(id="b", text="dogs", vector=[1, 0])])
    assert model_names(db) == ["given/2"]


def test_vectors_of_two_kinds_never_mix(db: sennit.Database) -> None:
    db.add([Record(id="a", text="cats")])
    (own,) = model_names(db)
    with pytest.raises(InvalidInput, match=f"come from {own}.*embedding.provider = 'given'"):
        db.add([Record(id="b", text="dogs", vector=[1.0] * 256)])
    with pytest.raises(InvalidInput, match=f"come from {own}"):
        db.search("cats", vector=[1.0] * 256)
    assert len(db) == 1


def test_a_configured_model_refuses_given_vectors() -> None:
    with (
        sennit.open(":memory:", embedding__provider="static") as db,
        pytest.raises(InvalidInput, match="never mix"),
    ):
        db.add([Record(id="a", text="cats", vector=X)])


def test_a_database_changes_to_given_vectors_when_every_record_has_one(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([Record(id="a", text="cats"), Record(id="b", text="dogs")])
        (before,) = model_names(db)
    with sennit.open(tmp_path / "db", embedding__provider="given") as db:
        db.add([Record(id="a", text="cats", vector=X)])
        assert model_names(db) == [before, "given/3"], "the old model answers"
        assert len(db.search("cats", recipe="vector")) == 2
        db.add([Record(id="b", text="dogs", vector=Y)])
        wait_until(lambda: model_names(db) == ["given/3"])
        assert nearest(db, Y) == ["b", "a"]
    with sennit.open(tmp_path / "db", embedding__provider="static") as db:
        assert db.wait(timeout=60)
        assert model_names(db) == [before]
        assert db.search("cats", recipe="vector")[0].id == "a"


def test_the_length_can_be_configured() -> None:
    with sennit.open(":memory:", embedding__provider="given", embedding__dimensions=3) as db:
        with pytest.raises(InvalidInput, match="has 2 numbers; those of this database have 3"):
            db.add([Record(id="a", text="cats", vector=[1, 0])])
        db.add([Record(id="a", text="cats", vector=X)])
        assert nearest(db, X) == ["a"]


def test_the_doctor_finds_nothing_wrong(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([Record(id="a", text="cats", vector=X), Record(id="b", text="dogs")])
        db.admin.optimise()
        assert [finding for finding in db.admin.check() if finding.level == "problem"] == []


def test_a_caller_learns_nothing_from_a_vector_about_hidden_records(db: sennit.Database) -> None:
    hidden = sennit.Record(id="p", text="cats", vector=X, sensitivity="private")
    db.add([hidden])
    assert not db.search("cats", vector=[1, 2], caller=sennit.Caller())
