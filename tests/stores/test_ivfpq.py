"""IVF-PQ over many vectors: near-exact with any filter, through merges and repairs."""

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
from sennit.stores.embedded import ranges, segmented_index, vector_index, vector_segment
from sennit.stores.embedded.ivfpq import list_count
from sennit.stores.embedded.selection import Selection
from sennit.stores.embedded.vector_math import Float16Vectors
from sennit.stores.embedded.vector_segment import VectorSegment

from .helpers import assert_contains_exactly, embedded_store, search_vector, segments, versioned_record

Floats = NDArray[np.float32]


def clustered(count: int, dimensions: int, seed: int) -> Floats:
    """Unit vectors in a few hundred clusters, like the texts of a collection."""
    chance = np.random.default_rng(seed)
    centres = chance.normal(size=(200, dimensions))
    points = centres[chance.integers(0, 200, count)] + 0.6 * chance.normal(size=(count, dimensions))
    unit: Floats = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    return unit


def all_vectors(segment: VectorSegment) -> Floats:
    return segment.vectors_at(np.arange(len(segment.rows)))


@pytest.fixture(scope="module")
def indexed() -> Iterator[tuple[VectorSegment, Floats]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_segment, "IVFPQ_MIN_VECTORS", 1000)
        points = clustered(4000, 64, 1)
        rows = np.arange(len(points), dtype=np.int64)
        segment = VectorSegment.build(rows, points.astype(np.float16), Event())
        patch.setattr(vector_segment, "COPY_MAX_VECTORS", 300)
        yield segment, clustered(60, 64, 2)


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 1.0])
def test_nearest_are_found_with_any_filter(indexed: tuple[VectorSegment, Floats], share: float) -> None:
    segment, queries = indexed
    allowed = np.random.default_rng(3).random(len(segment.rows)) < share
    chosen = None if share == 1.0 else Selection(allowed)
    hits = total = 0
    for query in queries:
        found, _ = segment.nearest(query, 10, chosen)
        exact = np.where(allowed | (share == 1.0), all_vectors(segment) @ query, -2)
        assert len(found) == 10
        assert (allowed | (share == 1.0))[found].all()
        hits += len(set(found.tolist()) & set(np.argsort(-exact)[:10].tolist()))
        total += 10
    assert hits / total >= 0.98


@pytest.mark.parametrize("share", [0.005, 0.03, 0.07])
def test_selective_filter_gives_exact_results(indexed: tuple[VectorSegment, Floats], share: float) -> None:
    segment, queries = indexed
    allowed = np.random.default_rng(4).random(len(segment.rows)) < share
    chosen = Selection(allowed)
    for query in queries[:20]:
        exact = np.where(allowed, all_vectors(segment) @ query, -2)
        assert set(segment.nearest(query, 10, chosen)[0].tolist()) == set(np.argsort(-exact)[:10].tolist())


def test_filter_that_passes_nothing_finds_nothing(indexed: tuple[VectorSegment, Floats]) -> None:
    segment, queries = indexed
    nothing = Selection(np.zeros(len(segment.rows), bool))
    for _ in range(3):
        found, scores = segment.nearest(queries[0], 10, nothing)
        assert len(found) == len(scores) == 0


def test_score_does_not_depend_on_the_search_method(indexed: tuple[VectorSegment, Floats]) -> None:
    segment, queries = indexed
    for share in (0.05, 0.5):
        chosen = Selection(np.random.default_rng(7).random(len(segment.rows)) < share)
        for query in queries[:10]:
            exact = dict(
                zip(*(part.tolist() for part in segment.nearest(query, 10, chosen, exact=True)), strict=True)
            )
            found = dict(zip(*(part.tolist() for part in segment.nearest(query, 10, chosen)), strict=True))
            shared = exact.keys() & found.keys()
            assert shared
            assert all(found[position] == exact[position] for position in shared)


def test_old_copies_are_evicted_for_new_ones(
    indexed: tuple[VectorSegment, Floats], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_segment, "COPIES_MAX_VECTORS", 500)
    segment, queries = indexed
    filters = [Selection(np.arange(len(segment.rows)) % 20 == n) for n in range(6)]
    for chosen in filters * 3:
        found, _ = segment.nearest(queries[0], 10, chosen)
        assert len(found) == 10
        assert chosen.mask[found].all()


