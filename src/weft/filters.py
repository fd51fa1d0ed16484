"""Filters: one small expression over the fields of a record, the same for every backend.

    field("kind") == "note"              {"kind": "note"}                        kind = "note"
    field("tags").is_in(["a", "b"])      {"tags": ["a", "b"]}                    tags in ("a", "b")
    field("timestamp") >= "2026-01-01"   {"timestamp": {"gte": "2026-01-01"}}    timestamp >= 2026-01-01
    a & b, a | b, ~a                     {"and": [a, b]}, {"or": ...}, {"not": a}    a and b, a or b, not a

Fields. A built-in field is its bare name; any other name is a path into the metadata. `metadata.` in front
is kept where the first key is also a built-in name, and dropped elsewhere. A dot in a key is escaped with a
backslash, or the key is put in backticks in the text form.

Meaning. A record has some values per field (`flatten`): a list counts as its elements; null, a missing key
and an empty built-in text are no value. A condition holds if any value satisfies it, so `x >= 1 and x < 5`
may be met by two elements, and `x >= 1 and < 5` only by one. Values of different types never compare; True
is not 1. Not is the plain complement: `x != 1` includes the records without x. Text is ordered by code point.

Time. `timestamp` holds seconds since 1970. A date, "today" and "yesterday" are whole days in UTC: `=` is
within, `>` after its end, `<=` up to its end. "last 7 days" reaches from then to now; as a bound it is then.

`str(filter)` is the text form, and parses back to an equal filter unless it is longer than MAX_TEXT_BYTES.
"""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final, TypeAlias, cast

from weft.errors import FilterError
from weft.filter_text import BUILTIN_FIELDS as BUILTIN_FIELDS
from weft.filter_text import MAX_DEPTH, escaped, field_text, parse_text, string_text
from weft.filter_text import Scalar as Scalar
from weft.filter_text import canonical as canonical
from weft.filter_text import segments as segments
from weft.records import Record, as_utc

Value: TypeAlias = Scalar | date
"""What a caller may compare with; a date or datetime only with `timestamp`."""

MAX_NODES: Final = 10_000
"""Conditions and listed values in one filter; each costs every source a look-up."""

_END_OF_TIME: Final = 253_402_300_800.0
"""The end of 9999-12-31, a bound that no datetime can express."""

_INT64: Final = 1 << 63
_LAST: Final = re.compile(r"last ([0-9]{1,9}) (minute|hour|day|week)s?")
_NEGATED: Final = {"ne": "eq", "not_in": "in", "nin": "in"}
_KNOWN: Final = ("eq", "ne", "in", "not_in", "nin", "gt", "gte", "lt", "lte", "between", "exists")


class _Node:
    __slots__ = ()
    depth: int = 0
    size: int = 1

    def __and__(self, other: Filter) -> Filter:
        return _joined(And, (cast("Filter", self), other))

    def __or__(self, other: Filter) -> Filter:
        return _joined(Or, (cast("Filter", self), other))

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
        name = canonical(segments(self.field))
        value = _checked(name, self.value)
        _settle(self, name, value, int(isinstance(value, bool)))


@dataclasses.dataclass(frozen=True, slots=True)
class In(_Node):
    """Some value of the field is one of these, which are kept sorted, each once."""

    field: str
    values: tuple[Scalar, ...]
    bools: int = dataclasses.field(init=False, repr=False)
    size: int = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        name = canonical(segments(self.field))
        ranked = sorted({_key(_checked(name, value)) for value in self.values})
        bools = sum(rank == 0 for rank, _ in ranked)
        _settle(self, name, tuple(value for _, value in ranked), bools, _allowed(len(ranked) or 1))


@dataclasses.dataclass(frozen=True, slots=True)
class Range(_Node):
    """Some value of the field lies between the bounds; None is no bound."""

    field: str
    low: str | int | float | None = None
    high: str | int | float | None = None
    include_low: bool = True
    include_high: bool = True

    def __post_init__(self) -> None:
        name = canonical(segments(self.field))
        low, high = (None if bound is None else _checked(name, bound) for bound in (self.low, self.high))
        if {_rank(bound) for bound in (low, high) if bound is not None} not in ({1}, {2}):
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
        _settle(self, canonical(segments(self.field)))


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
    for slot, value in zip(dataclasses.fields(node), values, strict=True):
        object.__setattr__(node, slot.name, value)


