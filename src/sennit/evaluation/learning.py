"""Learned ranking: trains a ranker, and compares it with the recipe on queries that it was not trained on.

Folds are made of whole queries. Within the training part of each fold, inner folds choose the number of trees; the held-out
part is used for nothing but the comparison. What is not significantly better is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.errors import InvalidInput
from sennit.evaluation.lambdamart import SEED, TrainingRows, TreeOptions, train_trees
from sennit.evaluation.statistics import PairedTest, compare, holm
from sennit.ranking.features import BASE_FEATURE, FEATURE_NAMES, FEATURES_VERSION, NEUTRAL, OWN_SCALE
from sennit.ranking.ranker import Ranker, Training
from sennit.ranking.stages import Floats
from sennit.ranking.trees import TreeSum
from sennit.records import Json

METRIC: Final = "nDCG@10"
CUTOFF: Final = 10
FOLDS: Final = 5
INNER_FOLDS: Final = 3
TREE_COUNTS: Final = (20, 60, 120)
"""From which the inner folds choose."""

BASE_WEIGHT: Final = 10.0
"""What the recipe's score, from 0 to 1, counts for. With it, trees only correct the recipe where there is evidence."""

SIGNIFICANCE: Final = 0.05
MIN_QUERIES: Final = 20
"""Fewer queries with a relevant candidate cannot show a difference, and trees would learn them by heart."""

_DISCOUNTS: Final = 1.0 / np.log2(np.arange(2, CUTOFF + 2))

Step = Callable[[int, int], None]
"""Reports how many of how many steps are done."""


@dataclass(frozen=True, slots=True)
class FeatureSet:
    """The features that a ranker learns from."""

    names: tuple[str, ...]
    version: int = 0
    """Of `ranking.features`; 0 for features of other programs."""
    base: str = ""
    """The feature that the score starts from; empty to start from 0."""
    unused: frozenset[str] = frozenset()
    increasing: frozenset[str] = frozenset()
    """Features with which the score never falls."""


OWN_FEATURES: Final = FeatureSet(
    FEATURE_NAMES,
    FEATURES_VERSION,
    BASE_FEATURE,
    OWN_SCALE,
    frozenset(FEATURE_NAMES) - NEUTRAL,
)


@dataclass(frozen=True, slots=True)
class LabelledQuery:
    """A query with its candidates in the order of the recipe, and what each is worth."""

    group: str
    """Queries of a group are the same question: they are in one fold, and count as one in a test."""
    collection: str
    features: Floats
    gains: Floats
    """For each candidate its grade; for a click, what it counts by its position."""
    ideal: float
    """The best discounted sum of gains that a ranking could have."""
    by_clicks: bool = False

    @property
    def weight(self) -> float:
        """What the query counts in a mean: 1, or for clicks as much as they do."""
        return float(self.gains.sum()) if self.by_clicks else 1.0

    def value(self, order: NDArray[np.int64] | None = None) -> float:
        """Return the nDCG@10 of the candidates in an order; without one, in the recipe's."""
        gains = self.gains if order is None else self.gains[order]
        return discounted(gains) / self.ideal if self.ideal > 0 else 0.0


def discounted(gains: Floats) -> float:
    """Return the discounted sum of the first gains."""
    first = gains[:CUTOFF]
    return float((first * _DISCOUNTS[: len(first)]).sum())


@dataclass(frozen=True, slots=True)
class CollectionComparison:
    """The ranker against the recipe on the held-out queries of one collection."""

    collection: str
    recipe: float
    learned: float
    test: PairedTest
    p_corrected: float

    def to_dict(self) -> dict[str, Json]:
        return {
            "collection": self.collection,
            "queries": self.test.queries,
            "recipe": self.recipe,
            "learned": self.learned,
            "difference": self.test.difference,
            "interval": list(self.test.interval),
            "p": self.test.p_randomisation,
            "p_corrected": self.p_corrected,
            "better": self.test.better,
            "equal": self.test.equal,
            "worse": self.test.worse,
        }


@dataclass(frozen=True, slots=True)
class LearningReport:
    """What training found."""

    whole: CollectionComparison
    collections: tuple[CollectionComparison, ...]
    refusal: str
    """Why the ranker is refused; empty if it is not."""
    importance: dict[str, float] = field(default_factory=dict)
    """By feature, the mean size of its share, the largest first."""
    baseline: str = "recipe"

    def to_dict(self) -> dict[str, Json]:
        return {
            "metric": METRIC,
            "folds": FOLDS,
            "baseline": self.baseline,
            **{name: value for name, value in self.whole.to_dict().items() if name != "collection"},
            "collections": [one.to_dict() for one in self.collections],
            "importance": dict(self.importance),
        }