@pytest.mark.parametrize(("share", "k"), [(0.055, 50), (0.06, 10), (0.2, 100)])
def test_filter_far_from_the_query_still_fills_k(
    indexed: tuple[VectorSegment, Floats], share: float, k: int
) -> None:
    """All allowed vectors lie far from the query, in none of the lists that are probed first."""
    segment, queries = indexed
    hits = 0
    for query in queries[:20]:
        order = np.argsort(all_vectors(segment) @ query)[: int(share * len(segment.rows))]
        far = np.zeros(len(segment.rows), bool)
        far[order] = True
        found, _ = segment.nearest(query, k, Selection(far))
        assert len(found) == k
        hits += len(set(found.tolist()) & set(order[::-1][:10].tolist()))
    assert hits >= 0.98 * 20 * 10


def test_index_is_used_extended_and_reopened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_segment, "IVFPQ_MIN_VECTORS", 30)
    monkeypatch.setattr(segmented_index, "FLUSH_CHUNK_RECORDS", 40)
    expected = {f"r{n}": versioned_record(f"r{n}", n, metadata={"n": n}) for n in range(100)}
    folder = tmp_path / "db"
    with sennit.open(folder) as db:
        db.add(expected.values())
        db.maintainer.flush(wait=True)
        assert len(segments(folder, "vector-1")) >= 3
        assert_contains_exactly(db, expected)
        db.admin.optimise()
        more = {f"m{n}": versioned_record(f"m{n}", 500 + n) for n in range(20)}
        db.add(more.values())
        db.admin.optimise()
        expected |= more
        db.remove(["r3", "r5"])
        del expected["r3"], expected["r5"]
        assert_contains_exactly(db, expected)
        db.admin.optimise()
    with sennit.open(folder) as db:
        assert_contains_exactly(db, expected)
        assert not db.store.notices
        with db.store.snapshot() as snapshot:
            query = db.embeddings.embed_query(snapshot.model, expected["r7"].text)
            wanted = parse_filter({"n": {"gte": 0}})
            assert len(db.backend.vector.search(snapshot, query, 50, wanted).keys) == 50


def test_catching_up_reads_only_new_records() -> None:
    with sennit.open(":memory:") as db:
        db.add(versioned_record(f"r{n}", n) for n in range(50))
        with embedded_store(db).pool.read() as connection:
            sql, values = vector_index.select_vectors(connection.dialect, 1, 49, 50)
            plan = connection.execute(f"EXPLAIN QUERY PLAN {sql}", values).fetchall()
    steps = [step for *_, step in plan if step.startswith(("SEARCH", "SCAN"))]
    assert steps[0].startswith("SEARCH r USING INTEGER PRIMARY KEY (rowid>?")
    assert not any(step.startswith("SCAN") or step.endswith("(model=?)") for step in steps)


def test_many_copies_of_one_text_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_segment, "IVFPQ_MIN_VECTORS", 30)
    with sennit.open(tmp_path / "db") as db:
        db.add(sennit.Record(id=f"{n:03}", text="the same words") for n in range(200))
        db.admin.optimise()
        assert len(search_vector(db, "same words", limit=50)) == 50
        for _ in range(3):
            few = db.search("same words", recipe="vector", limit=5, filters="id >= '150'")
            assert [hit.id for hit in few] == ["150", "151", "152", "153", "154"]


def scattered(count: int, dimensions: int, seed: int) -> Floats:
    """Unit vectors spread uniformly: no list is nearer to a query than another."""
    points = np.random.default_rng(seed).normal(size=(count, dimensions))
    unit: Floats = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    return unit


@pytest.mark.parametrize("dimensions", [1, 2, 31, 64])
def test_calibration_suits_the_distribution_of_vectors(
    dimensions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_segment, "IVFPQ_MIN_VECTORS", 1000)
    points = scattered(3000, dimensions, 5)
    segment = VectorSegment.build(np.arange(3000, dtype=np.int64), points.astype(np.float16), Event())
    hits = 0
    for query in scattered(40, dimensions, 6):
        exact = np.sort(all_vectors(segment) @ query)[-10]
        hits += int(
            np.count_nonzero(
                all_vectors(segment)[segment.nearest(query, 10, None)[0]] @ query >= exact - 1e-3
            )
        )
    assert hits >= 0.98 * 400


def test_queries_away_from_the_vectors_find_the_nearest(
    indexed: tuple[VectorSegment, Floats],
) -> None:
    segment, queries = indexed
    chance = np.random.default_rng(12)
    hits = 0
    for query in queries:
        away = query + 0.1 * chance.normal(size=query.shape).astype(np.float32)
        away /= np.linalg.norm(away)
        exact = np.argsort(-(all_vectors(segment) @ away))[:10]
        hits += len(set(segment.nearest(away, 10, None)[0].tolist()) & set(exact.tolist()))
    assert hits >= 0.98 * 10 * len(queries)


