"""The expression: conditions on fields, joined by and, or, not. Frozen, hashable, checked when made."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from datetime import date
from typing import Final, TypeAlias, cast

from sennit.errors import FilterError
from sennit.filters.text import MAX_DEPTH, Scalar, field_text, named, string_text
from sennit.records import as_utc

MAX_NODES: Final = 10_000
"""Conditions and listed values in one filter; each costs every source a look-up."""

END_OF_TIME: Final = 253_402_300_800.0
"""The end of 9999-12-31, a bound that no datetime can express."""

_INT64: Final = 1 << 63


class _Node:
    __slots__ = ()
    depth: int = 0
    size: int = 1

    def __and__(self, other: Filter) -> Filter:
        return joined(And, (cast("Filter", self), other))

    def __or__(self, other: Filter) -> Filter:
        return joined(Or, (cast("Filter", self), other))

    def __invert__(self) -> Filter:
        return Not(cast("Filter", self))

    def __bool__(self) -> bool:
        # `a and b`, or `1 < field("x") < 5`, would silently drop one half.
        raise FilterError(
            "A filter is neither true nor false; combine filters with & | ~ and test with `is None`"
        )

    def __str__(self) -> str:
        return _text(cast("Filter", self))


@dataclasses.dataclass(frozen=True, slots=True)
class Equal(_Node):
    """Some value of the field is this one."""

    field: str
    value: Scalar
    bools: int = dataclasses.field(init=False, repr=False)
    """Tells True from 1, which Python holds to be equal."""

    def __post_init__(self) -> None:
        name = named(self.field)
        value = checked(name, self.value)
        _settle(self, name, value, int(isinstance(value, bool)))


@dataclasses.dataclass(frozen=True, slots=True)
class In(_Node):
    """Some value of the field is one of these, which are kept sorted, each once."""

    field: str
    values: tuple[Scalar, ...]
    bools: int = dataclasses.field(init=False, repr=False)
    size: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        name = named(self.field)
        ranked = sorted({typed(checked(name, value)) for value in self.values})
        bools = sum(rank == 0 for rank, _ in ranked)
        _settle(self, name, tuple(value for _, value in ranked), bools, allowed(len(ranked) or 1))


@dataclasses.dataclass(frozen=True, slots=True)
class Range(_Node):
    """Some value of the field lies between the bounds; None is no bound."""

    field: str
    low: str | int | float | None = None
    high: str | int | float | None = None
    include_low: bool = True
    include_high: bool = True

    def __post_init__(self) -> None:
        name = named(self.field)
        low, high = (None if bound is None else checked(name, bound) for bound in (self.low, self.high))
        if {rank(bound) for bound in (low, high) if bound is not None} not in ({1}, {2}):
            raise FilterError(
                f"A range of {name!r} needs a bound, or two of one type, text or number; "
                "for true and false use equality, for any value at all use exists"
            )
        # An absent bound has one spelling, so that equal ranges are equal.
        _settle(self, name, low, high, low is None or self.include_low, high is None or self.include_high)


@dataclasses.dataclass(frozen=True, slots=True)
class Exists(_Node):
    """The field has a value; an object has none of its own, only its keys have."""

    field: str

    def __post_init__(self) -> None:
        _settle(self, named(self.field))


@dataclasses.dataclass(frozen=True, slots=True)
class _Joined(_Node):
    parts: tuple[Filter, ...]
    depth: int = dataclasses.field(init=False, repr=False, compare=False)
    size: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        nested = (part.parts if type(part) is type(self) else (part,) for part in self.parts)
        parts = tuple(part for group in nested for part in group)
        _settle(self, parts, *_weight(parts))


class And(_Joined):
    """Every part holds; without parts, always. An And within an And is taken apart."""

    __slots__ = ()


class Or(_Joined):
    """Some part holds; without parts, never. An Or within an Or is taken apart."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Not(_Node):
    """The part does not hold."""

    part: Filter
    depth: int = dataclasses.field(init=False, repr=False, compare=False)
    size: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _settle(self, self.part, *_weight((self.part,)))


Filter: TypeAlias = Equal | In | Range | Exists | And | Or | Not


def _settle(node: Filter | _Joined, *values: object) -> None:
    for slot, value in zip(node.__dataclass_fields__, values, strict=True):
        object.__setattr__(node, slot, value)


def _weight(parts: Sequence[object]) -> tuple[int, int]:
    """Depth and size above these parts; every filter there is can be walked by recursion."""
    depth = size = 1
    for part in parts:
        if not isinstance(part, _Node):
            raise FilterError(f"Expected a filter, not {type(part).__name__}; see parse_filter")
        depth, size = max(depth, part.depth + 1), size + part.size
    if depth > MAX_DEPTH:
        raise FilterError(f"The filter is nested deeper than {MAX_DEPTH} levels; write it flatter")
    return depth, allowed(size)


