"""What can be tuned of a recipe: each number of its fusion and stages, and the number of candidates of its sources.

The space follows from the recipe alone. A table of weights has one dimension for each source but one, because only their
proportions count. A number is multiplied by a few factors; a value that the recipe refuses is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Final, Literal

from sennit.ranking.fusion import check_fusion
from sennit.ranking.rank_fusion import OTHERS
from sennit.recipes import CandidateCount, Recipe

Group = Literal["weights", "constants", "candidates"]

WEIGHT_FACTORS: Final = (0.0, 0.125, 0.25, 0.5, 0.7, 1.4, 2.0, 4.0, 8.0)
CONSTANT_FACTORS: Final = (0.25, 0.5, 0.7, 1.4, 2.0, 4.0)
CANDIDATE_FACTORS: Final = (0.5, 2.0, 4.0)

NOT_TUNED: Final = frozenset({"first_rank", "all_equal"})
"""`first_rank` adds to `k`, and `all_equal` is a convention for lists without a scale."""

DIGITS: Final = 4
"""Significant digits of a tuned number. More would be noise."""


@dataclass(frozen=True, slots=True)
class Dimension:
    """One number of a recipe, and the values to try besides its own."""

    name: str
    group: Group
    own: float
    values: tuple[float, ...]
    apply: Callable[[Recipe, float], Recipe]
    """Return the recipe with another value."""


def search_space(recipe: Recipe) -> tuple[Dimension, ...]:
    """Return the dimensions of a recipe, weights first."""
    found = [*_fusion_weights(recipe), *_fusion_constants(recipe), *_stage_numbers(recipe)]
    if any(not config.uses_period for config in recipe.sources):
        found.append(Dimension("candidates", "candidates", 1.0, CANDIDATE_FACTORS, scale_candidates))
    return tuple(one for dimension in found if (one := _accepted(recipe, dimension)).values)


def scale_candidates(recipe: Recipe, factor: float) -> Recipe:
    """Return the recipe with more or fewer candidates of each source.

    A source that also looks into a period keeps its own: its list has more than it was asked for.
    """
    return replace(
        recipe,
        sources=tuple(
            config
            if config.uses_period
            else replace(
                config,
                candidates=CandidateCount(
                    config.candidates.times * factor,
                    math.ceil(config.candidates.plus * factor),
                    math.ceil(config.candidates.at_least * factor),
                ),
            )
            for config in recipe.sources
        ),
    )


def _accepted(recipe: Recipe, dimension: Dimension) -> Dimension:
    """Return the dimension without the values that the recipe refuses."""

    def is_valid(value: float) -> bool:
        try:
            dimension.apply(recipe, value)
        except ValueError:
            return False
        return True

    return replace(dimension, values=tuple(value for value in dimension.values if is_valid(value)))


def _multiples(own: float, factors: Sequence[float]) -> tuple[float, ...]:
    return tuple(value for factor in factors if (value := float(f"{own * factor:.{DIGITS}g}")) != own)


def _fusion_weights(recipe: Recipe) -> Iterator[Dimension]:
    """The weights of the lists, in proportion to the largest."""
    fusion: Any = recipe.fusion
    if "weights" not in {field.name for field in fields(fusion)} or len(recipe.sources) < 2:
        return
    names = [config.name for config in recipe.sources]
    given: Mapping[str, float] = fusion.weights or {}
    weights = {name: given.get(name, given.get(OTHERS, 1.0)) for name in names}
    try:
        # The lists of a recipe with one list per collection have other names than its sources.
        check_fusion(replace(fusion, weights=weights), [config.name for config in recipe.expand_sources()])
    except ValueError:
        return
    largest = max(weights, key=lambda name: weights[name])
    for name, own in weights.items():
        if name == largest:
            continue
        values = _multiples(own, WEIGHT_FACTORS) if own else _multiples(weights[largest], WEIGHT_FACTORS[1:6])
        yield Dimension(f"fusion.weights.{name}", "weights", own, values, partial(_set_weight, name=name))


def _fusion_constants(recipe: Recipe) -> Iterator[Dimension]:
    for name, own in _numbers(recipe.fusion):
        values = _multiples(own, CONSTANT_FACTORS)
        yield Dimension(f"fusion.{name}", "constants", own, values, partial(_set_fusion, name=name))


def _stage_numbers(recipe: Recipe) -> Iterator[Dimension]:
    for at, stage in enumerate(recipe.stages):
        if stage.runs == "after_cut":
            continue  # such a stage adds to the result and keeps its order
        for name, own in _numbers(stage):
            values = _multiples(own, CONSTANT_FACTORS)
            yield Dimension(
                f"{stage.name}.{name}", "constants", own, values, partial(_set_stage, at=at, name=name)
            )
        for name, key, own in _table_entries(stage):
            yield Dimension(
                f"{stage.name}.{name}.{key}",
                "weights",
                own,
                _multiples(own, WEIGHT_FACTORS),
                partial(_set_stage, at=at, name=name, key=key),
            )


def _numbers(value: Any) -> Iterator[tuple[str, float]]:
    """The fields of a fusion or stage that are numbers above 0. A whole number is a count, and is not tuned."""
    for field in fields(value):
        own = getattr(value, field.name)
        if isinstance(own, float) and own > 0 and field.name not in NOT_TUNED:
            yield field.name, own


def _table_entries(stage: Any) -> Iterator[tuple[str, str, float]]:
    """The entries of a stage's tables of numbers: the field, the key and the number."""
    for field in fields(stage):
        table = getattr(stage, field.name)
        if isinstance(table, Mapping):
            yield from (
                (field.name, key, own) for key, own in table.items() if isinstance(own, float) and own > 0
            )


def _set_weight(recipe: Recipe, value: float, *, name: str) -> Recipe:
    fusion: Any = recipe.fusion
    given: Mapping[str, float] = fusion.weights or {OTHERS: 1.0}
    return replace(recipe, fusion=replace(fusion, weights={**given, name: value}))


def _set_fusion(recipe: Recipe, value: float, *, name: str) -> Recipe:
    fusion: Any = recipe.fusion
    return replace(recipe, fusion=replace(fusion, **{name: value}))


def _set_stage(recipe: Recipe, value: float, *, at: int, name: str, key: str | None = None) -> Recipe:
    """Set a field of a stage, or one entry of a field that is a table."""
    stages: list[Any] = list(recipe.stages)
    new = value if key is None else {**getattr(stages[at], name), key: value}
    stages[at] = replace(stages[at], **{name: new})
    return replace(recipe, stages=tuple(stages))
