"""The relevance of hits: from 0 to 1, rising with the evidence."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sennit.ranking.relevance import Evidence, best_match, cut_by_relevance, estimate_relevance
from sennit.ranking.stages import StageOutput
from sennit.results.hits import FIT_RELEVANCE

shares = st.floats(0.0, 1.0)
lifts = st.floats(-1.0, 1.0)
maybe_shares = shares | st.just(float("nan"))
maybe_lifts = lifts | st.just(float("nan"))


def evidence(coverage: float, lift: float, linked: bool = False, count: int = 1) -> Evidence:
    """The evidence of an answer whose records all have the same."""
    return Evidence([coverage] * count, [lift] * count, [linked] * count, best_match([coverage], [lift]))


@given(maybe_shares, maybe_lifts, st.integers(1, 30), st.booleans())
def test_it_is_a_chance(coverage: float, lift: float, count: int, linked: bool) -> None:
    chances = estimate_relevance(evidence(coverage, lift, linked, count))
    assert len(chances) == count
    assert all(0.0 <= chance <= 1.0 for chance in chances)


@given(shares, shares, lifts)
def test_more_words_of_the_query_make_it_more_relevant(low: float, high: float, lift: float) -> None:
    low, high = sorted((low, high))
    less, more = estimate_relevance(evidence(low, lift)), estimate_relevance(evidence(high, lift))
    assert less[0] <= more[0] + 1e-12


@given(shares, lifts, lifts)
def test_a_nearer_meaning_makes_it_more_relevant(coverage: float, low: float, high: float) -> None:
    low, high = sorted((low, high))
    less, more = estimate_relevance(evidence(coverage, low)), estimate_relevance(evidence(coverage, high))
    assert less[0] <= more[0] + 1e-12


@given(maybe_shares, maybe_lifts, st.integers(2, 30))
def test_a_later_place_makes_it_less_relevant(coverage: float, lift: float, count: int) -> None:
    chances = estimate_relevance(evidence(coverage, lift, count=count))
    assert chances == sorted(chances, reverse=True)


def test_a_link_counts_only_where_the_question_is_about_the_database() -> None:
    for best, gains in ((0.3, False), (1.4, True)):
        plain, linked = (
            estimate_relevance(evidence(0.1, 0.1, one)._replace(best=best))[0] for one in (False, True)
        )
        assert (linked > plain) == gains


def test_words_alone_and_meaning_alone_have_models_of_their_own() -> None:
    nan = float("nan")
    assert estimate_relevance(evidence(1.0, nan))[0] > 0.8
    assert estimate_relevance(evidence(nan, 0.9))[0] > 0.8
    assert estimate_relevance(evidence(0.0, nan))[0] < FIT_RELEVANCE
    assert estimate_relevance(evidence(nan, 0.0))[0] < FIT_RELEVANCE
    assert estimate_relevance(evidence(nan, nan))[0] == 0.0


def test_a_mixed_answer_gives_each_hit_the_model_for_what_is_known_of_it() -> None:
    both = Evidence([0.9, 0.9, math.nan], [0.5, math.nan, 0.5], (), 1.9)
    mixed = estimate_relevance(both)
    for at, lift in enumerate(both.lift):
        alone = Evidence([both.coverage[at]] * 3, [lift] * 3, (), 1.9)
        assert mixed[at] == estimate_relevance(alone)[at]


def test_what_is_cut_is_named_with_the_number_that_decided() -> None:
    ranking = StageOutput(np.array([7, 8, 9]), np.array([0.9, 0.5, 0.4]))
    cut = cut_by_relevance(ranking, [0.8, 0.2, 0.5], 0.5)
    assert cut.keys.tolist() == [7, 9]
    (dropped,) = cut.dropped.values()
    assert (dropped.stage, dropped.number, dropped.needed) == ("min_relevance", 0.2, 0.5)
