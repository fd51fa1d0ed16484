"""The graph over many vectors: near-exact, with any filter, and kept through merges and repairs."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import numpy as np
import pytest
from numpy.typing import NDArray

import weft
from weft.filters import parse_filter
from weft.stores.embedded import layers, vector, vector_segment
from weft.stores.embedded.selection import Selection
from weft.stores.embedded.vector_segment import VectorSegment

from .helpers import assert_holds, by_vector, numbered, segments

Floats = NDArray[np.float32]


def clustered(count: int, dimensions: int, seed: int) -> Floats:
    """Unit vectors around a few hundred centres, as texts of a collection lie."""
    chance = np.random.default_rng(seed)
    centres = chance.normal(size=(200, dimensions))
    points = centres[chance.integers(0, 200, count)] + 0.6 * chance.normal(size=(count, dimensions))
    unit: Floats = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    return unit


@pytest.fixture(scope="module")
def graph() -> tuple[VectorSegment, Floats]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_segment, "GRAPH_FROM", 1000)
        points = clustered(4000, 64, 1)
        rows = np.arange(len(points), dtype=np.int64)
        segment = VectorSegment.over(rows, points.astype(np.float16), Event())
    return segment, clustered(60, 64, 2)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 1.0])
def test_the_graph_finds_the_nearest_at_any_filter(graph: tuple[VectorSegment, Floats], share: float) -> None:
    segment, queries = graph
    allowed = np.random.default_rng(3).random(len(segment.rows)) < share
    chosen = None if share == 1.0 else Selection(allowed)
    hits = total = 0
    for query in queries:
        found = segment.near(query, 10, chosen)
        exact = np.where(allowed | (share == 1.0), segment.vectors @ query, -2)
        assert len(found) == 10
        assert (allowed | (share == 1.0))[found].all()
        hits += len(set(found.tolist()) & set(np.argsort(-exact)[:10].tolist()))
        total += 10
    assert hits / total >= 0.98


@pytest.mark.parametrize("share", [0.03, 0.1, 0.3])
def test_a_filter_that_comes_again_is_answered_exactly(
    graph: tuple[VectorSegment, Floats], share: float
) -> None:
    segment, queries = graph
    allowed = np.random.default_rng(4).random(len(segment.rows)) < share
    chosen = Selection(allowed)
    segment.near(queries[0], 10, chosen)
    for query in queries[1:20]:
        exact = np.where(allowed, segment.vectors @ query, -2)
        assert set(segment.near(query, 10, chosen).tolist()) == set(np.argsort(-exact)[:10].tolist())


def test_old_copies_make_room_for_new_ones(
    graph: tuple[VectorSegment, Floats], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_segment, "COPIES", 500)
    segment, queries = graph
    filters = [Selection(np.arange(len(segment.rows)) % 20 == n) for n in range(6)]
    for chosen in filters * 3:
        found = segment.near(queries[0], 10, chosen)
        assert len(found) == 10
        assert chosen.mask[found].all()


@pytest.mark.parametrize(("share", "k"), [(0.055, 50), (0.06, 10), (0.2, 100)])
def test_a_filter_on_a_far_corner_still_finds_all_that_were_asked_for(
    graph: tuple[VectorSegment, Floats], share: float, k: int
) -> None:
    """All that passes lies far from the query, where a walk through the graph does not come by."""
    segment, queries = graph
    for query in queries[:20]:
        order = np.argsort(segment.vectors @ query)[: int(share * len(segment.rows))]
        far = np.zeros(len(segment.rows), bool)
        far[order] = True
        found = segment.near(query, k, Selection(far))
        assert set(found.tolist()) >= set(order[::-1][:k].tolist())


def test_the_graph_is_used_grown_and_revived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_segment, "GRAPH_FROM", 30)
    monkeypatch.setattr(layers, "FOLD_CHUNK", 40)
    expected = {f"r{n}": numbered(f"r{n}", n, metadata={"n": n}) for n in range(100)}
    folder = tmp_path / "db"
    with weft.open(folder) as db:
        db.add(expected.values())
        db.keeper.fold()
        assert len(segments(folder, "vector-1")) >= 3
        assert_holds(db, expected)
        db.optimise()
        more = {f"m{n}": numbered(f"m{n}", 500 + n) for n in range(20)}
        db.add(more.values())
        db.optimise()
        expected |= more
        db.remove(["r3", "r5"])
        del expected["r3"], expected["r5"]
        assert_holds(db, expected)
        db.optimise()
    with weft.open(folder) as db:
        assert_holds(db, expected)
        assert not db.store.notices
        with db.store.snapshot() as snapshot:
            query = db.vectors.for_query(snapshot.model, expected["r7"].text)
            wanted = parse_filter({"n": {"gte": 0}})
            assert len(snapshot.vector_search(query, 50, wanted).keys) == 50


def test_taking_in_a_write_looks_at_the_new_records_only() -> None:
    with weft.open(":memory:") as db:
        db.add(numbered(f"r{n}", n) for n in range(50))
        with db.store.database.read() as connection:
            plan = connection.execute(f"EXPLAIN QUERY PLAN {vector.LOAD}", (1, 49, 50)).fetchall()
    steps = [step for *_, step in plan if step.startswith(("SEARCH", "SCAN"))]
    assert steps[0].startswith("SEARCH r USING INTEGER PRIMARY KEY (rowid>?")
    assert not any(step.startswith("SCAN") or step.endswith("(model=?)") for step in steps)


def test_a_graph_of_one_text_many_times_still_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_segment, "GRAPH_FROM", 30)
    with weft.open(tmp_path / "db") as db:
        db.add(weft.Record(id=f"{n:03}", text="the same words") for n in range(200))
        db.optimise()
        assert len(by_vector(db, "same words", limit=50)) == 50
        for _ in range(3):
            few = db.search("same words", recipe="vector", limit=5, filters="id >= '150'")
            assert [hit.id for hit in few] == ["150", "151", "152", "153", "154"]
