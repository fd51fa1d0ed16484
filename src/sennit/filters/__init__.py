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

from sennit.filters.building import Field, Value, field, parse_filter
from sennit.filters.expression import (
    EVERYTHING,
    MAX_NODES,
    NOTHING,
    And,
    Equal,
    Exists,
    Filter,
    In,
    Not,
    Or,
    Range,
    fields_of,
)
from sennit.filters.text import BUILTIN_FIELDS, Scalar, canonical, segments
from sennit.filters.values import flatten, matches, values_in, values_of

__all__ = [
    "BUILTIN_FIELDS",
    "EVERYTHING",
    "MAX_NODES",
    "NOTHING",
    "And",
    "Equal",
    "Exists",
    "Field",
    "Filter",
    "In",
    "Not",
    "Or",
    "Range",
    "Scalar",
    "Value",
    "canonical",
    "field",
    "fields_of",
    "flatten",
    "matches",
    "parse_filter",
    "segments",
    "values_in",
    "values_of",
]
