"""Position bias: how often positions are looked at is found from results that moved, and clicks count by it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from sennit.evaluation.learning import OWN_FEATURES, LabelledQuery, TreeTrainer, discounted, order_by
from sennit.evaluation.position_bias import MAX_WEIGHT, Impression, estimate_examination
from sennit.ranking.features import BASE_FEATURE, FEATURE_NAMES

LOOKS = 1.0 / np.arange(1, 9)
"""The true chance of a look at each of eight positions."""


def simulate(
    orders: Iterator[tuple[str, list[str]]], relevance: dict[str, float], seed: int
) -> list[Impression]:
    """Show lists to people who look at a position by its chance, and choose what they find relevant."""
    rng = np.random.default_rng(seed)
    out = []
    for query, shown in orders:
        looked = rng.random(len(shown)) < LOOKS[: len(shown)]
        liked = rng.random(len(shown)) < [relevance[name] for name in shown]
        out.append(Impression(query, shown, frozenset((looked & liked).nonzero()[0].tolist())))
    return out


def shown_worst_first(count: int) -> Iterator[tuple[str, list[str]]]:
    """The ranking in use puts the worst first; a second one, interleaved with it, moves results by a few places."""
    rng = np.random.default_rng(3)
    for _ in range(count):
        places = np.arange(8) + rng.normal(0, 1.5, 8)
        yield "vines", [f"d{at}" for at in places.argsort()]


RELEVANCE = {f"d{at}": 0.15 + 0.1 * at for at in range(8)}


def test_the_curve_is_found_from_results_that_moved() -> None:
    curve = estimate_examination(simulate(shown_worst_first(20_000), RELEVANCE, 1))
    assert curve.moved == 8
    np.testing.assert_allclose(curve.chances, LOOKS, rtol=0.15)


def test_corrected_clicks_have_the_true_order_and_plain_clicks_do_not() -> None:
    impressions = simulate(shown_worst_first(6000), RELEVANCE, 2)
    curve = estimate_examination(impressions)
    plain: Counter[str] = Counter()
    corrected: Counter[str] = Counter()
    for one in impressions:
        for at in one.chosen:
            plain[one.shown[at]] += 1
            corrected[one.shown[at]] += curve.weight(at)  # type: ignore[assignment]
    truth = sorted(RELEVANCE, key=lambda name: -RELEVANCE[name])
    assert [name for name, _ in corrected.most_common()] == truth
    assert [name for name, _ in plain.most_common()] != truth
    assert plain.most_common(1)[0][0] != truth[0]


def test_without_a_moved_result_the_curve_is_assumed_and_says_so() -> None:
    curve = estimate_examination([Impression("vines", ["a", "b", "c"], frozenset({0}))] * 50)
    assert curve.moved == 0
    assert curve.chances == pytest.approx([1, 1 / 2, 1 / 3])
    assert "assumed" in str(curve.to_dict()["method"])
    assert [curve.weight(at) for at in (0, 1, 99)] == pytest.approx([1, 2, 3])
    assert estimate_examination([]).weight(4) == 1.0


def test_a_click_counts_at_most_ten() -> None:
    deep = Impression("vines", [f"d{at}" for at in range(40)], frozenset({39}))
    assert estimate_examination([deep]).weight(39) == MAX_WEIGHT


@pytest.mark.slow
def test_a_ranker_learns_the_true_order_from_corrected_clicks_and_the_shown_one_from_plain_clicks() -> None:
    rng = np.random.default_rng(5)
    length, coverage = FEATURE_NAMES.index("log_length"), FEATURE_NAMES.index("coverage")
    base = FEATURE_NAMES.index(BASE_FEATURE)
    lists = []
    impressions = []
    for number in range(1500):
        # The ranking in use goes by length, with some noise; people like coverage.
        features = np.zeros((8, len(FEATURE_NAMES)))
        features[:, length] = rng.random(8)
        features[:, coverage] = rng.random(8)
        for _ in range(2):
            order = (-features[:, length] + rng.normal(0, 0.15, 8)).argsort()
            shown = features[order]
            chosen = (rng.random(8) < LOOKS) & (rng.random(8) < 0.1 + 0.8 * shown[:, coverage])
            impressions.append(
                Impression(f"q{number}", [str(at) for at in order], frozenset(chosen.nonzero()[0].tolist()))
            )
            lists.append((f"q{number}", shown, chosen))
    curve = estimate_examination(impressions)
    assert curve.moved

    def learned_weights(weights: list[float]) -> tuple[float, float]:
        queries = []
        for group, shown, chosen in lists:
            gains = np.where(chosen, weights, 0.0)
            if gains.any():
                ideal = discounted(-np.sort(-gains))
                queries.append(LabelledQuery(group, "feedback", shown, gains, ideal, by_clicks=True))
        trees = TreeTrainer(OWN_FEATURES).train(queries, 60)
        probe = np.zeros((2, len(FEATURE_NAMES)))
        probe[:, base] = 1.0
        probe[0, [length, coverage]] = 0.2, 0.8
        probe[1, [length, coverage]] = 0.8, 0.2
        order = order_by(trees, OWN_FEATURES, LabelledQuery("probe", "", probe, np.zeros(2), 1.0))
        scores = trees.scores(probe)
        return float(order[0]), float(scores[0] - scores[1])

    assert learned_weights([1.0] * 8)[0] == 1
    first, lead = learned_weights([curve.weight(at) for at in range(8)])
    assert first == 0
    assert lead > 0