def learn_trees(
    queries: Sequence[LabelledQuery], features: FeatureSet, step: Step = lambda _done, _total: None
) -> tuple[TreeSum, LearningReport]:
    """Train trees on all queries; the report compares such trees with the recipe on held-out folds."""
    usable = len({query.group for query in queries if query.gains.any()})
    if usable < MIN_QUERIES:
        raise InvalidInput(
            f"{usable} different queries have a relevant candidate, and learning needs at least {MIN_QUERIES}; collect more "
            "feedback, or grade results with 'sennit judge'"
        )
    trainer = TreeTrainer(features)
    folds = assign_folds(queries, FOLDS)
    total = (FOLDS + 1) * (INNER_FOLDS + 1)
    done = 0

    def report() -> None:
        nonlocal done
        done += 1
        step(done, total)

    before = [0.0] * len(queries)
    after = [0.0] * len(queries)
    for fold in range(FOLDS):
        training = [query for query, own in zip(queries, folds, strict=True) if own != fold]
        trees = trainer.fit(training, report)
        rank = trainer.baseline(training)
        for at, query in enumerate(queries):
            if folds[at] == fold:
                before[at] = query.value(rank(query))
                after[at] = query.value(trainer.order(trees, query))
    final = trainer.fit(queries, report)
    found = compare_values(queries, before, after)
    importance = trainer.importance(final, queries)
    name = "recipe" if features.base else "the best single feature of the training folds"
    return final, LearningReport(found[0], tuple(found[1:]), _refusal(found), importance, name)


