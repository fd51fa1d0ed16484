"""Builds filters from a dict, from a text, and from Python's operators on a field. Reads times in words."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
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
    Like,
    Not,
    Or,
    Range,
    check_size,
    check_value,
    join,
    to_seconds,
)
from sennit.filters.fields import Scalar, canonicalise
from sennit.filters.patterns import escape_pattern
from sennit.filters.text_parser import LIST_OPERATORS, MAX_DEPTH, TEXT_OPERATORS, parse_text
from sennit.records import as_utc

Value: TypeAlias = Scalar | date
"""The types that a field can be compared with; a date or datetime only with `timestamp`."""

_LAST_PERIOD: Final = re.compile(r"last ([0-9]{1,9}) (minute|hour|day|week)s?")
_NEGATED_OPERATORS: Final = {
    "ne": "eq",
    "nin": "in",
    **{f"not_{operator}": operator for operator in ("has", *LIST_OPERATORS, *TEXT_OPERATORS)},
}
_OPERATORS: Final = (
    *("eq", "ne", "in", "not_in", "nin", "gt", "gte", "lt", "lte", "between", "exists"),
    *("has", "has_any", "has_all", *TEXT_OPERATORS),
)


def _to_span(name: str, value: object, now: datetime, *, as_bound: bool) -> tuple[Scalar, Scalar, bool]:
    """Return the first and last value that a value stands for, and whether the last is included.

    Only a day or a period has two different values. As a bound, a period stands for its start.
    """
    if name != "timestamp":
        same = check_value(name, value)
        return same, same, True
    try:
        if isinstance(value, str):
            text = " ".join(value.lower().split())
            if period := _LAST_PERIOD.fullmatch(text):
                start = (now - timedelta(**{period[2] + "s": int(period[1])})).timestamp()
                return start, (start if as_bound else now.timestamp()), True
            value = _parse_date(value.strip())
            if text in ("today", "yesterday"):
                value = now.date() - timedelta(days=text == "yesterday")
    except OverflowError as error:
        raise FilterError(
            f"timestamp cannot be compared with {value!r}, which is before the year 1"
        ) from error
    start = to_seconds(value)
    whole_day = isinstance(value, date) and not isinstance(value, datetime)
    return (start, start + 86_400.0, False) if whole_day else (start, start, True)


def _parse_date(text: str) -> date | str:
    """Return a date, or the text itself if it is not one."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        return text


class _FilterBuilder:
    """Builds conditions for all three forms: dict, text, and operators."""

    def __init__(self, now: datetime | None) -> None:
        self.now = datetime.now(UTC) if now is None else as_utc(now)
        self.object_count = 0

    def condition(self, name: str, operator: str, value: object) -> Filter:
        name = canonicalise(name)
        if operator in _NEGATED_OPERATORS:
            return Not(self.condition(name, _NEGATED_OPERATORS[operator], value))
        if operator in TEXT_OPERATORS:
            return self._like(name, operator, value)
        if operator in ("eq", "has"):
            low, high, closed = _to_span(name, value, self.now, as_bound=False)
            return Equal(name, low) if low == high else Range(name, low, high, include_high=closed)
        if operator in LIST_OPERATORS:
            values = self._list(name, operator, value)
            if operator == "has_all":
                return join(And, [self.condition(name, "eq", one) for one in values])
            return self._any_of(name, values)
        if operator == "exists" and isinstance(value, bool):
            return Exists(name) if value else Not(Exists(name))
        if operator == "between" and isinstance(value, (list, tuple)) and len(value) == 2:
            return self.interval(name, "gte", value[0], "lte", value[1])
        if operator in ("exists", "between"):
            expected = (
                "true or false" if operator == "exists" else "a list of the lowest and the highest value"
            )
            raise FilterError(f"{operator!r} of {name!r} takes {expected}")
        return self._bound(name, operator, value)

    def interval(self, name: str, low_operator: str, low: object, high_operator: str, high: object) -> Filter:
        """Return a filter for one value within both bounds."""
        above, below = self._bound(name, low_operator, low), self._bound(name, high_operator, high)
        return Range(name, above.low, below.high, above.include_low, below.include_high)

    def join(self, word: str, parts: Sequence[Filter], *, unwrap: bool = True) -> Filter:
        kind = And if word == "and" else Or
        return join(kind, parts) if unwrap else kind(tuple(parts))

    def negate(self, part: Filter) -> Filter:
        return Not(part)

    def _bound(self, name: str, operator: str, value: object) -> Range:
        if operator not in ("gt", "gte", "lt", "lte"):
            raise FilterError(
                f"Unknown operator {operator[:60]!a} for {name!r}. Known: {', '.join(_OPERATORS)}. "
                "For a key within an object write the path, as in 'source.system'"
            )
        first, last, closed = _to_span(name, value, self.now, as_bound=True)
        if operator in ("gt", "gte"):
            exclusive = operator == "gt"
            return Range(name, low=last if exclusive else first, include_low=not (exclusive and closed))
        inclusive = operator == "lte"
        return Range(name, high=last if inclusive else first, include_high=inclusive and closed)

    def _like(self, name: str, operator: str, text: object) -> Like:
        if not isinstance(text, str):
            raise FilterError(
                f"{operator!r} of {name!r} takes a text, not {type(text).__name__}; for elements of a list there are "
                "has, has_any and has_all"
            )
        ignore_case, form = operator.startswith("i"), operator.removeprefix("i")
        if form != "like":
            before, after = form != "starts_with", form != "ends_with"
            text = f"{'*' * before}{escape_pattern(text)}{'*' * after}"
        return Like(name, text, ignore_case)

    def _list(self, name: str, operator: str, values: object) -> Collection[object]:
        if not isinstance(values, (list, tuple, set, frozenset)):
            raise FilterError(f"{operator!r} of {name!r} takes a list of values, not {type(values).__name__}")
        check_size(len(values))
        return values

    def _any_of(self, name: str, values: Iterable[object]) -> Filter:
        spans = [_to_span(name, value, self.now, as_bound=False) for value in values]
        points = In(name, tuple(first for first, last, _ in spans if first == last))
        periods = sorted({span for span in spans if span[0] != span[1]})
        ranges = [Range(name, first, last, include_high=closed) for first, last, closed in periods]
        return join(Or, [points, *ranges] if points.values or not ranges else ranges)

    def parse_dict(self, value: object, level: int = 0) -> Filter:
        """Parse the dict form. It may contain filters."""
        if isinstance(value, Filter):
            return value
        if not isinstance(value, Mapping):
            raise FilterError(f"Expected an object with conditions, not {type(value).__name__}")
        self.object_count = check_size(self.object_count + 1)
        if level > MAX_DEPTH:
            raise FilterError(f"The filter is nested deeper than {MAX_DEPTH} levels; write it flatter")
        return join(And, [self._parse_entry(key, below, level) for key, below in value.items()])

    def _parse_entry(self, key: object, value: object, level: int) -> Filter:
        if not isinstance(key, str):
            raise FilterError(f"A field name must be a string, not {type(key).__name__}")
        word = key.removeprefix("$")
        if word in ("and", "or"):
            if not isinstance(value, (list, tuple)):
                raise FilterError(
                    f"{key!r} takes a list of conditions; for a field of that name write 'metadata.{word}'"
                )
            return self.join(word, [self.parse_dict(part, level + 1) for part in value])
        if word == "not":
            return Not(self.parse_dict(value, level + 1))
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
        return join(And, [self.condition(key, operator, operand) for operator, operand in tests])


