"""Normalisations give the values that docs/ranking-contract.md states."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sennit.ranking.normalisation import MAX_MAGNITUDE, NORMALISATIONS, Floats, normalise

SPREAD_RULES = ("minmax", "sum", "zscore", "dbsf", "dbsf_sample")


BENT = math.sqrt(16 + 0.05**2)


def floats(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("none", [4.0, 2.0, 0.0]),
        ("max", [1.0, 0.5, 0.0]),
        ("minmax", [1.0, 0.5, 0.0]),
        ("sum", [2 / 3, 1 / 3, 0.0]),
        ("l2", [4 / math.sqrt(20), 2 / math.sqrt(20), 0.0]),
        ("zscore", [math.sqrt(1.5), 0.0, -math.sqrt(1.5)]),
        ("dbsf", [0.5 + math.sqrt(1.5) / 6, 0.5, 0.5 - math.sqrt(1.5) / 6]),
        ("dbsf_sample", [0.5 + 1 / 6, 0.5, 0.5 - 1 / 6]),
        ("rank", [1.0, 2 / 3, 1 / 3]),
        ("background", [(4 + BENT) / 2, (2 + math.sqrt(4 + 0.05**2)) / 2, 0.025]),
        ("arctan", [2 / math.pi * math.atan(4), 2 / math.pi * math.atan(2), 0.0]),
    ],
)
def test_formula(name: str, expected: list[float]) -> None:
    assert normalise(name, floats(4, 2, 0)) == pytest.approx(expected, abs=1e-12)


def test_every_rule_has_its_formula_tested() -> None:
    tested = next(mark for mark in test_formula.pytestmark if mark.name == "parametrize").args[1]  # type: ignore[attr-defined]
    assert {name for name, _ in tested} == set(NORMALISATIONS)


@pytest.mark.parametrize(
    ("name", "value"), [("minmax", 1.0), ("sum", 1 / 3), ("zscore", 0.0), ("dbsf", 0.5), ("dbsf_sample", 0.5)]
)
def test_equal_scores_become_the_flat_value_of_the_rule(name: str, value: float) -> None:
    # 0.1 three times has a mean that is not 0.1 in binary; the scores must still count as equal.
    assert normalise(name, floats(0.1, 0.1, 0.1)) == pytest.approx([value] * 3)


@pytest.mark.parametrize("name", SPREAD_RULES)
@pytest.mark.parametrize("system_value", [1.0, 0.5, 0.0])
def test_all_equal_sets_the_value_of_equal_scores(name: str, system_value: float) -> None:
    assert normalise(name, floats(7, 7), system_value).tolist() == [system_value] * 2
    assert normalise(name, floats(7), system_value).tolist() == [system_value]


@pytest.mark.parametrize("name", ["none", "max", "l2", "rank", "arctan"])
def test_equal_scores_are_no_special_case_elsewhere(name: str) -> None:
    assert normalise(name, floats(3, 3), all_equal=9.0).max() != 9.0


@pytest.mark.parametrize("name", ["max", "l2"])
def test_a_list_of_zeros_stays_zero(name: str) -> None:
    assert normalise(name, floats(0, 0)).tolist() == [0.0, 0.0]


def test_negative_scores_keep_their_order_under_max() -> None:
    assert normalise("max", floats(-1, -2, -4)).tolist() == [-0.25, -0.5, -1.0]
    assert normalise("max", floats(1, 0, -4)).tolist() == [0.25, 0.0, -1.0]


def test_unknown_rule_names_the_rules() -> None:
    with pytest.raises(ValueError, match=r"unknown normalisation 'aardvark'; use one of: none, max, minmax"):
        normalise("aardvark", floats(1))


@pytest.mark.parametrize("name", NORMALISATIONS)
def test_an_empty_list_stays_empty(name: str) -> None:
    assert normalise(name, floats()).shape == (0,)


scores_best_first = st.lists(
    st.floats(-MAX_MAGNITUDE, MAX_MAGNITUDE, allow_nan=False), min_size=1, max_size=30
).map(lambda values: floats(*sorted(values, reverse=True)))


@pytest.mark.parametrize("name", NORMALISATIONS)
@given(scores=scores_best_first)
@example(scores=floats(5e-324, -MAX_MAGNITUDE))
@example(scores=floats(MAX_MAGNITUDE, -MAX_MAGNITUDE))
@example(scores=floats(1e-200, 0.0))
@example(scores=floats(np.nextafter(0.1, 1), 0.1, 0.1))
def test_finite_scores_stay_finite_and_ordered(name: str, scores: Floats) -> None:
    scores.setflags(write=False)  # a rule that writes to its input fails
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        values = normalise(name, scores)
    assert values.shape == scores.shape
    assert np.isfinite(values).all()
    assert (np.diff(values) <= 1e-12).all()
    assert not np.may_share_memory(values, scores)


@given(scores=scores_best_first)
def test_ranges(scores: Floats) -> None:
    for name, low, high in [
        ("max", -1, 1),
        ("minmax", 0, 1),
        ("sum", 0, 1),
        ("l2", -1, 1),
        ("rank", 0, 1),
        ("arctan", -1, 1),
    ]:
        values = normalise(name, scores)
        assert values.min() >= low - 1e-12, name
        assert values.max() <= high + 1e-12, name
    assert normalise("sum", scores).sum() == pytest.approx(1.0)
