"""Filters as queries: every value of a record is one token of one keyword field, so no metadata needs a mapping.

A token names the field, the type of the value and the value itself. Numbers are written so that the order of the tokens
is the order of the numbers, text is ordered by code point. So one field may hold a number in one record and text in
another, and a thousand different metadata keys are still one field of the index.

A text that is too long for a token is known by its hash: equality works, order and patterns cannot be told. The same
holds for `ilike`, for patterns with many wildcards, and for what is nested too deeply. For these the translation is not
exact but bounded: a filter may let more records through, and what stands under `not` fewer, never the other way round.
"""

from __future__ import annotations

import re
import struct
from typing import Any, Final, TypeAlias

import xxhash

from sennit.filters import And, Equal, Exists, Filter, In, Like, Not, Or, Range, Scalar, flatten
from sennit.records import Record

Query: TypeAlias = dict[str, Any]

VALUES: Final = "values"
"""The field of the tokens."""
TIME: Final = "time"
"""The field of `timestamp`, a number: almost every record has another one, and a range of tokens would list them all."""

ALL: Final[Query] = {"match_all": {}}
NONE: Final[Query] = {"match_none": {}}

MAX_TEXT_BYTES: Final = 1000
"""Longer texts are known by their hash. Lucene refuses a token of more than 32,766 bytes."""

MAX_DEPTH: Final = 16
"""The server refuses bool queries that are nested more deeply than 20."""

MAX_CLAUSES: Final = 600
"""The server refuses queries with more than 1,024 clauses; the words of the question need up to 256."""

MAX_PATTERN: Final = 200
MAX_WILDCARDS: Final = 8
"""The automaton of a longer pattern may be too complex for the server."""

_END: Final = ";"
"""The character after the colon, which ends the name of a field: an upper bound of all its tokens."""


def field_values(record: Record) -> dict[str, Any]:
    """What filters need of a record, as fields of a document."""
    tokens: dict[str, None] = {}
    time = None
    for name, value in flatten(record):
        if name == "timestamp":
            time = value
            continue
        prefix = _field(name)
        tokens[f"e{prefix}"] = None
        if isinstance(value, str) and _is_long(value):
            tokens[f"l{prefix}"] = None
        tokens[_token(prefix, value)] = None
    return {VALUES: list(tokens)} | ({} if time is None else {TIME: time})


def translate(where: Filter) -> Query:
    """A query that finds every record that matches, and as few others as the server can tell."""
    return _Translation().bound(where, upper=True, depth=0)


class _Translation:
    def __init__(self) -> None:
        self._clauses = 0

    def bound(self, where: Filter, *, upper: bool, depth: int) -> Query:
        """A query for a superset of the matching records, or with `upper` false a subset."""
        if depth > MAX_DEPTH:
            return _unknown(upper)
        match where:
            case And(parts):
                found = [self.bound(part, upper=upper, depth=depth + 1) for part in parts]
                kept = [one for one in found if one != ALL]
                return NONE if NONE in kept else _combine("filter", kept, ALL)
            case Or(parts):
                found = [self.bound(part, upper=upper, depth=depth + 1) for part in parts]
                kept = [one for one in found if one != NONE]
                return ALL if ALL in kept else _combine("should", kept, NONE)
            case Not(part):
                return _negate(self.bound(part, upper=not upper, depth=depth + 1))
            case _:
                self._clauses += 1
                return _unknown(upper) if self._clauses > MAX_CLAUSES else _condition(where, upper)


def _condition(where: Equal | In | Range | Like | Exists, upper: bool) -> Query:
    if where.field == "timestamp":
        return _time_condition(where)
    prefix = _field(where.field)
    match where:
        case Exists():
            return _term(f"e{prefix}")
        case Equal():
            return _term(_token(prefix, where.value))
        case In():
            tokens = [_token(prefix, value) for value in where.values]
            return {"terms": {VALUES: tokens}} if tokens else NONE
        case Range():
            return _range(where, prefix, upper)
        case Like():
            if where.ignore_case:
                return _or_long(_span(f"s{prefix}"), prefix) if upper else NONE
            return _like(where.pattern, prefix, upper)


