"""Filters: conditions on the fields of a record. They mean the same in every backend.

    field("kind") == "note"              {"kind": "note"}                        kind = "note"
    field("tags").is_in(["a", "b"])      {"tags": ["a", "b"]}                    tags in ("a", "b")
    field("tags").has_all(["a", "b"])    {"tags": {"has_all": ["a", "b"]}}       tags has_all ("a", "b")
    field("path").like("docs/*")         {"path": {"like": "docs/*"}}            path like "docs/*"
    field("timestamp") >= "2026-01-01"   {"timestamp": {"gte": "2026-01-01"}}    timestamp >= 2026-01-01
    a & b, a | b, ~a                     {"and": [a, b]}, {"or": ...}, {"not": a}    a and b, a or b, not a

Fields. A built-in field is its bare name; any other name is a path into the metadata. The prefix `metadata.` stays
if the first key is also a built-in name, and is dropped otherwise. A dot in a key is escaped with a backslash; in
the text form the key may be put in backticks instead.

Meaning. A record has any number of values per field (`flatten`). A list counts as its elements; null, a missing key
and an empty built-in text are no value. A condition holds if any value satisfies it, so two different elements may
satisfy `x >= 1 and x < 5`, but one element must satisfy `x >= 1 and < 5`. Values of different types are never equal
and never ordered; True is not 1. Not is the complement: `x != 1` includes the records without x. Text is ordered by
code point.

Patterns. `like` compares a whole text: `*` is any characters, also none and also `/`; `?` is exactly one; a backslash
makes the next `*`, `?` or backslash ordinary. `starts_with`, `ends_with` and `contains` take plain text and become
patterns. With an `i` before the name, both sides are case-folded first. Only text can fit a pattern.

Time. `timestamp` holds seconds since 1970. A date, "today" and "yesterday" are whole days in UTC: `=` means during
the day, `>` after its end, `<=` until its end. With `=`, "last 7 days" is the period from seven days ago until now;
with `<` or `>` it is the start of that period.

`str(filter)` returns the text form. It parses back to an equal filter unless it is longer than MAX_TEXT_BYTES.
"""

from sennit.filters.builder import Field, Value, field, parse_filter
from sennit.filters.dict_form import filter_to_dict
from sennit.filters.expression import (
    EVERYTHING,
    MAX_NODES,
    NOTHING,
    And,
    Condition,
    Equal,
    Exists,
    Filter,
    In,
    Like,
    Not,
    Or,
    Range,
    compared_fields,
    fields_of,
)
from sennit.filters.fields import BUILTIN_FIELDS, Scalar, canonical_name, field_path, format_field
from sennit.filters.patterns import Pattern, compile_pattern
from sennit.filters.values import field_values, flatten, matches, metadata_values

__all__ = [
    "BUILTIN_FIELDS",
    "EVERYTHING",
    "MAX_NODES",
    "NOTHING",
    "And",
    "Condition",
    "Equal",
    "Exists",
    "Field",
    "Filter",
    "In",
    "Like",
    "Not",
    "Or",
    "Pattern",
    "Range",
    "Scalar",
    "Value",
    "canonical_name",
    "compared_fields",
    "compile_pattern",
    "field",
    "field_path",
    "field_values",
    "fields_of",
    "filter_to_dict",
    "flatten",
    "format_field",
    "matches",
    "metadata_values",
    "parse_filter",
]
