"""Checks of what callers pass to the engine; an error says what was passed and what to pass instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from sennit.errors import InvalidInput, NotFound, did_you_mean
from sennit.filters import Equal
from sennit.recipes import Recipe
from sennit.records import MAX_ID_BYTES, is_unicode
from sennit.stores.embedded.snapshot import Snapshot

T = TypeVar("T")


def check_list(values: Iterable[T], expected: str) -> list[T]:
    """Return several values as a list; a single string is an error."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidInput(f"{expected}, not {type(values).__name__}; put a single one into a list: [value]")
    return list(values)


def check_instances(kind: type[T], values: Iterable[T], method: str) -> list[T]:
    """Return several values of one of sennit's types as a list."""
    batch = check_list(values, f"{method} takes a list of sennit.{kind.__name__} values")
    for value in batch:
        if not isinstance(value, kind):
            raise InvalidInput(f"{method} takes sennit.{kind.__name__} values, not {type(value).__name__}")
    return batch


def check_id(value: object) -> str:
    """Return a valid id."""
    if not isinstance(value, str):
        raise InvalidInput(f"An id must be a string, not {type(value).__name__}")
    if not is_unicode(value):
        raise InvalidInput("The id has a lone surrogate; it is not valid Unicode")
    return value


def check_included(recipe: Recipe, include: Sequence[str], snapshot: Snapshot) -> None:
    """Refuse a collection that the recipe does not know and that holds nothing the caller may see."""
    known = (*recipe.collections, *recipe.on_request)
    for name in include:
        if name not in known and not snapshot.count(Equal("collection", name)):
            raise NotFound(
                f"There is no collection {name!r} to include.{did_you_mean(name, known)} Known collections: "
                f"{', '.join(known)}"
            )


def check_collections(names: Sequence[str], recipes: Mapping[str, Recipe], snapshot: Snapshot) -> None:
    """Refuse the misspelt name of a collection: one that holds nothing the caller may see, and is near another name."""
    if not names:
        return
    held = snapshot.text_counts("collection")
    known = {
        *held,
        *(name for recipe in recipes.values() for name in (*recipe.collections, *recipe.on_request)),
    }
    for name in names:
        nearest = "" if name in known else did_you_mean(name, sorted(known))
        if nearest:
            raise NotFound(f"There is no collection {name!r}.{nearest}")


def check_count(name: str, value: int | None, default: int, maximum: int) -> int:
    """Return a whole number from 1 to `maximum`, or the default for None."""
    if value is None:
        return default
    if type(value) is not int or not 1 <= value <= maximum:
        raise InvalidInput(f"{name} must be a whole number from 1 to {maximum:,}, not {value!r}")
    return value


def check_episode(name: str) -> str:
    """Return a valid name of an episode."""
    if not isinstance(name, str) or not name or not is_unicode(name) or len(name.encode()) > MAX_ID_BYTES:
        raise InvalidInput(
            f"The name of an episode must be a string of 1 to {MAX_ID_BYTES} bytes, not {name!r:.80}"
        )
    return name
