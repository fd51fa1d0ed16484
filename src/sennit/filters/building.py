"""The ways in: a dict, a text, and Python's operators on a field, with times in words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final, TypeAlias

from sennit.errors import FilterError
from sennit.filters.expression import (
    EVERYTHING,
    And,
    Equal,
    Exists,
    Filter,
    In,
    Not,
    Or,
    Range,
    allowed,
    checked,
    joined,
    seconds,
)
from sennit.filters.text import MAX_DEPTH, Scalar, named, parse_text
from sennit.records import as_utc

Value: TypeAlias = Scalar | date
"""What a caller may compare with; a date or datetime only with `timestamp`."""

_LAST: Final = re.compile(r"last ([0-9]{1,9}) (minute|hour|day|week)s?")
_NEGATED: Final = {"ne": "eq", "not_in": "in", "nin": "in"}
_KNOWN: Final = ("eq", "ne", "in", "not_in", "nin", "gt", "gte", "lt", "lte", "between", "exists")


def _span(name: str, value: object, now: datetime, *, bound: bool) -> tuple[Scalar, Scalar, bool]:
    """First and last value meant, and whether the last is within: the same value twice, but for times."""
    if name != "timestamp":
        same = checked(name, value)
        return same, same, True
    try:
        if isinstance(value, str):
            text = " ".join(value.lower().split())
            if last := _LAST.fullmatch(text):
                start = (now - timedelta(**{last[2] + "s": int(last[1])})).timestamp()
                return start, (start if bound else now.timestamp()), True
            value = _day_or_moment(value.strip())
            if text in ("today", "yesterday"):
                value = now.date() - timedelta(days=text == "yesterday")
    except OverflowError as error:
        raise FilterError(
            f"timestamp cannot be compared with {value!r}, which is before the year 1"
        ) from error
    start = seconds(value)
    whole_day = isinstance(value, date) and not isinstance(value, datetime)
    return (start, start + 86_400.0, False) if whole_day else (start, start, True)


def _day_or_moment(text: str) -> date | str:
    try:
        return date.fromisoformat(text)
    except ValueError:
        return text


class _Build:
    """What the three ways in have in common: conditions from what the caller wrote."""

    def __init__(self, now: datetime | None) -> None:
        self.now = datetime.now(UTC) if now is None else as_utc(now)
        self.objects = 0

    def condition(self, name: str, operator: str, value: object) -> Filter:
        name = named(name)
        if operator in _NEGATED:
            return Not(self.condition(name, _NEGATED[operator], value))
        if operator == "eq":
            low, high, closed = _span(name, value, self.now, bound=False)
            return Equal(name, low) if low == high else Range(name, low, high, include_high=closed)
        if operator == "in":
            return self._any_of(name, value)
        if operator == "exists" and isinstance(value, bool):
            return Exists(name) if value else Not(Exists(name))
        if operator == "between" and isinstance(value, (list, tuple)) and len(value) == 2:
            return self.interval(name, "gte", value[0], "lte", value[1])
        if operator in ("exists", "between"):
            wanted = "true or false" if operator == "exists" else "a list of the lowest and the highest value"
            raise FilterError(f"{operator!r} of {name!r} takes {wanted}")
        return self._bound(name, operator, value)

    def interval(self, name: str, low_test: str, low: object, high_test: str, high: object) -> Filter:
        """One value within both bounds."""
        above, below = self._bound(name, low_test, low), self._bound(name, high_test, high)
        return Range(name, above.low, below.high, above.include_low, below.include_high)

    def join(self, word: str, parts: Sequence[Filter], *, unwrap: bool = True) -> Filter:
        kind = And if word == "and" else Or
        return joined(kind, parts) if unwrap else kind(tuple(parts))

    def negate(self, part: Filter) -> Filter:
        return Not(part)

    def _bound(self, name: str, operator: str, value: object) -> Range:
        if operator not in ("gt", "gte", "lt", "lte"):
            raise FilterError(
                f"Unknown operator {operator[:60]!a} for {name!r}. Known: {', '.join(_KNOWN)}. "
                "For a key within an object write the path, as in 'source.system'"
            )
        first, last, closed = _span(name, value, self.now, bound=True)
        if operator in ("gt", "gte"):
            after = operator == "gt"
            return Range(name, low=last if after else first, include_low=not (after and closed))
        upto = operator == "lte"
        return Range(name, high=last if upto else first, include_high=upto and closed)

    def _any_of(self, name: str, values: object) -> Filter:
        if not isinstance(values, (list, tuple, set, frozenset)):
            raise FilterError(f"'in' of {name!r} takes a list of values, not {type(values).__name__}")
        allowed(len(values))
        spans = [_span(name, value, self.now, bound=False) for value in values]
        points = In(name, tuple(first for first, last, _ in spans if first == last))
        days = sorted({span for span in spans if span[0] != span[1]})
        ranges = [Range(name, first, last, include_high=closed) for first, last, closed in days]
        return joined(Or, [points, *ranges] if points.values or not ranges else ranges)

    def read(self, value: object, level: int = 0) -> Filter:
        """The dict form, or a filter within it."""
        if isinstance(value, Filter):
            return value
        if not isinstance(value, Mapping):
            raise FilterError(f"Expected an object with conditions, not {type(value).__name__}")
        self.objects = allowed(self.objects + 1)
        if level > MAX_DEPTH:
            raise FilterError(f"The filter is nested deeper than {MAX_DEPTH} levels; write it flatter")
        return joined(And, [self._entry(key, below, level) for key, below in value.items()])

    def _entry(self, key: object, value: object, level: int) -> Filter:
        if not isinstance(key, str):
            raise FilterError(f"A field name must be a string, not {type(key).__name__}")
        word = key.removeprefix("$")
        if word in ("and", "or"):
            if not isinstance(value, (list, tuple)):
                raise FilterError(
                    f"{key!r} takes a list of conditions; for a field of that name write 'metadata.{word}'"
                )
            return self.join(word, [self.read(part, level + 1) for part in value])
        if word == "not":
            return Not(self.read(value, level + 1))
        if word != key:
            known = "$and, $or, $not"
            raise FilterError(f"Unknown operator {key[:60]!a}. Known here: {known}; or write 'metadata.$...'")
        if not isinstance(value, Mapping):
            return self.condition(
                key, "in" if isinstance(value, (list, tuple, set, frozenset)) else "eq", value
            )
        if not value:
            raise FilterError(f"The condition for {key[:60]!a} is empty; give a value or an operator")
        tests = [(str(operator).removeprefix("$"), operand) for operator, operand in value.items()]
        return joined(And, [self.condition(key, operator, operand) for operator, operand in tests])


def parse_filter(value: Filter | Mapping[str, object] | str | None, *, now: datetime | None = None) -> Filter:
    """A filter from any of its forms; None is everything. Relative times count back from `now`."""
    if value is None:
        return EVERYTHING
    build = _Build(now)
    return parse_text(value, build) if isinstance(value, str) else build.read(value)


class Field:
    """A field to compare: `field("timestamp") >= "2026-01-01"`."""

    __slots__ = ("_build", "name")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str, now: datetime | None = None) -> None:
        self.name = named(name)
        self._build = _Build(now)

    def __eq__(self, value: object) -> Filter:  # type: ignore[override]
        return self._build.condition(self.name, "eq", value)

    def __ne__(self, value: object) -> Filter:  # type: ignore[override]
        return self._build.condition(self.name, "ne", value)

    def __lt__(self, value: Value) -> Filter:
        return self._build.condition(self.name, "lt", value)

    def __le__(self, value: Value) -> Filter:
        return self._build.condition(self.name, "lte", value)

    def __gt__(self, value: Value) -> Filter:
        return self._build.condition(self.name, "gt", value)

    def __ge__(self, value: Value) -> Filter:
        return self._build.condition(self.name, "gte", value)

    def is_in(self, values: Iterable[Value]) -> Filter:
        """Some value is one of these."""
        return self._build.condition(self.name, "in", values if isinstance(values, str) else tuple(values))

    def between(self, low: Value, high: Value) -> Filter:
        """Some value is within both bounds, which belong to it."""
        return self._build.interval(self.name, "gte", low, "lte", high)

    def exists(self) -> Filter:
        """There is a value."""
        return Exists(self.name)


def field(name: str, *, now: datetime | None = None) -> Field:
    """The field of that name; relative times count back from `now`."""
    return Field(name, now)