def _weight(parts: Sequence[object]) -> tuple[int, int]:
    """Depth and size above these parts; every filter there is can be walked by recursion."""
    depth = size = 1
    for part in parts:
        if not isinstance(part, _Node):
            raise FilterError(f"Expected a filter, not {type(part).__name__}; see parse_filter")
        depth, size = max(depth, part.depth + 1), size + part.size
    if depth > MAX_DEPTH:
        raise FilterError(f"The filter is nested deeper than {MAX_DEPTH} levels; write it flatter")
    return depth, _allowed(size)


def _allowed(size: int) -> int:
    if size > MAX_NODES:
        raise FilterError(
            f"The filter has more than {MAX_NODES:,} conditions and values; mark the records with a metadata field"
        )
    return size


def _joined(kind: type[And] | type[Or], parts: Sequence[Filter]) -> Filter:
    if len(parts) == 1:
        return parts[0]
    whole = kind(tuple(parts))
    return whole.parts[0] if len(whole.parts) == 1 else whole


EVERYTHING: Final = And(())
NOTHING: Final = Or(())


def _rank(value: Scalar) -> int:
    return 0 if isinstance(value, bool) else 2 if isinstance(value, str) else 1


def _number(value: float) -> int | float:
    """One spelling per number: an int of 64 bits where it is one, otherwise a float."""
    if isinstance(value, int):
        return int(value) if -_INT64 <= value < _INT64 else float(value)
    return int(value) if value.is_integer() and -_INT64 <= value < _INT64 else float(value)


def _checked(name: str, value: object) -> Scalar:
    """A value that may stand in a condition, in its one spelling."""
    try:
        if isinstance(value, (int, float)) and name == "timestamp":
            return _seconds(value)
        if isinstance(value, str) and name != "timestamp":
            value.encode()
            return value
        if isinstance(value, bool):
            return value
        if isinstance(value, (int, float)) and math.isfinite(value):
            return _number(value)
    except UnicodeEncodeError as error:
        raise FilterError(f"The value for {name!r} has a lone surrogate, which is not Unicode") from error
    except OverflowError as error:
        raise FilterError(f"The number for {name!r} is too large") from error
    unusable = "NaN or infinity" if isinstance(value, float) else type(value).__name__
    raise FilterError(
        f"{name!r} cannot be compared with {'null' if value is None else unusable}; a value is text, a number, "
        "true or false. Give several to `in`, a date to field('timestamp'), and ask with `exists` if there is any"
    )


def _seconds(value: object) -> float:
    if isinstance(value, (int, float)) and value == _END_OF_TIME:
        return _END_OF_TIME
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


def _span(name: str, value: object, now: datetime, *, bound: bool) -> tuple[Scalar, Scalar, bool]:
    """First and last value meant, and whether the last is within: the same value twice, but for times."""
    if name != "timestamp":
        same = _checked(name, value)
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
    start = _seconds(value)
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
        name = canonical(segments(name))
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
        return _joined(kind, parts) if unwrap else kind(tuple(parts))

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
        _allowed(len(values))
        spans = [_span(name, value, self.now, bound=False) for value in values]
        points = In(name, tuple(first for first, last, _ in spans if first == last))
        days = sorted({span for span in spans if span[0] != span[1]})
        ranges = [Range(name, first, last, include_high=closed) for first, last, closed in days]
        return _joined(Or, [points, *ranges] if points.values or not ranges else ranges)

    def read(self, value: object, level: int = 0) -> Filter:
        """The dict form, or a filter within it."""
        if isinstance(value, Filter):
            return value
        if not isinstance(value, Mapping):
            raise FilterError(f"Expected an object with conditions, not {type(value).__name__}")
        self.objects = _allowed(self.objects + 1)
        if level > MAX_DEPTH:
            raise FilterError(f"The filter is nested deeper than {MAX_DEPTH} levels; write it flatter")
        return _joined(And, [self._entry(key, below, level) for key, below in value.items()])

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
        return _joined(And, [self.condition(key, operator, operand) for operator, operand in tests])


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
        self.name = canonical(segments(name))
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
    if name == "timestamp" and value != _END_OF_TIME:
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


