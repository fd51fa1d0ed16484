"""Trees are evaluated as LightGBM evaluates them, to the last bit, and what is no tree is refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.evaluation.lambdamart import TrainingRows, TreeOptions, read_lightgbm, train_trees
from sennit.ranking.trees import MAX_LEAVES, MAX_TREES, Tree, TreeSum

STUMP = Tree((0,), (0.5,), (-1,), (-2,), (True,), (1.0, 2.0), (1.25,))


def walk(tree: Tree, row: Any) -> float:
    """The value of a tree by its definition, node by node."""
    at = 0 if tree.features else -1
    while at >= 0:
        value = row[tree.features[at]]
        goes_left = tree.missing_left[at] if np.isnan(value) else value <= tree.thresholds[at]
        at = tree.left[at] if goes_left else tree.right[at]
    return tree.leaves[-1 - at]


numbers = st.integers(-3, 3).map(float)


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """A tree of any shape, grown by splitting a leaf as often as wanted."""
    count = draw(st.integers(0, MAX_LEAVES - 1))
    left: list[int] = []
    right: list[int] = []
    homes: list[tuple[list[int], int] | None] = [None]
    for node in range(count):
        leaf = draw(st.integers(0, len(homes) - 1))
        home = homes[leaf]
        if home is not None:
            home[0][home[1]] = node
        left.append(-1 - leaf)
        right.append(-1 - len(homes))
        homes[leaf] = (left, node)
        homes.append((right, node))
    return Tree(
        draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)),
        draw(st.lists(numbers, min_size=count, max_size=count)),
        left,
        right,
        draw(st.lists(st.booleans(), min_size=count, max_size=count)),
        draw(st.lists(numbers, min_size=count + 1, max_size=count + 1)),
        draw(st.lists(numbers, min_size=count, max_size=count)),
    )


@given(st.lists(trees(), max_size=4), st.lists(st.tuples(*[numbers | st.just(np.nan)] * 3), max_size=6))
def test_trees_are_the_sum_of_what_each_tree_says(grown: list[Tree], rows: list[tuple[float, ...]]) -> None:
    features = np.array(rows, np.float64).reshape(len(rows), 3)
    sums = TreeSum(grown, 3)
    expected = [sum(walk(tree, row) for tree in grown) for row in features]
    assert sums.scores(features).tolist() == expected
    shares, start = sums.shares(features)
    assert (shares.sum(axis=1) + start).tolist() == pytest.approx(expected)


def ranking_data(seed: int = 0) -> TrainingRows:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(900, 6))
    features[:, 1] = rng.integers(0, 3, len(features))
    features[rng.random(features.shape) < 0.1] = np.nan
    features[:, 5] = rng.normal(size=len(features))  # never missing in the training
    grades = (np.nan_to_num(features[:, 0]) + 0.5 * np.nan_to_num(features[:, 1]) > 0.8).astype(np.int64)
    return TrainingRows(features, grades, np.full(30, 30), np.zeros(900))


def test_scores_are_those_of_lightgbm_to_the_last_bit() -> None:
    import lightgbm

    rows = ranking_data()
    options = {
        "objective": "lambdarank",
        "num_leaves": 16,
        "min_data_in_leaf": 5,
        "verbose": -1,
        "num_threads": 1,
    }
    booster = lightgbm.train(options, lightgbm.Dataset(rows.features, rows.grades, group=rows.sizes), 40)
    sums = TreeSum(read_lightgbm(booster.model_to_string()), 6)
    unseen = np.random.default_rng(7).normal(size=(500, 6))
    unseen[np.random.default_rng(8).random(unseen.shape) < 0.2] = np.nan
    unseen[:3, 0] = [np.inf, -np.inf, 0.0]
    for features in (rows.features, unseen, unseen[:1]):
        assert sums.scores(features).tolist() == booster.predict(features, raw_score=True).tolist()


def test_training_twice_gives_the_same_trees_and_keeps_to_the_constraints() -> None:
    options = TreeOptions(trees=10, min_rows=10, increasing=(0,))
    first, second = (train_trees(ranking_data(), options) for _ in range(2))
    assert first.trees == second.trees
    line = np.zeros((50, 6))
    line[:, 0] = np.linspace(-3, 3, 50)
    assert (np.diff(first.scores(line)) >= 0).all()
    assert first.scores(line)[-1] > first.scores(line)[0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"left": (0,)}, "neither a later node nor a leaf"),
        ({"left": (5,)}, "neither a later node nor a leaf"),
        ({"left": (-2,)}, "two nodes have the child -2"),
        ({"left": (True,)}, "neither a later node nor a leaf"),
        ({"features": (3,)}, "not among the 3"),
        ({"features": (-1,)}, "not among the 3"),
        ({"thresholds": (float("nan"),)}, "not a finite number"),
        ({"leaves": (1.0, float("inf"))}, "not a finite number"),
        ({"leaves": (1.0, "2")}, "not a finite number"),
        ({"means": ()}, "one entry for each node"),
        ({"leaves": (1.0,)}, "one entry for each node"),
        ({"missing_left": (1,)}, "true or false"),
    ],
)
def test_what_is_no_tree_is_refused(change: dict[str, Any], message: str) -> None:
    TreeSum([STUMP], 3)
    with pytest.raises(ValueError, match=message):
        TreeSum([replace(STUMP, **change)], 3)


def test_a_cycle_of_nodes_is_refused() -> None:
    cycle = Tree((0, 0), (0.0, 0.0), (1, 0), (-1, -2), (True, True), (1.0, 2.0, 3.0), (0.0, 0.0))
    with pytest.raises(ValueError, match="neither a later node nor a leaf"):
        TreeSum([cycle], 1)


def test_too_many_trees_and_leaves_are_refused() -> None:
    with pytest.raises(ValueError, match="trees, and 500 are allowed"):
        TreeSum([STUMP] * (MAX_TREES + 1), 3)
    nodes = MAX_LEAVES
    chain = Tree(
        [0] * nodes,
        [0.0] * nodes,
        [-1 - at for at in range(nodes)],
        [*range(1, nodes), -nodes - 1],
        [True] * nodes,
        [0.0] * (nodes + 1),
        [0.0] * nodes,
    )
    with pytest.raises(ValueError, match="17 leaves, and 16 are allowed"):
        TreeSum([chain], 1)