def allowed(size: int) -> int:
    if size > MAX_NODES:
        raise FilterError(
            f"The filter has more than {MAX_NODES:,} conditions and values; mark the records with a metadata field"
        )
    return size


def joined(kind: type[And] | type[Or], parts: Sequence[Filter]) -> Filter:
    if len(parts) == 1:
        return parts[0]
    whole = kind(tuple(parts))
    return whole.parts[0] if len(whole.parts) == 1 else whole


EVERYTHING: Final = And(())
NOTHING: Final = Or(())


def rank(value: Scalar) -> int:
    return 0 if isinstance(value, bool) else 2 if isinstance(value, str) else 1


def typed(value: Scalar) -> tuple[int, Scalar]:
    """What tells values apart: True and 1 are equal to Python, and not here."""
    return rank(value), value


def number(value: float) -> int | float:
    """One spelling per number: an int of 64 bits where it is one, otherwise a float."""
    if isinstance(value, int):
        return int(value) if -_INT64 <= value < _INT64 else float(value)
    return int(value) if value.is_integer() and -_INT64 <= value < _INT64 else float(value)


def checked(name: str, value: object) -> Scalar:
    """A value that may stand in a condition, in its one spelling."""
    try:
        if isinstance(value, (int, float)) and name == "timestamp":
            return seconds(value)
        if isinstance(value, str) and name != "timestamp":
            value.encode()
            return value
        if isinstance(value, bool):
            return value
        if isinstance(value, (int, float)) and math.isfinite(value):
            return number(value)
    except UnicodeEncodeError as error:
        raise FilterError(f"The value for {name!r} has a lone surrogate, which is not Unicode") from error
    except OverflowError as error:
        raise FilterError(f"The number for {name!r} is too large") from error
    unusable = "NaN or infinity" if isinstance(value, float) else type(value).__name__
    raise FilterError(
        f"{name!r} cannot be compared with {'null' if value is None else unusable}; a value is text, a number, "
        "true or false. Give several to `in`, a date to field('timestamp'), and ask with `exists` if there is any"
    )


def seconds(value: object) -> float:
    if isinstance(value, (int, float)) and value == END_OF_TIME:
        return END_OF_TIME
    cause: ValueError | None = None
    try:
        # Nothing else gets there: the error would spell out a stranger's object, however deep.
        if isinstance(value, (str, int, float, date)):
            return as_utc(value).timestamp()
    except ValueError as error:
        cause = error
    given = ascii(value)[:60] if isinstance(value, (str, float)) else f"this {type(value).__name__}"
    raise FilterError(
        f"timestamp cannot be compared with {given}; give a date or moment such as 2026-03-01 or "
        "2026-03-01T09:30:00Z, seconds since 1970, 'today', 'yesterday' or 'last 7 days' (minutes, hours, weeks)"
    ) from cause


def _text(node: Filter) -> str:
    match node:
        case And(parts) | Or(parts):
            word, name = ("and", "all") if isinstance(node, And) else ("or", "any")
            if len(parts) < 2:
                return f"{name}({', '.join(map(_text, parts))})"
            return f" {word} ".join(map(_operand, parts))
        case Not(part):
            return f"not {_operand(part)}"
        case Exists(name):
            return f"exists {field_text(name)}"
        case Equal(name, value):
            return f"{field_text(name)} = {_value_text(name, value)}"
        case In(name, values):
            return f"{field_text(name)} in ({', '.join(_value_text(name, value) for value in values)})"
        case Range(name, low, high, True, True) if low is not None and high is not None:
            return f"{field_text(name)} between {_value_text(name, low)} and {_value_text(name, high)}"
        case Range(name, low, high):
            above = [] if low is None else [f"{'>=' if node.include_low else '>'} {_value_text(name, low)}"]
            below = (
                [] if high is None else [f"{'<=' if node.include_high else '<'} {_value_text(name, high)}"]
            )
            return f"{field_text(name)} {' and '.join(above + below)}"


def _operand(node: Filter) -> str:
    return f"({_text(node)})" if isinstance(node, (And, Or)) and len(node.parts) > 1 else _text(node)


def _value_text(name: str, value: Scalar) -> str:
    if isinstance(value, str):
        return string_text(value)
    if name == "timestamp" and value != END_OF_TIME:
        return as_utc(value).isoformat().replace("+00:00", "Z")
    return repr(value).lower()


def fields_of(wanted: Filter) -> frozenset[str]:
    """The canonical names of the fields a filter asks about."""
    match wanted:
        case And(parts) | Or(parts):
            return frozenset().union(*map(fields_of, parts))
        case Not(part):
            return fields_of(part)
        case _:
            return frozenset((wanted.field,))