def matches(wanted: Filter, record: Record) -> bool:
    """Whether the filter holds for the record: the reference that every backend must agree with."""
    match wanted:
        case And(parts):
            return all(matches(part, record) for part in parts)
        case Or(parts):
            return any(matches(part, record) for part in parts)
        case Not(part):
            return not matches(part, record)
        case _:
            return any(_accepts(wanted, value) for value in values_of(record, segments(wanted.field)))


def _accepts(wanted: Equal | In | Range | Exists, value: Scalar) -> bool:
    match wanted:
        case Exists():
            return True
        case Equal():
            return _key(value) == _key(wanted.value)
        case In():
            return _key(value) in map(_key, wanted.values)
        case Range(_, low, high, include_low, include_high):
            return _rising(low, value, include_low) and _rising(value, high, include_high)


def _rising(low: Scalar | None, high: Scalar | None, equal_too: bool) -> bool:
    if low is None or high is None:
        return True
    return _rank(low) == _rank(high) and (_key(low) < _key(high) or (equal_too and low == high))


def _key(value: Scalar) -> tuple[int, Scalar]:
    return _rank(value), value


def values_of(record: Record, path: tuple[str, ...]) -> Iterator[Scalar]:
    """Every value of one field, by its `segments`; a value may come twice."""
    name, *below = path = segments(canonical(path))
    if len(path) == 1 and name in BUILTIN_FIELDS:
        value = getattr(record, name)
        if value is not None and value != "":
            yield value.timestamp() if name == "timestamp" else value
    else:
        yield from _walk(record.metadata, below if name == "metadata" else path)


def _walk(value: object, path: Sequence[str]) -> Iterator[Scalar]:
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from _walk(item, path)
    elif path:
        if isinstance(value, Mapping) and path[0] in value:
            yield from _walk(value[path[0]], path[1:])
    elif isinstance(value, (str, int, float)):
        yield _indexed(value)


def flatten(record: Record) -> Iterator[tuple[str, Scalar]]:
    """Every (field, value) of a record, each once, built-in fields first and then metadata by key.

    This is what a backend indexes; `matches` sees exactly these values.
    """
    pairs: list[tuple[str, Scalar]] = [("id", record.id), ("collection", record.collection)]
    # Field by field: a loop with getattr takes twice as long, and every record added passes here.
    add = pairs.append
    if record.kind:
        add(("kind", record.kind))
    if record.title:
        add(("title", record.title))
    if record.path is not None:
        add(("path", record.path))
    if record.url is not None:
        add(("url", record.url))
    if record.parent is not None:
        add(("parent", record.parent))
    if record.position is not None:
        add(("position", record.position))
    if record.timestamp is not None:
        add(("timestamp", record.timestamp.timestamp()))
    add(("sensitivity", record.sensitivity))
    add(("scope", record.scope))
    metadata = record.metadata
    for key in sorted(metadata) if metadata else ():
        value = metadata[key]
        if isinstance(value, str):
            add((_metadata_name(key), value))
        elif isinstance(value, (int, float)):
            add((_metadata_name(key), _indexed(value)))
        elif value is not None:
            found: dict[tuple[str, Scalar, bool], None] = {}
            _gather(_metadata_name(key), value, found)
            pairs += [(name, scalar) for name, scalar, _ in found]
    return iter(pairs)


def _gather(name: str, value: object, found: dict[tuple[str, Scalar, bool], None]) -> None:
    """Add the values below a list or object, in order; as keys, for a list may hold one twice."""
    if isinstance(value, (str, int, float)):
        found[name, _indexed(value), isinstance(value, bool)] = None
    elif isinstance(value, (list, tuple)):
        for item in value:
            _gather(name, item, found)
    elif isinstance(value, (dict, Mapping)):  # dict first: the abstract class is slow to ask
        for key in sorted(value):
            _gather(f"{name}.{escaped(key)}", value[key], found)


@lru_cache(maxsize=4096)
def _metadata_name(key: str) -> str:
    return canonical(("metadata", key))


def _indexed(value: Scalar) -> Scalar:
    if isinstance(value, (str, bool)):
        return value
    try:
        return _number(value)
    except OverflowError:
        # Larger than any number a filter may name, and found by every lower bound.
        return sys.float_info.max if value > 0 else -sys.float_info.max
