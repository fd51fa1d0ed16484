"""Scores of which only the order counts: what a fusion gets in their place."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.ranking.rank_scale import NO_SCALE, RankScale

SCORES = st.lists(st.floats(0.001, 1e9), max_size=30).map(
    lambda values: np.array(sorted(values, reverse=True))
)


def test_the_best_has_1_and_the_third_a_half() -> None:
    scores = np.array([90.0, 7.0, 6.5])
    assert RankScale(scores).convert(scores) == pytest.approx([1.0, 1 / np.log2(3), 0.5])


def test_a_score_that_was_not_found_has_the_rank_that_it_would_have() -> None:
    scale = RankScale(np.array([9.0, 5.0, 1.0]))
    assert scale.convert(np.array([7.0, 0.0, np.nan, 20.0])) == pytest.approx(
        [1 / np.log2(3), 0.0, np.nan, 1.0], nan_ok=True
    )
    assert NO_SCALE.convert(np.array([3.0])).tolist() == [1.0]


@given(scores=SCORES, factor=st.floats(0.01, 100))
def test_only_the_order_counts(scores: np.ndarray, factor: float) -> None:
    converted = RankScale(scores).convert(scores)
    assert converted.tolist() == RankScale(scores * factor).convert(scores * factor).tolist()
    assert (np.diff(converted) <= 0).all()
    assert ((converted > 0) & (converted <= 1)).all()
