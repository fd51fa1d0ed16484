"""Codes over many vectors: near-exact, with any filter, and kept through merges and repairs."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from numpy.typing import NDArray

import sennit
from sennit.filters import parse_filter
from sennit.stores.embedded import layers, ranges, vector, vector_segment
from sennit.stores.embedded.coded import lists_for
from sennit.stores.embedded.products import Compact
from sennit.stores.embedded.selection import Selection
from sennit.stores.embedded.vector_segment import VectorSegment

from .helpers import assert_holds, by_vector, numbered, segments

Floats = NDArray[np.float32]


def clustered(count: int, dimensions: int, seed: int) -> Floats:
    """Unit vectors around a few hundred centres, as texts of a collection lie."""
    chance = np.random.default_rng(seed)
    centres = chance.normal(size=(200, dimensions))
    points = centres[chance.integers(0, 200, count)] + 0.6 * chance.normal(size=(count, dimensions))
    unit: Floats = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    return unit


def everything(segment: VectorSegment) -> Floats:
    return segment.at(np.arange(len(segment.rows)))


@pytest.fixture(scope="module")
def coded() -> Iterator[tuple[VectorSegment, Floats]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_segment, "CODED_FROM", 1000)
        points = clustered(4000, 64, 1)
        rows = np.arange(len(points), dtype=np.int64)
        segment = VectorSegment.over(rows, points.astype(np.float16), Event())
        patch.setattr(vector_segment, "COPIED", 300)
        yield segment, clustered(60, 64, 2)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 1.0])
def test_the_nearest_are_found_at_any_filter(coded: tuple[VectorSegment, Floats], share: float) -> None:
    segment, queries = coded
    allowed = np.random.default_rng(3).random(len(segment.rows)) < share
    chosen = None if share == 1.0 else Selection(allowed)
    hits = total = 0
    for query in queries:
        found, _ = segment.near(query, 10, chosen)
        exact = np.where(allowed | (share == 1.0), everything(segment) @ query, -2)
        assert len(found) == 10
        assert (allowed | (share == 1.0))[found].all()
        hits += len(set(found.tolist()) & set(np.argsort(-exact)[:10].tolist()))
        total += 10
    assert hits / total >= 0.98


@pytest.mark.parametrize("share", [0.005, 0.03, 0.07])
def test_where_few_pass_the_answer_is_exact(coded: tuple[VectorSegment, Floats], share: float) -> None:
    segment, queries = coded
    allowed = np.random.default_rng(4).random(len(segment.rows)) < share
    chosen = Selection(allowed)
    for query in queries[:20]:
        exact = np.where(allowed, everything(segment) @ query, -2)
        assert set(segment.near(query, 10, chosen)[0].tolist()) == set(np.argsort(-exact)[:10].tolist())


def test_where_nothing_passes_nothing_is_found(coded: tuple[VectorSegment, Floats]) -> None:
    segment, queries = coded
    nothing = Selection(np.zeros(len(segment.rows), bool))
    for _ in range(3):
        found, scores = segment.near(queries[0], 10, nothing)
        assert len(found) == len(scores) == 0


def test_a_score_is_the_same_whichever_way_it_was_found(coded: tuple[VectorSegment, Floats]) -> None:
    segment, queries = coded
    for share in (0.05, 0.5):
        chosen = Selection(np.random.default_rng(7).random(len(segment.rows)) < share)
        for query in queries[:10]:
            exact = dict(
                zip(*(part.tolist() for part in segment.near(query, 10, chosen, exact=True)), strict=True)
            )
            found = dict(zip(*(part.tolist() for part in segment.near(query, 10, chosen)), strict=True))
            shared = exact.keys() & found.keys()
            assert shared
            assert all(found[position] == exact[position] for position in shared)


def test_old_copies_make_room_for_new_ones(
    coded: tuple[VectorSegment, Floats], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_segment, "COPIES", 500)
    segment, queries = coded
    filters = [Selection(np.arange(len(segment.rows)) % 20 == n) for n in range(6)]
    for chosen in filters * 3:
        found, _ = segment.near(queries[0], 10, chosen)
        assert len(found) == 10
        assert chosen.mask[found].all()


@pytest.mark.parametrize(("share", "k"), [(0.055, 50), (0.06, 10), (0.2, 100)])
def test_a_filter_on_a_far_corner_still_finds_all_that_were_asked_for(
    coded: tuple[VectorSegment, Floats], share: float, k: int
) -> None:
    """All that passes lies far from the query, in none of the lists that are searched first."""
    segment, queries = coded
    hits = 0
    for query in queries[:20]:
        order = np.argsort(everything(segment) @ query)[: int(share * len(segment.rows))]
        far = np.zeros(len(segment.rows), bool)
        far[order] = True
        found, _ = segment.near(query, k, Selection(far))
        assert len(found) == k
        hits += len(set(found.tolist()) & set(order[::-1][:10].tolist()))
    assert hits >= 0.98 * 20 * 10


def test_codes_are_used_grown_and_revived(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_segment, "CODED_FROM", 30)
    monkeypatch.setattr(layers, "FOLD_CHUNK", 40)
    expected = {f"r{n}": numbered(f"r{n}", n, metadata={"n": n}) for n in range(100)}
    folder = tmp_path / "db"
    with sennit.open(folder) as db:
        db.add(expected.values())
        db.keeper.fold(wait=True)
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
    with sennit.open(folder) as db:
        assert_holds(db, expected)
        assert not db.store.notices
        with db.store.snapshot() as snapshot:
            query = db.vectors.for_query(snapshot.model, expected["r7"].text)
            wanted = parse_filter({"n": {"gte": 0}})
            assert len(snapshot.vector_search(query, 50, wanted).keys) == 50


def test_taking_in_a_write_looks_at_the_new_records_only() -> None:
    with sennit.open(":memory:") as db:
        db.add(numbered(f"r{n}", n) for n in range(50))
        with db.store.database.read() as connection:
            plan = connection.execute(f"EXPLAIN QUERY PLAN {vector.LOAD}", (1, 49, 50)).fetchall()
    steps = [step for *_, step in plan if step.startswith(("SEARCH", "SCAN"))]
    assert steps[0].startswith("SEARCH r USING INTEGER PRIMARY KEY (rowid>?")
    assert not any(step.startswith("SCAN") or step.endswith("(model=?)") for step in steps)


def test_one_text_many_times_still_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_segment, "CODED_FROM", 30)
    with sennit.open(tmp_path / "db") as db:
        db.add(sennit.Record(id=f"{n:03}", text="the same words") for n in range(200))
        db.optimise()
        assert len(by_vector(db, "same words", limit=50)) == 50
        for _ in range(3):
            few = db.search("same words", recipe="vector", limit=5, filters="id >= '150'")
            assert [hit.id for hit in few] == ["150", "151", "152", "153", "154"]


def scattered(count: int, dimensions: int, seed: int) -> Floats:
    """Unit vectors in all directions alike: no list is nearer to a question than another."""
    points = np.random.default_rng(seed).normal(size=(count, dimensions))
    unit: Floats = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    return unit


@pytest.mark.parametrize("dimensions", [1, 2, 31, 64])
def test_the_effort_suits_how_the_vectors_lie(dimensions: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_segment, "CODED_FROM", 1000)
    points = scattered(3000, dimensions, 5)
    segment = VectorSegment.over(np.arange(3000, dtype=np.int64), points.astype(np.float16), Event())
    hits = 0
    for query in scattered(40, dimensions, 6):
        exact = np.sort(everything(segment) @ query)[-10]
        hits += int(
            np.count_nonzero(everything(segment)[segment.near(query, 10, None)[0]] @ query >= exact - 1e-3)
        )
    assert hits >= 0.98 * 400


def test_questions_that_lie_farther_out_than_the_vectors_find_the_nearest_too(
    coded: tuple[VectorSegment, Floats],
) -> None:
    segment, queries = coded
    chance = np.random.default_rng(12)
    hits = 0
    for query in queries:
        away = query + 0.1 * chance.normal(size=query.shape).astype(np.float32)
        away /= np.linalg.norm(away)
        exact = np.argsort(-(everything(segment) @ away))[:10]
        hits += len(set(segment.near(away, 10, None)[0].tolist()) & set(exact.tolist()))
    assert hits >= 0.98 * 10 * len(queries)


def test_what_is_added_to_lists_is_found_as_what_they_were_made_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_segment, "CODED_FROM", 1000)
    first, later = clustered(3000, 64, 8).astype(np.float16), scattered(600, 64, 9).astype(np.float16)
    start = VectorSegment.over(np.arange(3000, dtype=np.int64), first, Event())
    grown = VectorSegment.over(
        np.arange(3600, dtype=np.int64), np.concatenate([first, later]), Event(), start
    )
    found = [
        position in grown.near(grown.at(np.array([position]))[0], 10, None)[0]
        for position in range(0, 3600, 10)
    ]
    assert np.mean(found[300:]) >= 0.98
    assert np.mean(found[:300]) >= 0.98


def test_codes_that_are_not_of_these_vectors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_segment, "CODED_FROM", 1000)
    points = clustered(1200, 16, 10).astype(np.float16)
    arrays = dict(VectorSegment.over(np.arange(1200, dtype=np.int64), points, Event()).arrays())
    arrays["vectors"] = points[:-1]
    with pytest.raises(ValueError, match="codes of 1200 vectors and not of 1199"):
        VectorSegment.revived(arrays)


def test_lists_that_are_added_to_are_measured_again_once_they_have_grown_by_a_fifth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vector_segment, "CODED_FROM", 500)
    points = clustered(2000, 64, 5).astype(np.float16)
    # The same number of lists for all of these.
    sizes = (1200, 1400, 1500)
    assert len({lists_for(size) for size in sizes}) == 1
    first = VectorSegment.over(np.arange(1200), points[:1200], Event())
    assert first._coded is not None
    grown = VectorSegment.over(np.arange(1400), points[:1400], Event(), first)
    more = VectorSegment.over(np.arange(1500), points[:1500], Event(), grown)
    assert grown._coded is not None
    assert more._coded is not None
    assert first._coded.measured == 1200
    assert (grown._coded.reach, grown._coded.measured) == (first._coded.reach, 1200)
    assert more._coded.measured == 1500
    revived = VectorSegment.revived(grown.arrays())
    assert revived._coded is not None
    assert (revived._coded.reach, revived._coded.measured) == (grown._coded.reach, 1200)


def test_an_array_over_the_vectors_of_a_segment_outlives_the_segment() -> None:
    points = clustered(3000, 64, 6).astype(np.float16)
    views = [Compact(points).half for _ in range(8)]
    gc.collect()
    # What is free is used again, by the next of the same size first of all.
    others = [Compact(np.zeros_like(points)) for _ in range(8)]
    assert all(np.array_equal(view, points) for view in views)
    assert not any(other.half.any() for other in others)


def test_a_segment_that_will_soon_be_merged_into_an_older_one_has_no_codes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vector_segment, "CODED_FROM", 500)
    monkeypatch.setattr(vector_segment, "CODED_PASSING", 1500)
    points = clustered(1600, 64, 7).astype(np.float16)
    assert VectorSegment.over(np.arange(1000), points[:1000], Event())._coded is not None
    assert VectorSegment.over(np.arange(1000), points[:1000], Event(), passing=True)._coded is None
    assert VectorSegment.over(np.arange(1600), points, Event(), passing=True)._coded is not None


def test_only_a_merge_with_the_oldest_segment_is_worth_codes_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_segment, "CODED_FROM", 30)
    monkeypatch.setattr(ranges, "MERGE_RATIO", 0.5)
    with sennit.open(tmp_path / "db") as db:
        for start, stop in ((0, 200), (200, 240), (240, 280)):
            db.add(numbered(f"r{n}", n) for n in range(start, stop))
            db.keeper.fold(wait=True)
        db.keeper.settle(wait=True)
        (index,) = db.store._vectors.values()
        db.search("anything")
        assert index._state is not None
        segments = [layer.segment for layer in index._state.layers]
        assert [len(segment.rows) for segment in segments] == [200, 80]
        assert segments[1]._coded is None
        db.optimise()
        (whole,) = [layer.segment for layer in index._state.layers]
        assert whole._coded is not None
