"""What callers give, checked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from sennit.errors import InvalidInput
from sennit.records import is_unicode

T = TypeVar("T")


def listed(values: Iterable[T], wanted: str) -> list[T]:
    """Several values as a list; a single text is an error that says what to do."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise InvalidInput(f"{wanted}, not {type(values).__name__}; put a single one into a list: [value]")
    return list(values)


def all_of(kind: type[T], values: Iterable[T], who: str) -> list[T]:
    """Several values of one of sennit's types."""
    batch = listed(values, f"{who} takes a list of sennit.{kind.__name__} values")
    for value in batch:
        if not isinstance(value, kind):
            raise InvalidInput(f"{who} takes sennit.{kind.__name__} values, not {type(value).__name__}")
    return batch


def checked_id(value: object) -> str:
    """An id that can be one."""
    if not isinstance(value, str):
        raise InvalidInput(f"An id must be a string, not {type(value).__name__}")
    if not is_unicode(value):
        raise InvalidInput("The id has a lone surrogate; it is not valid Unicode")
    return value
