"""The relevance of hits: from 0 to 1, rising with the evidence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.ranking.relevance import Evidence, cut_by_relevance, estimate_relevance, match
from sennit.ranking.stages import StageOutput

shares = st.floats(0.0, 1.0)
lifts = st.floats(-1.0, 1.0)
maybe_shares = shares | st.just(float("nan"))
maybe_lifts = lifts | st.just(float("nan"))


def evidence(coverage: float, lift: float, rank: float = 0, linked: float = 0) -> Evidence:
    columns = (np.array([value]) for value in (coverage, lift, rank, linked))
    first, second, third, fourth = columns
    return Evidence(first, second, third, fourth, match(first, second))


@given(maybe_shares, maybe_lifts, st.floats(0, 1000), st.sampled_from([0.0, 1.0]))
def test_it_is_a_chance(coverage: float, lift: float, rank: float, linked: float) -> None:
    (chance,) = estimate_relevance(evidence(coverage, lift, rank, linked))
    assert 0.0 <= chance <= 1.0


@given(shares, shares, lifts)
def test_more_words_of_the_query_make_it_more_relevant(low: float, high: float, lift: float) -> None:
    low, high = sorted((low, high))
    assert estimate_relevance(evidence(low, lift)) <= estimate_relevance(evidence(high, lift)) + 1e-12


@given(shares, lifts, lifts)
def test_a_nearer_meaning_makes_it_more_relevant(coverage: float, low: float, high: float) -> None:
    low, high = sorted((low, high))
    assert estimate_relevance(evidence(coverage, low)) <= estimate_relevance(evidence(coverage, high)) + 1e-12


@given(shares, lifts, st.floats(0, 100), st.floats(0, 100))
def test_a_later_place_makes_it_less_relevant(
    coverage: float, lift: float, early: float, late: float
) -> None:
    early, late = sorted((early, late))
    first, second = (estimate_relevance(evidence(coverage, lift, rank)) for rank in (early, late))
    assert second <= first + 1e-12


def test_a_link_counts_only_where_the_question_is_about_the_database() -> None:
    for best, gains in ((0.3, False), (1.4, True)):
        plain, linked = (
            estimate_relevance(evidence(0.1, 0.1, 1, one)._replace(best=np.array([best])))[0]
            for one in (0.0, 1.0)
        )
        assert (linked > plain) == gains


def test_words_alone_and_meaning_alone_have_models_of_their_own() -> None:
    nan = float("nan")
    assert estimate_relevance(evidence(1.0, nan))[0] > 0.8
    assert estimate_relevance(evidence(nan, 0.9))[0] > 0.8
    assert estimate_relevance(evidence(0.0, nan))[0] < 0.18
    assert estimate_relevance(evidence(nan, 0.0))[0] < 0.18
    assert estimate_relevance(evidence(nan, nan))[0] == 0.0


def test_a_mixed_answer_gives_each_hit_the_model_for_what_is_known_of_it() -> None:
    both = Evidence(
        np.array([0.9, 0.9]), np.array([0.5, np.nan]), np.zeros(2), np.zeros(2), np.array([1.9, 1.9])
    )
    single = [estimate_relevance(Evidence(*(column[at : at + 1] for column in both)))[0] for at in range(2)]
    assert estimate_relevance(both).tolist() == pytest.approx(single)


def test_what_is_cut_is_named_with_the_number_that_decided() -> None:
    ranking = StageOutput(np.array([7, 8, 9]), np.array([0.9, 0.5, 0.4]))
    cut = cut_by_relevance(ranking, np.array([0.8, 0.2, 0.5]), 0.5)
    assert cut.keys.tolist() == [7, 9]
    (dropped,) = cut.dropped.values()
    assert (dropped.stage, dropped.number, dropped.needed) == ("min_relevance", 0.2, 0.5)