def make_ranker(
    name: str, trees: TreeSum, features: FeatureSet, training: Training, report: LearningReport
) -> Ranker:
    """Return trained trees as a ranker with its evidence."""
    return Ranker(
        name=name,
        features_version=features.version,
        feature_names=features.names,
        trees=trees,
        base_feature=features.base,
        base_weight=BASE_WEIGHT if features.base else 0.0,
        training=training,
        evidence=report.to_dict(),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def assign_folds(queries: Sequence[LabelledQuery], count: int) -> list[int]:
    """Return the fold of each query: the same for queries of a group, and evenly many of each collection in each."""
    groups = list(dict.fromkeys((query.collection, query.group) for query in queries))
    shuffled = np.random.default_rng(SEED).permutation(len(groups))
    # A stable sort by collection deals the groups of each collection in turn.
    ordered = sorted((groups[at] for at in shuffled), key=lambda group: group[0])
    # The same question in two collections is in one fold.
    fold_of: dict[str, int] = {}
    for at, (_, group) in enumerate(ordered):
        fold_of.setdefault(group, at % count)
    return [fold_of[query.group] for query in queries]


def order_by(trees: TreeSum, features: FeatureSet, query: LabelledQuery) -> NDArray[np.int64]:
    """Return the candidates of a query by trained trees, best first."""
    return (-(_start(features, query) + trees.scores(query.features))).argsort(kind="stable")


def _start(features: FeatureSet, query: LabelledQuery) -> Floats:
    if not features.base:
        return np.zeros(len(query.gains))
    return np.nan_to_num(BASE_WEIGHT * query.features[:, features.names.index(features.base)])


class TreeTrainer:
    """Trains trees over one set of features."""

    def __init__(self, features: FeatureSet) -> None:
        self._features = features
        self._unused = [at for at, name in enumerate(features.names) if name in features.unused]
        self._increasing = tuple(at for at, name in enumerate(features.names) if name in features.increasing)
        self._names = features.names

    def fit(self, queries: Sequence[LabelledQuery], report: Callable[[], None]) -> TreeSum:
        """Train trees, whose number inner folds choose."""
        folds = assign_folds(queries, INNER_FOLDS)
        values = np.zeros(len(TREE_COUNTS))
        for fold in range(INNER_FOLDS):
            trained = self.train(
                [query for query, own in zip(queries, folds, strict=True) if own != fold], max(TREE_COUNTS)
            )
            prefixes = [TreeSum(trained.trees[:count], len(self._names)) for count in TREE_COUNTS]
            for query, own in zip(queries, folds, strict=True):
                if own == fold:
                    values += [query.weight * query.value(self.order(trees, query)) for trees in prefixes]
            report()
        out = self.train(queries, TREE_COUNTS[int(values.argmax())])
        report()
        return out

    def order(self, trees: TreeSum, query: LabelledQuery) -> NDArray[np.int64]:
        """Return the candidates of a query by the trees, best first."""
        return order_by(trees, self._features, query)

    def baseline(
        self, queries: Sequence[LabelledQuery]
    ) -> Callable[[LabelledQuery], NDArray[np.int64] | None]:
        """Return what the trees are compared with: the recipe's order, or that by the best single feature."""
        if self._features.base:
            return lambda _query: None
        signs = [(at, sign) for at in range(len(self._names)) for sign in (1.0, -1.0)]

        def rank(choice: tuple[int, float], query: LabelledQuery) -> NDArray[np.int64]:
            return (-choice[1] * np.nan_to_num(query.features[:, choice[0]])).argsort(kind="stable")

        best = max(signs, key=lambda choice: sum(query.value(rank(choice, query)) for query in queries))
        return lambda query: rank(best, query)

    def importance(self, trees: TreeSum, queries: Sequence[LabelledQuery]) -> dict[str, float]:
        """Return the mean size of each feature's share in the trees; without those that they do not use."""
        shares, _ = trees.shares(np.concatenate([query.features[:CUTOFF] for query in queries]))
        means = np.abs(shares).mean(axis=0)
        return {
            self._names[at]: round(float(means[at]), 6) for at in (-means).argsort(kind="stable") if means[at]
        }

    def train(self, queries: Sequence[LabelledQuery], count: int) -> TreeSum:
        """Train a number of trees."""
        parts = [part for query in queries if query.gains.any() for part in _training_parts(query)]
        features = np.concatenate([query.features for query, _, _ in parts])
        features[:, self._unused] = 0.0
        rows = TrainingRows(
            features,
            np.concatenate([grades for _, grades, _ in parts]),
            np.array([len(query.gains) for query, _, _ in parts]),
            np.concatenate([_start(self._features, query) for query, _, _ in parts]),
            np.array([weight for _, _, weight in parts]),
        )
        # Few rows need small leaves, or there are no trees at all.
        fewest = min(50, max(5, len(features) // 100))
        return train_trees(rows, TreeOptions(count, min_rows=fewest, increasing=self._increasing))


def _training_parts(query: LabelledQuery) -> list[tuple[LabelledQuery, NDArray[np.int64], float]]:
    """Return what is trained on: grades and a weight; for clicks, each against what was not clicked."""
    if not query.by_clicks:
        return [(query, query.gains.round().astype(np.int64), 1.0)]
    out = []
    for at in query.gains.nonzero()[0].tolist():
        kept = (query.gains == 0) | (np.arange(len(query.gains)) == at)
        part = LabelledQuery(query.group, query.collection, query.features[kept], query.gains[kept], 1.0)
        out.append((part, (part.gains > 0).astype(np.int64), float(query.gains[at])))
    return out


def compare_values(
    queries: Sequence[LabelledQuery], before: Sequence[float], after: Sequence[float]
) -> list[CollectionComparison]:
    """Compare the values of two orders: on all queries together, and on each collection.

    Queries of a group count as one: the same question asked a hundred times is no evidence about a hundred questions.
    """
    names = sorted({query.collection for query in queries})
    chosen = [list(range(len(queries)))] + [
        [at for at, query in enumerate(queries) if query.collection == name] for name in names
    ]
    weights = np.array([query.weight for query in queries])
    tests, means = [], []
    for rows in chosen:
        _, group = np.unique([queries[at].group for at in rows], return_inverse=True)
        own = np.bincount(group, weights[rows])
        first, second = (
            np.bincount(group, weights[rows] * np.array(values)[rows]) / max(float(own.mean()), 1e-12)
            for values in (before, after)
        )
        tests.append(compare(first.tolist(), second.tolist()))
        means.append((float(first.mean()), float(second.mean())))
    corrected = [tests[0].p_randomisation, *holm([test.p_randomisation for test in tests[1:]])]
    return [
        CollectionComparison(name, *mean, test, p)
        for name, mean, test, p in zip(["all", *names], means, tests, corrected, strict=True)
    ]


def _refusal(found: Sequence[CollectionComparison]) -> str:
    whole = found[0].test
    figures = (
        f"{whole.difference:+.4f} {METRIC} on {whole.queries:,} held-out queries, 95 % interval "
        f"{whole.interval.low:+.4f} to {whole.interval.high:+.4f}, p = {whole.p_randomisation:.4f}"
    )
    if whole.difference <= 0 or whole.p_randomisation >= SIGNIFICANCE:
        return f"the ranker is not significantly better: {figures}"
    worse = [one for one in found[1:] if one.test.difference < 0 and one.p_corrected < SIGNIFICANCE]
    if worse:
        return (
            f"the ranker is better in all ({figures}), but significantly worse on {worse[0].collection}: "
            f"{worse[0].test.difference:+.4f}"
        )
    return ""
