"""The nodes of a filter: conditions on fields, combined by and, or, not. Frozen, hashable, checked on construction."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from datetime import date
from typing import Final, TypeAlias, cast

from sennit.errors import FilterError
from sennit.filters.fields import Scalar, canonicalise, format_field, format_string
from sennit.filters.patterns import normalise_pattern
from sennit.filters.text_parser import MAX_DEPTH
from sennit.records import as_utc

MAX_NODES: Final = 10_000
"""Conditions and listed values in one filter; each costs every source a lookup."""

END_OF_TIME: Final = 253_402_300_800.0
"""The end of 9999-12-31 in seconds since 1970, which no datetime can express."""

NUMBER_FIELDS: Final = ("timestamp", "position")
"""Built-in fields that never hold text."""

_INT64: Final = 1 << 63


class _Node:
    __slots__ = ()
    depth: int = 0
    size: int = 1

    def __and__(self, other: Filter) -> Filter:
        return join(And, (cast("Filter", self), other))

    def __or__(self, other: Filter) -> Filter:
        return join(Or, (cast("Filter", self), other))

    def __invert__(self) -> Filter:
        return Not(cast("Filter", self))

    def __bool__(self) -> bool:
        # Otherwise `a and b` and `1 < field("x") < 5` would silently drop one half.
        raise FilterError(
            "A filter is neither true nor false; combine filters with & | ~ and test with `is None`"
        )

    def __str__(self) -> str:
        return _format(cast("Filter", self))


@dataclasses.dataclass(frozen=True, slots=True)
class Equal(_Node):
    """The field has this value."""

    field: str
    value: Scalar
    bool_count: int = dataclasses.field(init=False, repr=False)
    """Makes True and 1 unequal here, which Python considers equal."""

    def __post_init__(self) -> None:
        name = canonicalise(self.field)
        value = check_value(name, self.value)
        _set_attributes(self, name, value, int(isinstance(value, bool)))


@dataclasses.dataclass(frozen=True, slots=True)
class In(_Node):
    """The field has one of these values. They are sorted and distinct."""

    field: str
    values: tuple[Scalar, ...]
    bool_count: int = dataclasses.field(init=False, repr=False)
    size: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        name = canonicalise(self.field)
        ordered = sorted({typed(check_value(name, value)) for value in self.values})
        bool_count = sum(rank == 0 for rank, _ in ordered)
        values = tuple(value for _, value in ordered)
        _set_attributes(self, name, values, bool_count, check_size(len(values) or 1))


@dataclasses.dataclass(frozen=True, slots=True)
class Range(_Node):
    """The field has a value between the bounds; None is no bound."""

    field: str
    low: str | int | float | None = None
    high: str | int | float | None = None
    include_low: bool = True
    include_high: bool = True

    def __post_init__(self) -> None:
        name = canonicalise(self.field)
        low, high = (None if bound is None else check_value(name, bound) for bound in (self.low, self.high))
        if {type_rank(bound) for bound in (low, high) if bound is not None} not in ({1}, {2}):
            raise FilterError(
                f"A range of {name!r} needs a bound, or two of one type, text or number; "
                "for true and false use equality, for any value at all use exists"
            )
        # A missing bound always counts as included, so that equal ranges are equal.
        include_low, include_high = low is None or self.include_low, high is None or self.include_high
        _set_attributes(self, name, low, high, include_low, include_high)


@dataclasses.dataclass(frozen=True, slots=True)
class Like(_Node):
    """The field has a text that fits a pattern as a whole: `*` is any characters, `?` is one, `\\` escapes."""

    field: str
    pattern: str
    ignore_case: bool = False

    def __post_init__(self) -> None:
        name = canonicalise(self.field)
        if name in NUMBER_FIELDS:
            raise FilterError(f"{name!r} holds numbers, not text; compare it with = < > or between")
        if not isinstance(self.pattern, str):
            raise FilterError(f"A pattern for {name!r} must be text, not {type(self.pattern).__name__}")
        check_value(name, self.pattern)
        pattern = normalise_pattern(name, self.pattern, ignore_case=self.ignore_case)
        _set_attributes(self, name, pattern, bool(self.ignore_case))


@dataclasses.dataclass(frozen=True, slots=True)
class Exists(_Node):
    """The field has a value. An object is no value; only the keys in it have values."""

    field: str

    def __post_init__(self) -> None:
        _set_attributes(self, canonicalise(self.field))


@dataclasses.dataclass(frozen=True, slots=True)
class _Combination(_Node):
    parts: tuple[Filter, ...]
    depth: int = dataclasses.field(init=False, repr=False, compare=False)
    size: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        nested = (part.parts if type(part) is type(self) else (part,) for part in self.parts)
        parts = tuple(part for group in nested for part in group)
        _set_attributes(self, parts, *_depth_and_size(parts))


class And(_Combination):
    """Every part holds. Without parts, it always holds. A nested And is flattened."""

    __slots__ = ()


class Or(_Combination):
    """Some part holds. Without parts, it never holds. A nested Or is flattened."""

    __slots__ = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Not(_Node):
    """The part does not hold."""

    part: Filter
    depth: int = dataclasses.field(init=False, repr=False, compare=False)
    size: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _set_attributes(self, self.part, *_depth_and_size((self.part,)))


Condition: TypeAlias = Equal | In | Range | Like | Exists
Filter: TypeAlias = Condition | And | Or | Not


def _set_attributes(node: Filter | _Combination, *values: object) -> None:
    for slot, value in zip(node.__dataclass_fields__, values, strict=True):
        object.__setattr__(node, slot, value)


def _depth_and_size(parts: Sequence[object]) -> tuple[int, int]:
    """Return the depth and size of a node with these parts. The limit on depth keeps recursion safe."""
    depth = size = 1
    for part in parts:
        if not isinstance(part, _Node):
            raise FilterError(f"Expected a filter, not {type(part).__name__}; see parse_filter")
        depth, size = max(depth, part.depth + 1), size + part.size
    if depth > MAX_DEPTH:
        raise FilterError(f"The filter is nested deeper than {MAX_DEPTH} levels; write it flatter")
    return depth, check_size(size)


def check_size(size: int) -> int:
    """Return the size, or raise FilterError if it is too large."""
    if size > MAX_NODES:
        raise FilterError(
            f"The filter has more than {MAX_NODES:,} conditions and values; mark the records with a metadata field"
        )
    return size


def join(kind: type[And] | type[Or], parts: Sequence[Filter]) -> Filter:
    """Combine filters; a single part is returned as it is."""
    if len(parts) == 1:
        return parts[0]
    combined = kind(tuple(parts))
    return combined.parts[0] if len(combined.parts) == 1 else combined


EVERYTHING: Final = And(())
NOTHING: Final = Or(())


def type_rank(value: Scalar) -> int:
    """Return 0 for a bool, 1 for a number, 2 for text."""
    return 0 if isinstance(value, bool) else 2 if isinstance(value, str) else 1


def typed(value: Scalar) -> tuple[int, Scalar]:
    """Return a key for comparisons, in which True and 1 differ."""
    return type_rank(value), value


def normalise_number(value: float) -> int | float:
    """Return an int if the number is a 64-bit integer, otherwise a float."""
    if isinstance(value, int):
        return int(value) if -_INT64 <= value < _INT64 else float(value)
    return int(value) if value.is_integer() and -_INT64 <= value < _INT64 else float(value)


def check_value(name: str, value: object) -> Scalar:
    """Return the normalised value of a condition, or raise FilterError if it is not valid for the field."""
    try:
        if isinstance(value, (int, float)) and name == "timestamp":
            return to_seconds(value)
        if isinstance(value, str) and name != "timestamp":
            value.encode()
            return value
        if isinstance(value, bool):
            return value
        if isinstance(value, (int, float)) and math.isfinite(value):
            return normalise_number(value)
    except UnicodeEncodeError as error:
        raise FilterError(
            f"The value for {name!r} has a lone surrogate, which is not valid Unicode"
        ) from error
    except OverflowError as error:
        raise FilterError(f"The number for {name!r} is too large") from error
    invalid = "NaN or infinity" if isinstance(value, float) else type(value).__name__
    raise FilterError(
        f"{name!r} cannot be compared with {'null' if value is None else invalid}; a value is text, a number, "
        "true or false. Use `in` for several values, field('timestamp') for a date, `exists` to test for any value"
    )


def to_seconds(value: object) -> float:
    """Return a time as seconds since 1970, or raise FilterError."""
    if isinstance(value, (int, float)) and value == END_OF_TIME:
        return END_OF_TIME
    cause: ValueError | None = None
    try:
        # Other types are not converted: the error would print the whole object, however deep.
        if isinstance(value, (str, int, float, date)):
            return as_utc(value).timestamp()
    except ValueError as error:
        cause = error
    given = ascii(value)[:60] if isinstance(value, (str, float)) else f"this {type(value).__name__}"
    raise FilterError(
        f"timestamp cannot be compared with {given}; give a date or time such as 2026-03-01 or "
        "2026-03-01T09:30:00Z, seconds since 1970, 'today', 'yesterday' or 'last 7 days' (minutes, hours, weeks)"
    ) from cause


def _format(node: Filter) -> str:
    match node:
        case And(parts) | Or(parts):
            word, name = ("and", "all") if isinstance(node, And) else ("or", "any")
            if len(parts) < 2:
                return f"{name}({', '.join(map(_format, parts))})"
            return f" {word} ".join(map(_format_operand, parts))
        case Not(part):
            return f"not {_format_operand(part)}"
        case Exists(name):
            return f"exists {format_field(name)}"
        case Equal(name, value):
            return f"{format_field(name)} = {_format_value(name, value)}"
        case Like(name, pattern, ignore_case):
            return f"{format_field(name)} {'ilike' if ignore_case else 'like'} {format_string(pattern)}"
        case In(name, values):
            return f"{format_field(name)} in ({', '.join(_format_value(name, value) for value in values)})"
        case Range(name, low, high, True, True) if low is not None and high is not None:
            return f"{format_field(name)} between {_format_value(name, low)} and {_format_value(name, high)}"
        case Range(name, low, high):
            above = [] if low is None else [f"{'>=' if node.include_low else '>'} {_format_value(name, low)}"]
            below = (
                [] if high is None else [f"{'<=' if node.include_high else '<'} {_format_value(name, high)}"]
            )
            return f"{format_field(name)} {' and '.join(above + below)}"


def _format_operand(node: Filter) -> str:
    return f"({_format(node)})" if isinstance(node, (And, Or)) and len(node.parts) > 1 else _format(node)


def _format_value(name: str, value: Scalar) -> str:
    if isinstance(value, str):
        return format_string(value)
    if name == "timestamp" and value != END_OF_TIME:
        return as_utc(value).isoformat().replace("+00:00", "Z")
    return repr(value).lower()


def fields_of(expression: Filter) -> frozenset[str]:
    """Return the canonical names of the fields in a filter."""
    match expression:
        case And(parts) | Or(parts):
            return frozenset().union(*map(fields_of, parts))
        case Not(part):
            return fields_of(part)
        case _:
            return frozenset((expression.field,))


def compared_fields(expression: Filter) -> frozenset[str]:
    """Return the fields that a filter compares with a value. `exists` compares nothing: it asks for the field."""
    match expression:
        case And(parts) | Or(parts):
            return frozenset().union(*map(compared_fields, parts))
        case Not(part):
            return compared_fields(part)
        case Exists():
            return frozenset()
        case _:
            return frozenset((expression.field,))
