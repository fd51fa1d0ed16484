"""The metrics, against values computed by hand."""

from __future__ import annotations

from math import log2

import pytest

from sennit.evaluation.metrics import METRICS, compute_metrics, mean_metrics


def test_metrics_of_binary_judgements() -> None:
    found = compute_metrics({"q": {"a": 1, "b": 1, "c": 1}}, {"q": ["x", "a", "y", "b"]})["q"]
    best = 1 + 1 / log2(3) + 1 / log2(4)
    assert found["nDCG@10"] == pytest.approx((1 / log2(3) + 1 / log2(5)) / best)
    assert found["MRR@10"] == pytest.approx(1 / 2)
    assert found["R@5"] == found["R@10"] == found["R@100"] == pytest.approx(2 / 3)


def test_grades_are_gains_in_ndcg() -> None:
    found = compute_metrics({"q": {"a": 2, "b": 1}}, {"q": ["b", "x", "a"]})["q"]
    assert found["nDCG@10"] == pytest.approx((1 + 2 / log2(4)) / (2 + 1 / log2(3)))


def test_grade_zero_is_not_relevant() -> None:
    found = compute_metrics({"q": {"a": 1, "b": 0}}, {"q": ["b", "a"]})["q"]
    assert found["MRR@10"] == pytest.approx(1 / 2)
    assert found["R@5"] == 1.0


def test_each_metric_uses_the_depth_in_its_name() -> None:
    ranking = [f"x{at}" for at in range(200)]
    for place, reached in ((4, 5), (5, 10), (9, 10), (10, 100), (99, 100), (100, 0)):
        found = compute_metrics({"q": {"a": 1}}, {"q": [*ranking[:place], "a", *ranking[place:]]})["q"]
        assert {name: found[name] for name in ("R@5", "R@10", "R@100")} == {
            "R@5": float(0 < reached <= 5),
            "R@10": float(0 < reached <= 10),
            "R@100": float(0 < reached <= 100),
        }
        assert (found["MRR@10"] > 0) == (found["nDCG@10"] > 0) == (place < 10)


def test_given_order_is_kept_whatever_the_ids() -> None:
    for ranking in (["a", "b", "c"], ["c", "b", "a"]):
        assert compute_metrics({"q": {"a": 1}}, {"q": ranking})["q"]["MRR@10"] == pytest.approx(
            1 / (ranking.index("a") + 1)
        )


def test_query_without_results_counts_as_zero() -> None:
    found = compute_metrics({"q": {"a": 1}, "r": {"b": 1}, "s": {"c": 1}}, {"q": ["a"], "r": []})
    assert found == {"q": dict.fromkeys(METRICS, 1.0), "r": dict.fromkeys(METRICS, 0.0)}
    assert mean_metrics(found.values()) == dict.fromkeys(METRICS, 0.5)


def test_missing_relevant_document_lowers_recall() -> None:
    assert compute_metrics({"q": {"a": 1, "ghost": 1}}, {"q": ["a"]})["q"]["R@100"] == 0.5
