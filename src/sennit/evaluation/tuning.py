"""Tuning: better numbers for a recipe, found by nested cross-validation on labelled queries.

Each fold of the queries is held out once. On the others, an inner cross-validation decides how much of the recipe may
change (nothing, weights, constants too, candidates too), and coordinate ascent finds the values. The held-out fold never
takes part in either, so its figures are those of queries that the tuning has not seen. A paired test over all held-out
queries confirms the gain, or the result is refused. What is confirmed is the procedure; the recipe that it returns was
fitted to all queries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.errors import InvalidInput
from sennit.evaluation.search_space import Dimension, Group, search_space
from sennit.evaluation.statistics import SEED, PairedTest, compare
from sennit.recipes import Recipe
from sennit.records import Json

Values = NDArray[np.float64]
Rows = NDArray[np.int64]

Measure = Callable[[Recipe], Values]
"""Returns the metric of each query, in a fixed order, if a recipe ranks its candidates."""

METRIC: Final = "nDCG@10"
DEPTH: Final = 10

OUTER_FOLDS: Final = 5
INNER_FOLDS: Final = 4
MAX_ROUNDS: Final = 3
"""Rounds of coordinate ascent. Nearly all gain comes in the first."""

MIN_QUERIES: Final = 20
"""With fewer, a fold has fewer than four queries, and no difference of a realistic size would be confirmed."""

ALPHA: Final = 0.05

SPACES: Final[tuple[tuple[Group, ...], ...]] = (
    (),
    ("weights",),
    ("weights", "constants"),
    ("weights", "constants", "candidates"),
)
"""What may change, from the least to the most."""


def ndcg(grades: Mapping[str, int], ranking: Sequence[str], depth: int = DEPTH) -> float:
    """Return nDCG as trec_eval computes it: the grades are the gains."""
    gain = sum(
        max(grades.get(name, 0), 0) / math.log2(rank + 1) for rank, name in enumerate(ranking[:depth], 1)
    )
    best = sorted((grade for grade in grades.values() if grade > 0), reverse=True)[:depth]
    ideal = sum(grade / math.log2(rank + 1) for rank, grade in enumerate(best, 1))
    return gain / ideal if ideal else 0.0


@dataclass(frozen=True, slots=True)
class Change:
    """A number that the tuning changed."""

    name: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class TuningReport:
    """What tuning found, and whether queries that it had not seen confirm it."""

    recipe: Recipe
    tuned: Recipe
    changes: tuple[Change, ...]
    before: float
    """The mean of the metric, by the recipe as it was."""
    after: float
    """The same on held-out queries, by the recipes that were tuned without them."""
    fitted: float
    """The same of the tuned recipe on the queries that it was tuned on, which is too good to be true."""
    test: PairedTest
    """Of the held-out queries against the recipe as it was."""
    folds: int
    alpha: float
    queries_from: str = "judgements"
    evidence: Mapping[str, Json] = field(default_factory=dict)
    """What else belongs to the result: date, model, collections and the version of the ranking contract."""

    @property
    def is_confirmed(self) -> bool:
        """Whether the held-out queries confirm that the tuned recipe is better."""
        return bool(self.changes) and self.test.difference > 0 and self.test.p_randomisation < self.alpha

    @property
    def verdict(self) -> str:
        """One sentence: what was confirmed, or why nothing was."""
        gain = f"{METRIC} {self.before:.3f} → {self.after:.3f} on {self.test.queries:,} held-out queries"
        if self.is_confirmed:
            return f"Confirmed: {gain} (p = {self.test.p_randomisation:.4f})."
        if not self.changes:
            return f"Refused: no change of {self.recipe.name!r} is better than the recipe as it is."
        if self.test.difference <= 0:
            return f"Refused: what the tuning found is not better on queries that it had not seen ({gain})."
        return (
            f"Refused: the gain may be chance ({gain}, p = {self.test.p_randomisation:.4f}, "
            f"which is not below {self.alpha:g})."
        )

    def to_evidence(self) -> dict[str, Json]:
        """Return the evidence as a flat table, for the settings file."""
        return {
            "base": self.recipe.name,
            "queries": self.test.queries,
            "queries_from": self.queries_from,
            "folds": self.folds,
            "metric": METRIC,
            "before": round(self.before, 4),
            "after": round(self.after, 4),
            "difference": round(self.test.difference, 4),
            "interval": [round(value, 4) for value in self.test.interval],
            "p": round(self.test.p_randomisation, 4),
            **self.evidence,
        }

    def to_dict(self) -> dict[str, Json]:
        return {
            "confirmed": self.is_confirmed,
            "verdict": self.verdict,
            "changes": [{"name": one.name, "before": one.before, "after": one.after} for one in self.changes],
            "fitted": self.fitted,
            "better": self.test.better,
            "equal": self.test.equal,
            "worse": self.test.worse,
            "evidence": self.to_evidence(),
        }


def tune(
    recipe: Recipe,
    measure: Measure,
    groups: Sequence[str] = (),
    *,
    folds: int = OUTER_FOLDS,
    alpha: float = ALPHA,
    progress: Callable[[int, int], None] = lambda _done, _total: None,
    queries_from: str = "judgements",
    evidence: Mapping[str, Json] | None = None,
) -> TuningReport:
    """Tune a recipe. `groups` names the group of each query (such as its collection): every fold has some of each."""
    baseline = measure(recipe)
    count = len(baseline)
    if count < MIN_QUERIES:
        raise InvalidInput(
            f"There are {count:,} queries, and tuning needs at least {MIN_QUERIES}: with fewer, no gain could be "
            "told from chance. Grade more with 'sennit judge'."
        )
    if not 2 <= folds <= count // 2:
        raise InvalidInput(f"folds must be from 2 to half the number of queries ({count // 2}), not {folds}")
    if not 0 < alpha < 1:
        raise InvalidInput(f"alpha must be above 0 and below 1, not {alpha}")
    tuner = Tuner(recipe, measure, baseline, progress, steps=(folds + 1) * STEPS_PER_FIT)
    if not tuner.finds_anything:
        raise InvalidInput(
            f"The recipe {recipe.name!r} finds no relevant record for any query, so there is nothing to improve. Does it "
            "search the collections that the judgements name?"
        )
    fold_of = assign_folds(list(groups) or [""] * count, folds)
    everything = np.arange(count)
    held_out = np.empty(count)
    for fold in range(folds):
        chosen = tuner.tune(everything[fold_of != fold])
        held_out[fold_of == fold] = tuner.values(chosen)[fold_of == fold]
    final = tuner.tune(everything)
    return TuningReport(
        recipe=recipe,
        tuned=tuner.build(final),
        changes=tuner.changes(final),
        before=float(baseline.mean()),
        after=float(held_out.mean()),
        fitted=float(tuner.values(final).mean()),
        test=compare(baseline.tolist(), held_out.tolist()),
        folds=folds,
        alpha=alpha,
        queries_from=queries_from,
        evidence=evidence or {},
    )


STEPS_PER_FIT: Final = (len(SPACES) - 1) * INNER_FOLDS + 1


def assign_folds(groups: Sequence[str], folds: int, seed: int = SEED) -> Rows:
    """Return the fold of each query, by chance; the queries of each group are spread over all folds."""
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(groups))
    by_group = sorted(shuffled.tolist(), key=lambda at: groups[at])
    out = np.empty(len(groups), np.int64)
    out[by_group] = np.arange(len(groups)) % folds
    return out


Config = tuple[float, ...]
"""A value for each dimension."""


class Tuner:
    """Finds values for some queries. The metric of each recipe is measured once, for all queries."""

    def __init__(
        self,
        recipe: Recipe,
        measure: Measure,
        baseline: Values,
        progress: Callable[[int, int], None],
        steps: int,
    ) -> None:
        self._recipe = recipe
        self._measure = measure
        self._progress = progress
        self._steps, self._done = steps, 0
        self._dimensions = search_space(recipe)
        self.own: Final[Config] = tuple(dimension.own for dimension in self._dimensions)
        self._known: dict[Config, Values] = {self.own: baseline}
        self._active = [
            at for at, dimension in enumerate(self._dimensions) if self._has_effect(at, dimension)
        ]

    def build(self, config: Config) -> Recipe:
        """Return the recipe with these values."""
        recipe = self._recipe
        for dimension, value in zip(self._dimensions, config, strict=True):
            if value != dimension.own:
                recipe = dimension.apply(recipe, value)
        return recipe

    def values(self, config: Config) -> Values:
        """Return the metric of each query with these values."""
        if config not in self._known:
            self._known[config] = self._measure(self.build(config))
        return self._known[config]

    @property
    def finds_anything(self) -> bool:
        """Whether the recipe, or any extreme of it, finds a relevant record."""
        return any(values.any() for values in self._known.values())

    def changes(self, config: Config) -> tuple[Change, ...]:
        """Return what these values change."""
        return tuple(
            Change(dimension.name, dimension.own, value)
            for dimension, value in zip(self._dimensions, config, strict=True)
            if value != dimension.own
        )

    def tune(self, rows: Rows) -> Config:
        """Return the values for some queries; an inner cross-validation decides how much may change."""
        folds = assign_folds([""] * len(rows), INNER_FOLDS)
        best_space, best_mean = SPACES[0], float(self.values(self.own)[rows].mean())
        for space in SPACES[1:]:
            total = 0.0
            for fold in range(INNER_FOLDS):
                config = self._fit(space, rows[folds != fold])
                total += float(self.values(config)[rows[folds == fold]].sum())
            if total / len(rows) > best_mean:
                best_space, best_mean = space, total / len(rows)
        return self._fit(best_space, rows)

    def _fit(self, space: Sequence[Group], rows: Rows) -> Config:
        """Coordinate ascent from the recipe's own values: the best value of each dimension in turn."""
        config, best = self.own, float(self.values(self.own)[rows].mean())
        for _ in range(MAX_ROUNDS):
            before = config
            for at in self._active:
                dimension = self._dimensions[at]
                if dimension.group not in space:
                    continue
                for value in (dimension.own, *dimension.values):
                    candidate = (*config[:at], value, *config[at + 1 :])
                    mean = float(self.values(candidate)[rows].mean())
                    if mean > best + EPSILON:
                        config, best = candidate, mean
            if config == before:
                break
        self._done += 1
        self._progress(min(self._done, self._steps), self._steps)
        return config

    def _has_effect(self, at: int, dimension: Dimension) -> bool:
        """Whether the lowest or the highest value changes anything; many stages concern records that are not there."""
        extremes = (min(dimension.values), max(dimension.values))
        return any(
            not np.array_equal(
                self.values((*self.own[:at], value, *self.own[at + 1 :])), self._known[self.own]
            )
            for value in extremes
        )


EPSILON: Final = 1e-9
"""A smaller gain is a rounding error."""
