"""Sums of regression trees, evaluated for all candidates at once with numpy.

The evaluation is QuickScorer (Lucchese et al., SIGIR 2015): each condition that a candidate fails rules out the leaves on
the left of its node, and the leaf that the candidate reaches is the first that is left. A leaf is a bit, so a tree has
at most sixteen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.results.trace import Floats

MAX_LEAVES: Final = 16
"""Leaves of a tree. With so few, a table of 65,536 entries finds the first leaf."""

MAX_TREES: Final = 500
"""At sixteen leaves each, the tables of so many have about 8 MB."""

MAX_NUMBER: Final = 1e100
"""Thresholds and values beyond it are refused, so that no sum can overflow."""


@dataclass(frozen=True, slots=True)
class Tree:
    """A binary tree of conditions `feature <= threshold`. Node 0 is the root; the lists have an entry for each node.

    A child below 0 is a leaf: -1 is the first, -2 the second. A tree without nodes is one leaf.
    """

    features: Sequence[int]
    """The number of the feature that a node compares."""
    thresholds: Sequence[float]
    left: Sequence[int]
    """Where a candidate goes for which the condition holds."""
    right: Sequence[int]
    missing_left: Sequence[bool]
    """Whether a candidate without the feature goes to the left."""
    leaves: Sequence[float]
    """What each leaf adds to the score."""
    means: Sequence[float]
    """What the candidates of the training that came to a node got on average."""

    def check(self, feature_count: int) -> None:
        """Raise ValueError unless it is a tree: bounded, finite, and every node but the root the child of one other."""
        nodes = len(self.features)
        if nodes + 1 > MAX_LEAVES:
            raise ValueError(f"it has {nodes + 1} leaves, and {MAX_LEAVES} are allowed")
        columns = (self.thresholds, self.left, self.right, self.missing_left, self.means)
        if any(len(column) != nodes for column in columns) or len(self.leaves) != nodes + 1:
            raise ValueError("its lists do not have one entry for each node, and leaves one more")
        if any(type(name) is not int or not 0 <= name < feature_count for name in self.features):
            raise ValueError(f"it names a feature that is not among the {feature_count}")
        for number in (*self.thresholds, *self.leaves, *self.means):
            if type(number) not in (int, float) or not abs(number) <= MAX_NUMBER:
                raise ValueError(f"{number!r} is not a finite number up to {MAX_NUMBER:g}")
        if any(type(goes) is not bool for goes in self.missing_left):
            raise ValueError("missing_left must have true or false for each node")
        seen = set()
        for at, children in enumerate(zip(self.left, self.right, strict=True)):
            for child in children:
                # Parents come before their children, so there is no way back.
                if type(child) is not int or not (at < child < nodes or -nodes - 1 <= child < 0):
                    raise ValueError(
                        f"node {at} has the child {child!r}, which is neither a later node nor a leaf"
                    )
                if child in seen:
                    raise ValueError(f"two nodes have the child {child}")
                seen.add(child)


class _Layout(NamedTuple):
    """A tree with its leaves in order from left to right."""

    order: list[int]
    """The number of each leaf in the tree's own lists."""
    left_masks: list[int]
    """By node: all bits but those of the leaves on its left."""
    paths: list[list[tuple[int, float]]]
    """By leaf: the features of the nodes that lead to it, each with what the step adds to the mean."""


