"""Fusions give the scores, terms and order that docs/ranking-contract.md states."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sennit.ranking.fusion import (
    ISR,
    METHODS,
    RBC,
    RRF,
    Borda,
    Comb,
    Condorcet,
    Fused,
    Fusion,
    RankedList,
    Weighted,
    fuse,
    fusion_from_dict,
    fusion_to_dict,
    named_sources,
    order,
)
from sennit.ranking.normalisation import NORMALISATIONS
from sennit.ranking.rank_fusion import Keys, align

NAMES = ("keyword", "vector", "graph")
SHARES = {"keyword": 0.3, "vector": 0.7, "graph": 0.1}
FUSIONS: list[Fusion] = [
    RRF(),
    RRF(k=60, first_rank=0, weights=SHARES),
    RRF(k=2, first_rank=0, weights=SHARES, weighting="rank"),
    *(Weighted(SHARES, name) for name in NORMALISATIONS),
    Weighted(SHARES, {"keyword": "max", "*": "none"}),
    *(Comb(kind) for kind in ("sum", "mnz", "anz", "max", "min", "med")),
    Comb("gmnz", "max", gamma=0.5),
    Comb("mnz", "borda"),
    ISR(),
    ISR(log=True),
    RBC(phi=0.8),
    Borda(),
    Condorcet(),
]
every_fusion = pytest.mark.parametrize("method", FUSIONS, ids=lambda m: str(fusion_to_dict(m)))


def ranked(name: str, *keys: int, scores: Sequence[float] | None = None) -> RankedList:
    """A list in this order; falling scores where none are given."""
    falling = range(len(keys), 0, -1) if scores is None else scores
    return name, np.array(keys, dtype=np.int64), np.array(falling, dtype=np.float64)


def by_key(fused: Fused) -> dict[int, float]:
    return dict(zip(fused.keys.tolist(), fused.scores.tolist(), strict=True))


def no_ids(_: Keys) -> list[str]:
    raise AssertionError("no scores tie, so no id should be read")


@st.composite
def some_lists(draw: st.DrawFn, least: int = 0) -> list[RankedList]:
    """One to three lists with shared and own keys, best first, ties and negative scores included."""
    count = draw(st.integers(1, 3))
    lists = []
    for name in NAMES[:count]:
        keys = draw(st.lists(st.integers(-5, 12), unique=True, min_size=least, max_size=10))
        values = st.one_of(st.floats(-1e6, 1e6), st.integers(-3, 3).map(float))
        scores = draw(st.lists(values, min_size=len(keys), max_size=len(keys)))
        lists.append(ranked(name, *keys, scores=sorted(scores, reverse=True)))
    return lists


def fused(method: Fusion, lists: Sequence[RankedList]) -> Fused:
    return fuse(method, lists, NAMES)


# --- scores and terms


def test_weighted_shares() -> None:
    method = Weighted({"keyword": 0.3, "vector": 0.7}, {"keyword": "max", "vector": "none"})
    lists = [ranked("keyword", 1, 2, scores=[12, 3]), ranked("vector", 3, 1, scores=[0.9, 0.5])]
    found = fuse(method, lists)
    assert by_key(found) == pytest.approx({1: 0.3 + 0.7 * 0.5, 2: 0.3 * 0.25, 3: 0.7 * 0.9})
    assert found.terms == pytest.approx(np.array([[0.3, 0.075, 0.0], [0.35, 0.0, 0.63]]))


def test_fused_has_keys_ranks_scores_and_terms() -> None:
    found = fuse(RRF(), [ranked("keyword", 9, 4, scores=[5, 2]), ranked("vector", 4, scores=[0.5])])
    assert found.keys.tolist() == [4, 9]
    assert found.ranks.tolist() == [[1, 0], [0, -1]]
    assert found.ranks.dtype == np.int32
    np.testing.assert_equal(found.raw_scores, [[2.0, 5.0], [0.5, np.nan]])
    assert found.terms == pytest.approx(np.array([[1 / 62, 1 / 61], [1 / 61, 0.0]]))


def test_rank_weighting_divides_ranks_by_weights() -> None:
    found = fuse(
        RRF(k=2, first_rank=0, weights={"a": 3, "b": 0}, weighting="rank"),
        [ranked("a", 1, 2), ranked("b", 3)],
    )
    assert by_key(found) == pytest.approx({1: 1 / (1 / 3 + 1), 2: 1 / (2 / 3 + 1), 3: 0.0})


# --- properties of every fusion


@every_fusion
@settings(max_examples=25)  # of each of some thirty fusions
@given(lists=some_lists())
def test_scores_are_finite_and_every_hit_is_returned(method: Fusion, lists: list[RankedList]) -> None:
    found = fused(method, lists)
    assert set(found.keys.tolist()) == {key for _, keys, _ in lists for key in keys.tolist()}
    assert np.isfinite(found.scores).all()
    assert np.isfinite(found.terms).all()
    assert found.terms.shape == found.ranks.shape == found.raw_scores.shape == (len(lists), found.keys.size)
    for row, (_, keys, scores) in enumerate(lists):
        there = found.ranks[row] >= 0
        assert found.keys[there][np.argsort(found.ranks[row][there])].tolist() == keys.tolist()
        assert found.raw_scores[row][there][np.argsort(found.ranks[row][there])].tolist() == scores.tolist()
        assert np.isnan(found.raw_scores[row][~there]).all()


@every_fusion
@settings(max_examples=25)  # of each of some thirty fusions
@given(lists=some_lists())
def test_terms_of_an_additive_fusion_sum_to_the_score(method: Fusion, lists: list[RankedList]) -> None:
    found = fused(method, lists)
    if method.additive:
        assert found.terms.sum(axis=0) == pytest.approx(found.scores, rel=1e-9, abs=1e-9)


@every_fusion
@settings(max_examples=25)  # of each of some thirty fusions
@given(lists=some_lists(), seed=st.randoms(use_true_random=False))
def test_the_order_of_lists_and_the_numbers_of_keys_do_not_matter(
    method: Fusion, lists: list[RankedList], seed: Random
) -> None:
    once = by_key(fused(method, lists))
    shuffled = seed.sample(lists, len(lists))
    assert by_key(fused(method, shuffled)) == once  # identical to the last bit, so ties stay ties
    renumbered: list[RankedList] = [(name, 1000 - keys, scores) for name, keys, scores in lists]
    assert by_key(fused(method, renumbered)) == {1000 - key: value for key, value in once.items()}


@every_fusion
@settings(max_examples=25)  # of each of some thirty fusions
@given(lists=some_lists())
def test_fusion_does_not_change_its_inputs(method: Fusion, lists: list[RankedList]) -> None:
    before = [(name, keys.copy(), scores.copy()) for name, keys, scores in lists]
    for _, keys, scores in lists:
        keys.setflags(write=False)
        scores.setflags(write=False)
    found = fused(method, lists)
    for (_, keys, scores), (_, old_keys, old_scores) in zip(lists, before, strict=True):
        np.testing.assert_array_equal(keys, old_keys)
        np.testing.assert_array_equal(scores, old_scores)
        for result in (found.keys, found.scores, found.raw_scores, found.terms):
            assert not np.may_share_memory(result, keys)
            assert not np.may_share_memory(result, scores)


@given(lists=some_lists(), k=st.floats(0.5, 100), first_rank=st.sampled_from([0, 1]))
def test_another_list_never_lowers_an_rrf_score(lists: list[RankedList], k: float, first_rank: int) -> None:
    method = RRF(k=k, first_rank=first_rank)
    with_all, without_last = by_key(fuse(method, lists)), by_key(fuse(method, lists[:-1]))
    assert all(with_all[key] >= value * (1 - 1e-12) for key, value in without_last.items())


def test_keyword_only_hit_can_rank_first() -> None:
    lists = [ranked("keyword", 5, scores=[9.0]), ranked("vector", 1, 2, scores=[0.2, 0.1])]
    for method in (
        RRF(weights={"keyword": 2, "vector": 1}),
        Weighted({"keyword": 0.3, "vector": 0.7}, "none"),
    ):
        found = fuse(method, lists)
        assert found.keys[order(found.keys, found.scores, no_ids)][0] == 5


@every_fusion
def test_no_lists_and_empty_lists_give_an_empty_result(method: Fusion) -> None:
    assert fused(method, []).keys.size == 0
    found = fused(method, [ranked("keyword"), ranked("vector"), ranked("graph")])
    assert found.scores.shape == (0,)
    assert found.ranks.shape == found.terms.shape == (3, 0)


# --- the order


@given(
    scores=st.lists(st.sampled_from([0.0, -0.0, 0.25, 0.5, 1.0]), max_size=12),
    limit=st.none() | st.integers(0, 15),
    seed=st.randoms(use_true_random=False),
)
def test_order_is_by_score_then_id(scores: list[float], limit: int | None, seed: Random) -> None:
    keys = np.array(seed.sample(range(100), len(scores)), dtype=np.int64)
    ids = {
        int(key): name
        for key, name in zip(keys, seed.sample([f"id{n}" for n in range(50)], len(keys)), strict=True)
    }
    asked: list[int] = []

    def ids_of(tied: Keys) -> list[bytes]:
        asked.append(1)
        values = dict(zip(keys.tolist(), scores, strict=True))
        assert all(scores.count(values[key]) > 1 for key in tied.tolist())
        return [ids[key].encode() for key in tied.tolist()]

    found = order(keys, np.array(scores), ids_of, limit)
    expected = sorted(range(len(scores)), key=lambda i: (-scores[i], ids[int(keys[i])]))[:limit]
    assert found.tolist() == expected
    assert len(asked) <= 1


def test_ids_tie_by_code_point() -> None:
    ids = {1: "é", 2: "z", 3: "Z", 4: "\U0001f600", 5: "\uffee"}
    keys = np.array(list(ids), dtype=np.int64)
    as_text = order(keys, np.ones(5), lambda ks: [ids[key] for key in ks.tolist()])
    as_bytes = order(keys, np.ones(5), lambda ks: [ids[key].encode() for key in ks.tolist()])
    assert [ids[key] for key in keys[as_text].tolist()] == ["Z", "z", "é", "\uffee", "\U0001f600"]
    assert as_text.tolist() == as_bytes.tolist()


def test_ids_are_read_only_for_ties_that_reach_the_limit() -> None:
    keys, scores = np.arange(5), np.array([0.9, 0.8, 0.7, 0.1, 0.1])
    assert order(keys, scores, no_ids, limit=3).tolist() == [0, 1, 2]
    assert order(keys, scores, lambda tied: ["b", "a"], limit=4).tolist() == [0, 1, 2, 4]


def test_permuted_ranks_tie_exactly() -> None:
    # 1/61 + 1/62 + 1/63 in another order of addition differs in the last bit.
    found = fuse(RRF(), [ranked("a", 1, 2, 3), ranked("b", 2, 3, 1), ranked("c", 3, 1, 2)])
    assert len(set(found.scores.tolist())) == 1


# --- settings


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_built_from_its_name_and_written_back(name: str) -> None:
    needs_weights = name in ("weighted", "linear", "relative_score")
    method = fusion_from_dict({"method": name, **({"weights": SHARES} if needs_weights else {})})
    assert fusion_from_dict(fusion_to_dict(method)) == method
    assert hash(fusion_from_dict(fusion_to_dict(method))) == hash(method)


@every_fusion
def test_fusion_round_trips_through_its_table(method: Fusion) -> None:
    assert fusion_from_dict(fusion_to_dict(method)) == method


def test_tables_as_in_sennit_toml() -> None:
    assert fusion_from_dict({"method": "rrf", "k": 60, "first_rank": 0}) == RRF(k=60.0, first_rank=0.0)
    table = {"keyword": 0.3, "vector": 0.7}
    rules = {"keyword": "max", "vector": "none"}
    found = fusion_from_dict({"method": "weighted", "weights": table, "normalise": rules})
    assert found == Weighted(table, rules)
    table["keyword"] = 5.0  # the fusion has its own copy of the table
    assert isinstance(found, Weighted)
    assert found.weights["keyword"] == 0.3
    assert repr(found.weights) == "{'keyword': 0.3, 'vector': 0.7}"
    assert fusion_from_dict({"method": "relative_score", "weights": table}) == Weighted(table, "minmax", 1.0)


@pytest.mark.parametrize(
    ("table", "advice"),
    [
        ({}, "set method to one of: rrf, weighted"),
        ({"method": "rff"}, "unknown fusion method 'rff'"),
        (
            {"method": "rrf", "constant": 60},
            "no setting 'constant'; it takes: k, first_rank, weights, weighting",
        ),
        ({"method": "condorcet", "k": 60}, "it takes no settings"),
        ({"method": "rrf", "k": -1}, "k must be a finite number, 0 or more; got -1"),
        ({"method": "rrf", "k": True}, "k must be a finite number"),
        ({"method": "rrf", "k": "60"}, "k must be a finite number"),
        ({"method": "rrf", "k": float("inf")}, "k must be a finite number"),
        ({"method": "rrf", "first_rank": -1}, "first_rank must be"),
        ({"method": "rrf", "k": 0, "first_rank": 0}, "k + first_rank must be above 0"),
        (
            {"method": "rrf", "k": 0.5, "first_rank": 0, "weighting": "rank"},
            "k + first_rank must be 1 or more",
        ),
        ({"method": "rrf", "weighting": "votes"}, "weighting must be 'score' or 'rank'"),
        ({"method": "weighted"}, "needs weights, such as {keyword = 0.3, vector = 0.7}"),
        ({"method": "weighted", "weights": [0.3, 0.7]}, "weights must be a table by source name"),
        ({"method": "weighted", "weights": {}}, "weights must be a table by source name"),
        (
            {"method": "weighted", "weights": {"a": -0.5}},
            "weights.a must be a finite number, 0 or more; got -0.5",
        ),
        ({"method": "weighted", "weights": {"a": float("nan")}}, "weights.a must be a finite number"),
        ({"method": "weighted", "weights": {"a": 0, "b": 0}}, "all weights are 0"),
        (
            {"method": "weighted", "weights": {"a": 1}, "normalise": "best"},
            "normalise: unknown normalisation 'best'",
        ),
        (
            {"method": "weighted", "weights": {"a": 1}, "normalise": {"a": 3}},
            "normalise.a: unknown normalisation",
        ),
        ({"method": "weighted", "weights": {"a": 1}, "normalise": "borda"}, "unknown normalisation 'borda'"),
        ({"method": "weighted", "weights": {"a": 1}, "all_equal": "1"}, "all_equal must be a finite number"),
        ({"method": "combmnz", "kind": "sum"}, "no setting 'kind'"),
        ({"method": "combmnz", "gamma": 2}, "gamma has no effect on combmnz"),
        ({"method": "combgmnz", "gamma": 17}, "gamma must be a finite number, 0 or more, 16 or less"),
        ({"method": "rbc", "phi": 1}, "phi must be above 0 and below 1"),
    ],
)
def test_a_bad_table_says_what_to_do(table: Mapping[str, object], advice: str) -> None:
    with pytest.raises(ValueError, match=re.escape(advice)):
        fusion_from_dict(table)


def test_unknown_comb_kind_names_the_kinds() -> None:
    with pytest.raises(
        ValueError, match="unknown comb kind 'avg'; use one of: sum, mnz, anz, gmnz, max, min, med"
    ):
        Comb("avg")


# --- sources and weights by name


def test_a_weight_for_a_source_that_does_not_exist_is_an_error() -> None:
    method = Weighted({"keyword": 0.3, "vectors": 0.7})
    lists = [ranked("keyword", 1), ranked("vector", 2)]
    with pytest.raises(
        ValueError,
        match=r"the source 'vectors', which the recipe does not have; use one of: \['keyword', 'vector'\]",
    ):
        fuse(method, lists)
    assert named_sources(method) == {"keyword", "vectors"}


@pytest.mark.parametrize(
    "lists", [[ranked("keyword", 1), ranked("graph", 2)], [ranked("keyword"), ranked("graph")]]
)
def test_a_source_without_a_weight_is_an_error_even_when_nothing_is_found(lists: list[RankedList]) -> None:
    with pytest.raises(
        ValueError, match=r"no weights for the source 'graph'; add it to weights, or add '\*'"
    ):
        fuse(Weighted({"keyword": 1.0}), lists)


def test_a_source_that_failed_is_no_error() -> None:
    method = Weighted({"keyword": 0.3, "vector": 0.7}, "none")
    found = fuse(method, [ranked("vector", 1, scores=[0.5])], sources=["keyword", "vector"])
    assert by_key(found) == pytest.approx({1: 0.35})


def test_star_applies_to_every_other_source() -> None:
    lists = [ranked("keyword", 1), ranked("vector", 1), ranked("graph", 1)]
    method = Weighted({"keyword": 0.5, "*": 0.1}, {"*": "none"})
    assert by_key(fuse(method, lists)) == pytest.approx({1: 0.7})
    assert named_sources(method) == {"keyword"}


@pytest.mark.parametrize(
    ("hits", "advice"),
    [
        (
            ranked("vector", 1, 2, scores=[0.5, float("nan")]),
            "source 'vector' gave a score that is not finite",
        ),
        (
            ranked("vector", 1, 2, scores=[float("inf"), 0.5]),
            "source 'vector' gave a score that is not finite",
        ),
        (ranked("vector", 1, 1), "source 'vector' gave a key twice"),
        (ranked("vector", 1, 2, scores=[0.5]), r"shape \(2,\) and scores of shape \(1,\)"),
    ],
)
def test_malformed_list_is_refused(hits: RankedList, advice: str) -> None:
    with pytest.raises(ValueError, match=advice):
        fuse(RRF(), [ranked("keyword", 1, 2), hits])


@given(
    st.lists(st.dictionaries(st.integers(-3, 12), st.floats(-10, 10), max_size=6), max_size=3),
    st.lists(st.integers(-4, 13), max_size=8),
)
def test_aligned_lists_tell_the_score_of_any_record_in_each_list(
    tables: list[dict[int, float]], keys: list[int]
) -> None:
    lists = [
        (str(at), np.array(list(table), np.int64), np.array(list(table.values()), np.float64))
        for at, table in enumerate(tables)
    ]
    found = align(lists).scores_of(np.array(keys, np.int64))
    expected = [[table.get(key, np.nan) for key in keys] for table in tables]
    np.testing.assert_array_equal(found, np.array(expected, np.float64).reshape(len(tables), len(keys)))