def _time_condition(where: Equal | In | Range | Like | Exists) -> Query:
    match where:
        case Exists():
            return {"exists": {"field": TIME}}
        case Equal(_, value):
            return {"term": {TIME: value}}
        case In(_, values):
            return {"terms": {TIME: list(values)}} if values else NONE
        case Range():
            bounds: Query = {}
            if where.low is not None:
                bounds["gte" if where.include_low else "gt"] = where.low
            if where.high is not None:
                bounds["lte" if where.include_high else "lt"] = where.high
            return {"range": {TIME: bounds}}
        case Like():
            return NONE


def _range(where: Range, prefix: str, upper: bool) -> Query:
    low, high = where.low, where.high
    is_text = isinstance(low if low is not None else high, str)
    kind = f"s{prefix}" if is_text else f"n{prefix}"
    bounds: Query = {"gte": kind, "lt": kind[:-1] + _END}
    if low is not None:
        bounds.pop("gte")
        bounds["gte" if where.include_low else "gt"] = kind + _bound(low)
    if high is not None:
        bounds.pop("lt")
        bounds["lte" if where.include_high else "lt"] = kind + _bound(high)
    query: Query = {"range": {VALUES: bounds}}
    return _or_long(query, prefix) if is_text and upper else query


def _like(pattern: str, prefix: str, upper: bool) -> Query:
    escaped = re.sub(r"\\(?![*?\\])", r"\\\\", pattern) if "\\" in pattern else pattern
    if len(pattern) > MAX_PATTERN or len(re.findall(r"[*?]", pattern)) > MAX_WILDCARDS:
        return _or_long(_span(f"s{prefix}"), prefix) if upper else NONE
    query: Query = {"wildcard": {VALUES: {"value": f"s{prefix}{escaped}"}}}
    return _or_long(query, prefix) if upper else query


def _or_long(query: Query, prefix: str) -> Query:
    """The query, or a text that is too long to tell."""
    return _combine("should", [query, _term(f"l{prefix}")], NONE)


def _span(kind: str) -> Query:
    return {"range": {VALUES: {"gte": kind, "lt": kind[:-1] + _END}}}


def _term(token: str) -> Query:
    return {"term": {VALUES: token}}


def _unknown(upper: bool) -> Query:
    return ALL if upper else NONE


def _combine(kind: str, parts: list[Query], empty: Query) -> Query:
    if len(parts) < 2:
        return parts[0] if parts else empty
    return {"bool": {kind: parts, **({"minimum_should_match": 1} if kind == "should" else {})}}


def _negate(query: Query) -> Query:
    if query in (ALL, NONE):
        return NONE if query == ALL else ALL
    return {"bool": {"must_not": [query]}}


def _field(name: str) -> str:
    return f"{xxhash.xxh3_64_hexdigest(name.encode())}:"


def _token(prefix: str, value: Scalar) -> str:
    if isinstance(value, bool):
        return f"b{prefix}{int(value)}"
    if not isinstance(value, str):
        return f"n{prefix}{_sortable(value)}"
    if _is_long(value):
        return f"h{prefix}{xxhash.xxh3_128_hexdigest(value.encode())}"
    return f"s{prefix}{value}"


def _bound(value: Scalar) -> str:
    return value if isinstance(value, str) else _sortable(value)


def _is_long(value: str) -> bool:
    return len(value) * 4 > MAX_TEXT_BYTES and len(value.encode()) > MAX_TEXT_BYTES


def _sortable(value: float) -> str:
    """Hexadecimal digits in the order of the numbers: the nearest double, then how far a large integer lies from it."""
    nearest = float(value)
    (bits,) = struct.unpack(">q", struct.pack(">d", nearest + 0.0))
    ordered = bits ^ 0x7FFF_FFFF_FFFF_FFFF if bits < 0 else bits
    rest = int(value) - int(nearest) if isinstance(value, int) else 0
    return f"{ordered + (1 << 63):016x}{rest + 0x1000:04x}"
