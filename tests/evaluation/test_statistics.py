"""Confidence intervals and tests of measurements, against scipy and by simulation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # type: ignore[import-untyped]

from sennit.evaluation.statistics import bootstrap_interval, compare, holm, randomisation_test, t_test

_values = st.lists(st.floats(-1, 1).map(lambda value: round(value, 3)), min_size=2, max_size=60)


@given(_values)
def test_the_t_test_agrees_with_scipy(values: list[float]) -> None:
    sample = np.array(values)
    if np.ptp(sample) > 1e-9:
        assert t_test(values) == pytest.approx(stats.ttest_1samp(sample, 0).pvalue, abs=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=10))
def test_holm_is_monotone_and_never_smaller(p_values: list[float]) -> None:
    corrected = holm(p_values)
    assert all(raw <= new <= 1 for raw, new in zip(p_values, corrected, strict=True))
    in_order = sorted(range(len(p_values)), key=lambda at: p_values[at])
    assert [corrected[at] for at in in_order] == sorted(corrected)
    assert min(corrected) == min(1.0, min(p_values) * len(p_values))


def test_the_randomisation_test_agrees_with_scipy() -> None:
    sample = np.random.default_rng(3).normal(0.1, 0.3, 40)
    other = stats.permutation_test(
        (sample, np.zeros(40)),
        lambda one, two, axis: (one - two).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=20_000,
        rng=5,
    )
    assert randomisation_test(sample.tolist()) == pytest.approx(other.pvalue, abs=0.012)


@given(_values.filter(lambda values: len(values) <= 13))
def test_the_randomisation_test_of_few_queries_is_exact(values: list[float]) -> None:
    sample = np.array(values)
    other = stats.permutation_test(
        (sample, np.zeros(len(sample))),
        lambda one, two, axis: (one - two).mean(axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    assert randomisation_test(values) == pytest.approx(other.pvalue)


def test_the_bootstrap_agrees_with_scipy() -> None:
    sample = np.random.default_rng(4).random(80)
    other = stats.bootstrap((sample,), np.mean, method="percentile", n_resamples=20_000, rng=5)
    assert bootstrap_interval(sample.tolist()) == pytest.approx(tuple(other.confidence_interval), abs=0.005)


def test_figures_are_the_same_in_every_run() -> None:
    values = np.random.default_rng(5).random(50).tolist()
    assert bootstrap_interval(values) == bootstrap_interval(values)
    assert randomisation_test(values) == randomisation_test(values)


def test_equal_systems_are_not_different() -> None:
    found = compare([0.5, 0.2, 1.0], [0.5, 0.2, 1.0])
    assert (found.difference, found.p_randomisation, found.p_t) == (0, 1, 1)
    assert (found.better, found.equal, found.worse) == (0, 3, 0)
    assert randomisation_test([]) == 1
    assert bootstrap_interval([]) == (0, 0)


def test_a_constant_improvement_is_certain() -> None:
    found = compare([0.1] * 30, [0.2] * 30)
    assert found.interval == pytest.approx((0.1, 0.1))
    assert found.p_randomisation < 0.001


def test_noise_is_called_significant_in_about_five_percent_of_cases() -> None:
    rng = np.random.default_rng(6)
    called = [randomisation_test(rng.normal(0, 1, 20).tolist()) < 0.05 for _ in range(100)]
    assert np.mean(called) <= 0.12