class TreeSum:
    """The sum of trees over the same features."""

    def __init__(self, trees: Sequence[Tree], feature_count: int) -> None:
        """Raises ValueError for what is no tree."""
        if len(trees) > MAX_TREES:
            raise ValueError(f"there are {len(trees):,} trees, and {MAX_TREES} are allowed")
        for number, tree in enumerate(trees):
            try:
                tree.check(feature_count)
            except ValueError as error:
                raise ValueError(f"tree {number}: {error}") from error
        self.trees = tuple(trees)
        self.feature_count = feature_count
        self._layouts = [_lay_out(tree) for tree in trees]
        self._values = np.zeros(len(trees) * MAX_LEAVES)
        for at, (tree, layout) in enumerate(zip(trees, self._layouts, strict=True)):
            first = at * MAX_LEAVES
            self._values[first : first + len(layout.order)] = [tree.leaves[leaf] for leaf in layout.order]
        self._first_leaves = np.arange(len(trees), dtype=np.int32) * MAX_LEAVES
        self._tables = _build_tables(self.trees, self._layouts)

    def scores(self, features: Floats) -> Floats:
        """Return the sum for each row of features; nan is a missing feature."""
        if not self.trees:
            return np.zeros(len(features))
        # One after the other, so that the last bit depends neither on the number of rows nor on the machine.
        out: Floats = self._values[self._reached(features)].cumsum(axis=1)[:, -1]
        return out

    def shares(self, features: Floats) -> tuple[Floats, float]:
        """Return what each feature adds to each row's score, and what every row gets.

        This is the attribution along the path (Saabas, 2014): a node's feature gets the difference that the node makes to
        the mean. The shares of a row and what every row gets add up to its score.
        """
        path_features, path_steps = self._paths
        reached = self._reached(features)
        out = np.zeros((len(features), self.feature_count + 1))
        for row, leaves in zip(out, reached, strict=True):
            row += np.bincount(path_features[leaves].ravel(), path_steps[leaves].ravel(), minlength=len(row))
        start = sum(tree.means[0] if tree.means else tree.leaves[0] for tree in self.trees)
        return out[:, :-1], float(start)

    def _reached(self, features: Floats) -> NDArray[np.int32]:
        """Return the leaf of each tree that each row comes to, as an index into the values."""
        left = np.full((len(features), len(self.trees)), (1 << MAX_LEAVES) - 1, np.uint16)
        for feature, thresholds, table in self._tables:
            column = features[:, feature]
            passed = thresholds.searchsorted(column)
            # nan sorts behind every number; the last row of the table is for it.
            passed[np.isnan(column)] = len(thresholds) + 1
            left &= table[passed]
        return _first_bits()[left] + self._first_leaves

    @cached_property
    def _paths(self) -> tuple[NDArray[np.int64], Floats]:
        """[leaf, step]: the feature of each step to a leaf and what it adds. Unused steps have a feature of their own."""
        features = np.full((len(self._values), MAX_LEAVES), self.feature_count, np.int64)
        steps = np.zeros((len(self._values), MAX_LEAVES))
        for tree, layout in enumerate(self._layouts):
            for leaf, path in enumerate(layout.paths):
                for step, (feature, change) in enumerate(path):
                    features[tree * MAX_LEAVES + leaf, step] = feature
                    steps[tree * MAX_LEAVES + leaf, step] = change
        return features, steps


@lru_cache(maxsize=1)
def _first_bits() -> NDArray[np.int32]:
    """The number of the lowest bit that is set, for each number of sixteen bits."""
    out = np.zeros(1 << MAX_LEAVES, np.int32)
    for bit in reversed(range(MAX_LEAVES)):
        out[1 << bit :: 1 << bit] = np.where(
            (np.arange(1 << bit, 1 << MAX_LEAVES, 1 << bit) >> bit) & 1, bit, out[1 << bit :: 1 << bit]
        )
    return out


def _lay_out(tree: Tree) -> _Layout:
    """Walk a tree from left to right. `Tree.check` has found it sound, so the walk ends."""
    order: list[int] = []
    paths: list[list[tuple[int, float]]] = []
    left_masks = [0] * len(tree.features)

    def walk(child: int, path: list[tuple[int, float]]) -> None:
        if child < 0:
            order.append(-1 - child)
            paths.append(path)
            return
        first = len(order)
        for on_left, below in ((True, tree.left[child]), (False, tree.right[child])):
            reached = tree.leaves[-1 - below] if below < 0 else tree.means[below]
            walk(below, [*path, (tree.features[child], reached - tree.means[child])])
            if on_left:
                left_masks[child] = ((1 << MAX_LEAVES) - 1) & ~((1 << len(order)) - (1 << first))

    walk(0 if tree.features else -1, [])
    return _Layout(order, left_masks, paths)


def _build_tables(
    trees: Sequence[Tree], layouts: Sequence[_Layout]
) -> list[tuple[int, Floats, NDArray[np.uint16]]]:
    """Return for each feature its thresholds, and which leaves of each tree are left.

    The row n of a table is for a candidate that is above n thresholds, the last row for one without the feature.
    """
    nodes: dict[int, list[tuple[float, int, int, bool]]] = {}
    for at, (tree, layout) in enumerate(zip(trees, layouts, strict=True)):
        for node, feature in enumerate(tree.features):
            entry = (float(tree.thresholds[node]), at, layout.left_masks[node], tree.missing_left[node])
            nodes.setdefault(feature, []).append(entry)
    out = []
    for feature, entries in sorted(nodes.items()):
        thresholds = np.unique([threshold for threshold, *_ in entries])
        table = np.full((len(thresholds) + 2, len(trees)), (1 << MAX_LEAVES) - 1, np.uint16)
        for threshold, at, mask, missing_left in entries:
            above = int(thresholds.searchsorted(threshold)) + 1
            table[above:-1, at] &= np.uint16(mask)
            if not missing_left:
                table[-1, at] &= np.uint16(mask)
        out.append((feature, thresholds, table))
    return out
