"""LambdaMART by LightGBM (extra `learn`): trains trees, which `ranking.trees` evaluates without it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.errors import MissingExtra
from sennit.ranking.stages import Floats
from sennit.ranking.trees import MAX_LEAVES, MAX_NUMBER, Tree, TreeSum

SEED: Final = 20_260_101
"""The same data give the same trees in every run."""

_DEFAULT_LEFT: Final = 2
_MISSING_IS_NAN: Final = 8
"""Bits of a node's `decision_type` in LightGBM's text format."""


@dataclass(frozen=True, slots=True)
class TrainingRows:
    """Candidates with their grades, query after query."""

    features: Floats
    grades: NDArray[np.int64]
    sizes: NDArray[np.int64]
    """The number of rows of each query."""
    base: Floats
    """The score that the trees start from, for each row."""
    weights: Floats | None = None
    """The weight of each query; None if all count the same."""


@dataclass(frozen=True, slots=True)
class TreeOptions:
    """How trees are grown. The defaults were chosen on the dev collections: docs/quality.md."""

    trees: int = 60
    leaves: int = 8
    learning_rate: float = 0.05
    min_rows: int = 50
    """The fewest rows of a leaf."""
    increasing: tuple[int, ...] = ()
    """Features with which the score never falls."""

    def __post_init__(self) -> None:
        if not 2 <= self.leaves <= MAX_LEAVES:
            raise ValueError(f"leaves must be from 2 to {MAX_LEAVES}, not {self.leaves!r}")


def train_trees(rows: TrainingRows, options: TreeOptions) -> TreeSum:
    """Train LambdaMART on the rows."""
    try:
        import lightgbm
    except ImportError as error:
        raise MissingExtra("Learning a ranking", "learn") from error
    count = rows.features.shape[1]
    dataset = lightgbm.Dataset(
        rows.features,
        rows.grades,
        group=rows.sizes,
        init_score=rows.base,
        weight=None if rows.weights is None else np.repeat(rows.weights, rows.sizes),
        free_raw_data=True,
        params={"verbose": -1, "min_data_in_bin": 3},
    )
    booster = lightgbm.train(
        _parameters(options, count, int(rows.grades.max(initial=1))), dataset, options.trees
    )
    return TreeSum(read_lightgbm(booster.model_to_string()), count)


def _parameters(options: TreeOptions, features: int, highest_grade: int) -> dict[str, Any]:
    increasing = set(options.increasing)
    return {
        "objective": "lambdarank",
        # Gains grow with the grade and not with its power of two, as nDCG in the reports.
        "label_gain": list(range(highest_grade + 1)),
        "lambdarank_truncation_level": 15,
        "learning_rate": options.learning_rate,
        "num_leaves": options.leaves,
        "min_data_in_leaf": options.min_rows,
        "min_sum_hessian_in_leaf": 1e-3,
        "lambda_l2": 10.0,
        "feature_fraction": 0.5,
        "bagging_fraction": 0.8,
        "bagging_freq": 1,
        "bagging_by_query": True,
        "monotone_constraints": [int(at in increasing) for at in range(features)],
        "seed": SEED,
        "deterministic": True,
        "force_row_wise": True,
        # More threads change the last bits, and the small data of a ranking gain little by them.
        "num_threads": 1,
        "verbose": -1,
    }


def read_lightgbm(text: str) -> list[Tree]:
    """Return the trees of LightGBM's text format. Raises ValueError for categorical or linear trees."""
    trees = []
    for block in text.split("\nTree=")[1:]:
        lines = block.split("\n\n", 1)[0].splitlines()[1:]
        trees.append(_read_tree(dict(line.split("=", 1) for line in lines if "=" in line)))
    return trees


def _read_tree(values: Mapping[str, str]) -> Tree:
    if values.get("num_cat", "0") != "0" or values.get("is_linear", "0") != "0":
        raise ValueError("only plain trees can be read, not categorical or linear ones")
    leaves = _floats(values["leaf_value"])
    if len(leaves) == 1:
        return Tree((), (), (), (), (), leaves, ())
    features, left, right, decisions = (
        [int(number) for number in values[name].split()]
        for name in ("split_feature", "left_child", "right_child", "decision_type")
    )
    # A node that only separates what is missing has an infinite threshold.
    thresholds = [min(max(number, -MAX_NUMBER), MAX_NUMBER) for number in _floats(values["threshold"])]
    counts = [int(number) for number in values["leaf_count"].split()]
    return Tree(
        features,
        thresholds,
        left,
        right,
        [
            # A feature that had no gap in the training counts as 0 where it is missing.
            bool(decision & _DEFAULT_LEFT) if decision & _MISSING_IS_NAN else threshold >= 0.0
            for decision, threshold in zip(decisions, thresholds, strict=True)
        ],
        leaves,
        _means(left, right, leaves, counts),
    )


def _means(
    left: Sequence[int], right: Sequence[int], leaves: Sequence[float], counts: Sequence[int]
) -> list[float]:
    """Return the mean of each node over the rows of the training."""
    total, weight = [0.0] * len(left), [0] * len(left)
    # Children come after their parents.
    for at in reversed(range(len(left))):
        for child in (left[at], right[at]):
            rows = counts[~child] if child < 0 else weight[child]
            total[at] += rows * (leaves[~child] if child < 0 else total[child] / max(weight[child], 1))
            weight[at] += rows
    return [value / max(rows, 1) for value, rows in zip(total, weight, strict=True)]


def _floats(text: str) -> list[float]:
    return [float(number) for number in text.split()]