def test_added_vectors_are_found_like_trained_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_segment, "IVFPQ_MIN_VECTORS", 1000)
    first, later = clustered(3000, 64, 8).astype(np.float16), scattered(600, 64, 9).astype(np.float16)
    start = VectorSegment.build(np.arange(3000, dtype=np.int64), first, Event())
    grown = VectorSegment.build(
        np.arange(3600, dtype=np.int64), np.concatenate([first, later]), Event(), start
    )
    found = [
        position in grown.nearest(grown.vectors_at(np.array([position]))[0], 10, None)[0]
        for position in range(0, 3600, 10)
    ]
    assert np.mean(found[300:]) >= 0.98
    assert np.mean(found[:300]) >= 0.98


def test_codes_of_other_vectors_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_segment, "IVFPQ_MIN_VECTORS", 1000)
    points = clustered(1200, 16, 10).astype(np.float16)
    arrays = dict(VectorSegment.build(np.arange(1200, dtype=np.int64), points, Event()).to_arrays())
    arrays["vectors"] = points[:-1]
    with pytest.raises(ValueError, match="codes of 1200 vectors instead of 1199"):
        VectorSegment.from_arrays(arrays)


def test_index_is_calibrated_again_when_it_has_grown_by_a_fifth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vector_segment, "IVFPQ_MIN_VECTORS", 500)
    points = clustered(2000, 64, 5).astype(np.float16)
    # The same number of lists for all of these.
    sizes = (1200, 1400, 1500)
    assert len({list_count(size) for size in sizes}) == 1
    first = VectorSegment.build(np.arange(1200), points[:1200], Event())
    assert first._ivfpq is not None
    grown = VectorSegment.build(np.arange(1400), points[:1400], Event(), first)
    more = VectorSegment.build(np.arange(1500), points[:1500], Event(), grown)
    assert grown._ivfpq is not None
    assert more._ivfpq is not None
    assert first._ivfpq.calibrated_count == 1200
    assert (grown._ivfpq.probe_margin, grown._ivfpq.calibrated_count) == (first._ivfpq.probe_margin, 1200)
    assert more._ivfpq.calibrated_count == 1500
    reopened = VectorSegment.from_arrays(grown.to_arrays())
    assert reopened._ivfpq is not None
    assert (reopened._ivfpq.probe_margin, reopened._ivfpq.calibrated_count) == (
        grown._ivfpq.probe_margin,
        1200,
    )


def test_array_over_faiss_memory_outlives_its_container() -> None:
    points = clustered(3000, 64, 6).astype(np.float16)
    views = [Float16Vectors(points).half for _ in range(8)]
    gc.collect()
    # Freed memory would be reused first for allocations of the same size.
    others = [Float16Vectors(np.zeros_like(points)) for _ in range(8)]
    assert all(np.array_equal(view, points) for view in views)
    assert not any(other.half.any() for other in others)


def test_transient_segment_has_no_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vector_segment, "IVFPQ_MIN_VECTORS", 500)
    monkeypatch.setattr(vector_segment, "IVFPQ_MIN_VECTORS_TRANSIENT", 1500)
    points = clustered(1600, 64, 7).astype(np.float16)
    assert VectorSegment.build(np.arange(1000), points[:1000], Event())._ivfpq is not None
    assert VectorSegment.build(np.arange(1000), points[:1000], Event(), transient=True)._ivfpq is None
    assert VectorSegment.build(np.arange(1600), points, Event(), transient=True)._ivfpq is not None


def test_only_a_merge_with_the_oldest_segment_builds_an_index_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_segment, "IVFPQ_MIN_VECTORS", 30)
    monkeypatch.setattr(ranges, "MERGE_RATIO", 0.5)
    with sennit.open(tmp_path / "db") as db:
        for start, stop in ((0, 200), (200, 240), (240, 280)):
            db.add(versioned_record(f"r{n}", n) for n in range(start, stop))
            db.maintainer.flush(wait=True)
        db.maintainer.merge(wait=True)
        (index,) = embedded_store(db)._vectors.values()
        db.search("anything")
        assert index._view is not None
        segments = [view.segment for view in index._view.segments]
        assert [len(segment.rows) for segment in segments] == [200, 80]
        assert segments[1]._ivfpq is None
        db.admin.optimise()
        (whole,) = [view.segment for view in index._view.segments]
        assert whole._ivfpq is not None
