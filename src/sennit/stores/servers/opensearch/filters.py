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
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import xxhash

from sennit.filters import Condition, Equal, Exists, Filter, In, Like, Range, Scalar, flatten
from sennit.records import Record
from sennit.stores.servers.supersets import Translated, translate

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


def to_query(where: Filter) -> Query:
    """A query that finds every record that matches, and as few others as the server can tell."""
    found = translate(where, TokenFilters(), max_depth=MAX_DEPTH)
    return (ALL if found else NONE) if isinstance(found, bool) else found


class BoolQueries:
    """How OpenSearch writes groups of conditions, in its filter context."""

    def all_of(self, parts: Sequence[Query]) -> Query:
        """All parts hold."""
        return {"bool": {"filter": list(parts)}}

    def any_of(self, parts: Sequence[Query]) -> Query:
        """Some part holds."""
        return {"bool": {"should": list(parts), "minimum_should_match": 1}}

    def none_of(self, part: Query) -> Query:
        """The part does not hold."""
        return {"bool": {"must_not": [part]}}


class TokenFilters(BoolQueries):
    """Conditions on the tokens of a document."""

    def __init__(self) -> None:
        self._clauses = 0

    def condition(self, condition: Condition, *, is_negated: bool) -> Translated[Query] | None:
        """One condition; None beyond the number of clauses that the server takes."""
        self._clauses += 1
        if self._clauses > MAX_CLAUSES:
            return None
        if condition.field == "timestamp":
            return time_condition(condition, TIME)
        prefix = _field(condition.field)
        match condition:
            case Exists():
                return _term(f"e{prefix}")
            case Equal():
                return _term(_token(prefix, condition.value))
            case In():
                tokens = [_token(prefix, value) for value in condition.values]
                return {"terms": {VALUES: tokens}} if tokens else False
            case Range():
                return self._range(condition, prefix, is_negated)
            case Like():
                return self._like(condition, prefix, is_negated)

    def _range(self, where: Range, prefix: str, is_negated: bool) -> Query:
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
        return self._or_long(query, prefix) if is_text and not is_negated else query

    def _like(self, where: Like, prefix: str, is_negated: bool) -> Translated[Query]:
        pattern = where.pattern
        is_complex = len(pattern) > MAX_PATTERN or len(re.findall(r"[*?]", pattern)) > MAX_WILDCARDS
        if where.ignore_case or is_complex:
            return False if is_negated else self._or_long(_span(f"s{prefix}"), prefix)
        escaped = re.sub(r"\\(?![*?\\])", r"\\\\", pattern) if "\\" in pattern else pattern
        query: Query = {"wildcard": {VALUES: {"value": f"s{prefix}{escaped}"}}}
        return query if is_negated else self._or_long(query, prefix)

    def _or_long(self, query: Query, prefix: str) -> Query:
        """The query, or a text that is too long to tell."""
        return self.any_of([query, _term(f"l{prefix}")])


def time_condition(where: Condition, field: str) -> Translated[Query]:
    """A condition on the time of a record, which a field holds as seconds since 1970."""
    match where:
        case Exists():
            return {"exists": {"field": field}}
        case Equal(_, value):
            return {"term": {field: value}}
        case In(_, values):
            return {"terms": {field: list(values)}} if values else False
        case Range():
            bounds: Query = {}
            if where.low is not None:
                bounds["gte" if where.include_low else "gt"] = where.low
            if where.high is not None:
                bounds["lte" if where.include_high else "lt"] = where.high
            return {"range": {field: bounds}}
        case Like():
            return False


def _span(kind: str) -> Query:
    return {"range": {VALUES: {"gte": kind, "lt": kind[:-1] + _END}}}


def _term(token: str) -> Query:
    return {"term": {VALUES: token}}


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
