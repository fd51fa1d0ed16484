"""Filters in the language of a server that cannot express every condition.

A condition that the server cannot express is left out so that the server returns more records, never fewer: it holds for
every record where it stands plainly, and for none where it is negated. The engine cuts what is too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias, TypeVar

from sennit.filters import And, Condition, Filter, Not, Or

T = TypeVar("T")

ANY_DEPTH: Final = 1_000_000

Translated: TypeAlias = T | bool
"""A filter of the server; True holds for every record, False for none."""


class FilterLanguage(Protocol[T]):
    """How a server writes filters."""

    def condition(self, condition: Condition, *, is_negated: bool) -> Translated[T] | None:
        """A condition, or None where the server cannot express it.

        Where it is not exact, it holds for more records, and with `is_negated` for fewer.
        """
        ...

    def all_of(self, parts: Sequence[T]) -> T:
        """Two or more parts, all of which hold."""
        ...

    def any_of(self, parts: Sequence[T]) -> T:
        """Two or more parts, one of which holds."""
        ...

    def none_of(self, part: T) -> T | None:
        """A part that does not hold, or None where the server has no negation."""
        ...


def translate(
    where: Filter, language: FilterLanguage[T], *, is_negated: bool = False, max_depth: int = ANY_DEPTH
) -> Translated[T]:
    """The narrowest filter that the server can express and that lets through every record that matches.

    With `is_negated`, it lets through no record that does not match. Groups that are nested more deeply than `max_depth`
    count as what the server cannot express.
    """
    if max_depth < 0:
        return not is_negated
    match where:
        case And(parts):
            return _combine(parts, language, is_negated, max_depth, neutral=True)
        case Or(parts):
            return _combine(parts, language, is_negated, max_depth, neutral=False)
        case Not(part):
            inner = translate(part, language, is_negated=not is_negated, max_depth=max_depth - 1)
            if isinstance(inner, bool):
                return not inner
            negated = language.none_of(inner)
            return (not is_negated) if negated is None else negated
        case _:
            found = language.condition(where, is_negated=is_negated)
            return (not is_negated) if found is None else found


def _combine(
    parts: Sequence[Filter],
    language: FilterLanguage[T],
    is_negated: bool,
    max_depth: int,
    *,
    neutral: bool,
) -> Translated[T]:
    """`neutral` is what a part without effect is: True among parts that must all hold, False among alternatives."""
    kept: list[T] = []
    for part in parts:
        found = translate(part, language, is_negated=is_negated, max_depth=max_depth - 1)
        if not isinstance(found, bool):
            kept.append(found)
        elif found is not neutral:
            return found
    if not kept:
        return neutral
    if len(kept) == 1:
        return kept[0]
    return language.all_of(kept) if neutral else language.any_of(kept)