def parse_filter(value: Filter | Mapping[str, object] | str | None, *, now: datetime | None = None) -> Filter:
    """Parse a filter in any form; None matches everything. Relative times are relative to `now`."""
    if value is None:
        return EVERYTHING
    builder = _FilterBuilder(now)
    return parse_text(value, builder) if isinstance(value, str) else builder.parse_dict(value)


class Field:
    """A field for comparisons: `field("timestamp") >= "2026-01-01"`."""

    __slots__ = ("_builder", "name")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, name: str, now: datetime | None = None) -> None:
        self.name = canonicalise(name)
        self._builder = _FilterBuilder(now)

    def __eq__(self, value: object) -> Filter:  # type: ignore[override]
        return self._builder.condition(self.name, "eq", value)

    def __ne__(self, value: object) -> Filter:  # type: ignore[override]
        return self._builder.condition(self.name, "ne", value)

    def __lt__(self, value: Value) -> Filter:
        return self._builder.condition(self.name, "lt", value)

    def __le__(self, value: Value) -> Filter:
        return self._builder.condition(self.name, "lte", value)

    def __gt__(self, value: Value) -> Filter:
        return self._builder.condition(self.name, "gt", value)

    def __ge__(self, value: Value) -> Filter:
        return self._builder.condition(self.name, "gte", value)

    def is_in(self, values: Iterable[Value]) -> Filter:
        """The field has one of these values."""
        return self._builder.condition(self.name, "in", values if isinstance(values, str) else tuple(values))

    def has(self, value: Value) -> Filter:
        """The field, or some element of its list, is this value."""
        return self._builder.condition(self.name, "has", value)

    def has_any(self, values: Iterable[Value]) -> Filter:
        """Some element of the list is one of these values; the same as `is_in`."""
        return self.is_in(values)

    def has_all(self, values: Iterable[Value]) -> Filter:
        """Each of these values is an element of the list."""
        return self._builder.condition(
            self.name, "has_all", values if isinstance(values, str) else tuple(values)
        )

    def like(self, pattern: str, *, ignore_case: bool = False) -> Filter:
        """The field has a text that fits a pattern as a whole: `*` is any characters, `?` is one, `\\` escapes."""
        return self._text_condition("like", pattern, ignore_case)

    def starts_with(self, text: str, *, ignore_case: bool = False) -> Filter:
        """The field has a text that begins with this one."""
        return self._text_condition("starts_with", text, ignore_case)

    def ends_with(self, text: str, *, ignore_case: bool = False) -> Filter:
        """The field has a text that ends with this one."""
        return self._text_condition("ends_with", text, ignore_case)

    def contains(self, text: str, *, ignore_case: bool = False) -> Filter:
        """The field has a text that contains this one. For an element of a list use `has`."""
        return self._text_condition("contains", text, ignore_case)

    def _text_condition(self, operator: str, text: str, ignore_case: bool) -> Filter:
        return self._builder.condition(self.name, f"i{operator}" if ignore_case else operator, text)

    def between(self, low: Value, high: Value) -> Filter:
        """The field has a value from `low` to `high`, both included."""
        return self._builder.interval(self.name, "gte", low, "lte", high)

    def exists(self) -> Filter:
        """The field has a value."""
        return Exists(self.name)


def field(name: str, *, now: datetime | None = None) -> Field:
    """Return the field of that name. Relative times are relative to `now`."""
    return Field(name, now)
