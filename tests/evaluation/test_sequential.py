"""The always-valid test: against an independent implementation, and by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from savvi.multinomial import Multinomial  # type: ignore[import-untyped]

from sennit.evaluation.sequential import PRIOR, confidence_sequence, log_e_values

ALPHA = 0.05
RUNS = 1000


def stopping_times(
    chance: float, decisions: int, prior: float = PRIOR
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """After how many decisions each of 1,000 runs calls a winner, looked at after each; inf if never."""
    rng = np.random.default_rng(19)
    wins = np.cumsum(rng.random((RUNS, decisions)) < chance, axis=1, dtype=np.int64)
    losses = np.arange(1, decisions + 1) - wins
    called = log_e_values(wins, losses, prior) >= -math.log(ALPHA)
    return np.where(called.any(axis=1), called.argmax(axis=1) + 1, np.inf)


@given(st.integers(0, 400), st.integers(0, 400))
def test_e_values_agree_with_an_independent_implementation(wins: int, losses: int) -> None:
    other = Multinomial(ALPHA, np.array([0.5, 0.5]), k=2 * PRIOR)
    other.update(np.array([wins, losses]))
    assert log_e_values(np.array([wins]), np.array([losses]))[0] == pytest.approx(
        math.log(other.odds), abs=1e-8
    )


@pytest.mark.parametrize(("wins", "losses"), [(60, 40), (3, 1), (130, 170)])
def test_confidence_sequences_agree_with_an_independent_implementation(wins: int, losses: int) -> None:
    other = Multinomial(ALPHA, np.array([0.5, 0.5]), k=2 * PRIOR)
    other.update(np.array([wins, losses]))
    assert confidence_sequence(wins, losses, ALPHA) == pytest.approx(other.calculate_conf_int()[0], abs=1e-4)


@given(st.integers(0, 300), st.integers(0, 300))
def test_the_interval_excludes_one_half_exactly_when_a_winner_is_called(wins: int, losses: int) -> None:
    low, high = confidence_sequence(wins, losses, ALPHA)
    assert 0 <= low <= high <= 1
    evidence = log_e_values(np.array([wins]), np.array([losses]))[0]
    if abs(evidence + math.log(ALPHA)) > 1e-9:
        assert (not low <= 0.5 <= high) == (evidence >= -math.log(ALPHA))


def test_no_observation_is_no_evidence() -> None:
    assert log_e_values(np.array([0]), np.array([0]))[0] == 0
    assert confidence_sequence(0, 0, ALPHA) == (0, 1)


def test_equal_recipes_have_a_winner_in_at_most_five_percent_of_runs() -> None:
    assert np.isfinite(stopping_times(0.5, 3000)).mean() <= ALPHA


def test_a_real_difference_is_found() -> None:
    times = stopping_times(0.6, 3000)
    assert np.isfinite(times).all()
    assert np.median(times) < 250
    assert np.median(stopping_times(0.7, 3000)) < 80


def test_the_prior_needs_the_fewest_observations_for_a_usual_difference() -> None:
    medians = {prior: np.median(stopping_times(0.6, 1500, prior)) for prior in (1.0, 3.0, 10.0, 30.0, 100.0)}
    assert min(medians, key=lambda prior: medians[prior]) == PRIOR
