"""A filter as an SQL condition on the columns of an index table. Every value is a parameter.

`not` is moved to the conditions, so that only `and` and `or` are above them. There, a condition that SQL cannot decide
for some row holds for it: the condition as a whole then lets more rows through, never fewer, and the snapshot rejects
the rest (stores/buffered_index.py). Such rows are those with a text outside ASCII in a pattern that ignores case, because
Postgres folds letters in another way than Python, and those with U+0000 in a pattern.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from sennit.filters import And, Condition, Equal, Exists, Filter, In, Like, Not, Or, Range, flatten
from sennit.filters.expression import type_rank
from sennit.filters.fields import BUILTIN_FIELDS, Scalar
from sennit.filters.patterns import pattern_pieces
from sennit.records import Record
from sennit.stores.servers.postgres.statements import Statement, escape_text

NUMBER, TEXT = 1, 2
"""What `type_rank` returns."""

COLUMNS: Final[Mapping[str, str]] = {
    **dict.fromkeys(BUILTIN_FIELDS, 'text COLLATE "C"'),
    "position": "bigint",
    "timestamp": "double precision",
}
"""A column for each built-in field, NULL for a record without a value. Texts compare by code points, as in Python."""

NUMBER_COLUMNS: Final = ("position", "timestamp")

MAX_LISTED_VALUES: Final = 16
"""Up to this many values of a metadata field are each looked up in the index; more are compared row by row."""


def sql_condition(where: Filter, statement: Statement) -> str:
    """The condition for a WHERE clause; its values become parameters of the statement."""
    return _compile(where, statement, negated=False)


def metadata_json(record: Record) -> str:
    """The metadata as the column `metadata` holds it: by the name of each field, the list of its values."""
    out: dict[str, list[Scalar]] = {}
    for name, value in flatten(record):
        if name not in COLUMNS:
            out.setdefault(escape_text(name), []).append(_storable(value))
    return json.dumps(out, ensure_ascii=False)


def _storable(value: Scalar) -> Scalar:
    return escape_text(value) if isinstance(value, str) else value


def _compile(where: Filter, statement: Statement, *, negated: bool) -> str:
    match where:
        case And(parts) | Or(parts):
            # De Morgan: not (a and b) is (not a) or (not b).
            is_and = isinstance(where, And) != negated
            compiled = [_compile(part, statement, negated=negated) for part in parts]
            return f"({(' AND ' if is_and else ' OR ').join(compiled)})" if compiled else _constant(is_and)
        case Not(part):
            return _compile(part, statement, negated=not negated)
        case _ if where.field in NUMBER_COLUMNS:
            return _number_condition(where, statement, negated)
        case _ if where.field in COLUMNS:
            return _text_condition(where, statement, negated)
        case _:
            return _metadata_condition(where, statement, negated)


def _constant(value: bool) -> str:
    return "TRUE" if value else "FALSE"


def _text_condition(where: Condition, statement: Statement, negated: bool) -> str:
    column = f'"{where.field}"'
    match where:
        case Exists():
            return f"{column} IS {'' if negated else 'NOT '}NULL"
        case Equal(_, value) if isinstance(value, str):
            return f"{column} {'IS DISTINCT FROM' if negated else '='} {statement.add(value)}::text"
        case In(_, values) if any(isinstance(value, str) for value in values):
            listed = statement.add([value for value in values if isinstance(value, str)])
            return _unless_null(
                column, f"{column} {'<> ALL' if negated else '= ANY'} ({listed}::text[])", negated
            )
        case Range() if type_rank(_bound(where)) == TEXT:
            return _unless_null(column, _negate(_bounds(where, column, "text", statement), negated), negated)
        case Like():
            return _unless_null(column, _like(where, column, statement, negated), negated)
        case _:
            return _constant(negated)


def _number_condition(where: Condition, statement: Statement, negated: bool) -> str:
    column = f'"{where.field}"'
    kind = "double precision" if where.field == "timestamp" else "numeric"
    match where:
        case Exists():
            return f"{column} IS {'' if negated else 'NOT '}NULL"
        case Equal(_, value) if type_rank(value) == NUMBER:
            return f"{column} {'IS DISTINCT FROM' if negated else '='} {statement.add(value)}::{kind}"
        case In(_, values) if any(type_rank(value) == NUMBER for value in values):
            numbers = [value for value in values if not isinstance(value, str | bool)]
            test = f"{column} {'<> ALL' if negated else '= ANY'} ({statement.add(numbers)}::{kind}[])"
            return _unless_null(column, test, negated)
        case Range() if type_rank(_bound(where)) == NUMBER:
            return _unless_null(column, _negate(_bounds(where, column, kind, statement), negated), negated)
        case _:
            return _constant(negated)


def _metadata_condition(where: Condition, statement: Statement, negated: bool) -> str:
    no = "NOT " if negated else ""
    match where:
        case Exists(name):
            return f"{no}(metadata ? {statement.add(name)}::text)"
        case Equal(name, value):
            return f"{no}(metadata @> {_contained(name, value, statement)})"
        case In(_, values) if not values:
            return _constant(negated)
        case In(name, values) if len(values) <= MAX_LISTED_VALUES:
            tests = [f"metadata @> {_contained(name, value, statement)}" for value in values]
            return f"{no}({' OR '.join(tests)})"
        case In(name, values):
            listed = statement.add([json.dumps(_storable(value), ensure_ascii=False) for value in values])
            some = _some_value(name, f"value = ANY ({listed}::jsonb[])", statement)
            return f"{no}{some}"
        case Range(name):
            return f"{_path_exists(where, name, statement)} IS {'NOT ' if negated else ''}TRUE"
        case Like(name):
            text = "(value #>> '{}')"
            # The values are in a list: not one of them may fit, so each is tested and the list as a whole is negated.
            test = _like(where, text, statement, negated=False, is_certain=negated)
            some = _some_value(name, f"jsonb_typeof(value) = 'string' AND {test}", statement)
            return f"{no}{some}"


def _some_value(name: str, test: str, statement: Statement) -> str:
    values = f"jsonb_array_elements(metadata -> {statement.add(name)}::text)"
    return f"EXISTS (SELECT 1 FROM {values} AS one (value) WHERE {test})"


def _contained(name: str, value: Scalar, statement: Statement) -> str:
    contained = {escape_text(name): [_storable(value)]}
    # Escaped above; the JSON itself holds neither U+0000 nor U+0001, which it writes as \u0001.
    return f"{statement.add(json.dumps(contained, ensure_ascii=False))}::jsonb"


def _path_exists(where: Range, name: str, statement: Statement) -> str:
    """Whether a value lies in a range; values of another type than the bounds do not."""
    tests, bounds = [], {}
    for key, bound, sign, includes in (
        ("low", where.low, ">", where.include_low),
        ("high", where.high, "<", where.include_high),
    ):
        if bound is not None:
            tests.append(f"@ {sign}{'=' if includes else ''} ${key}")
            bounds[key] = _storable(bound)
    path = f"$[*] ? ({' && '.join(tests)})"
    values = f"metadata -> {statement.add(name)}::text"
    variables = statement.add(json.dumps(bounds, ensure_ascii=False))
    return f"jsonb_path_exists({values}, '{path}', {variables}::jsonb)"


def _bound(where: Range) -> Scalar:
    bound = where.high if where.low is None else where.low
    assert bound is not None
    return bound


def _bounds(where: Range, column: str, kind: str, statement: Statement) -> str:
    tests = []
    if where.low is not None:
        tests.append(f"{column} {'>=' if where.include_low else '>'} {statement.add(where.low)}::{kind}")
    if where.high is not None:
        tests.append(f"{column} {'<=' if where.include_high else '<'} {statement.add(where.high)}::{kind}")
    return " AND ".join(tests)


def _like(where: Like, text: str, statement: Statement, negated: bool, *, is_certain: bool = False) -> str:
    """Whether a text fits a pattern. It also holds for a text that SQL cannot decide, unless the answer must be certain."""
    pattern = statement.add(like_pattern(where.pattern))
    undecided = [f"strpos({text}, chr(1)) > 0"]
    compared = text
    if where.ignore_case:
        compared = f'lower({text} COLLATE "C")'
        undecided.append(f"octet_length({text}) <> char_length({text})")
    test = f"{compared} {'NOT ' if negated else ''}LIKE {pattern}::text"
    if is_certain:
        return f"({test} AND NOT ({' OR '.join(undecided)}))"
    return f"({' OR '.join([test, *undecided])})"


def like_pattern(pattern: str) -> str:
    """A pattern of a filter as one of SQL."""
    return "".join(
        "%"
        if piece == "*"
        else "_"
        if piece == "?"
        else f"\\{piece[-1]}"
        if piece[-1] in "%_\\"
        else piece[-1]
        for piece in pattern_pieces(pattern)
    )


def _negate(test: str, negated: bool) -> str:
    return f"NOT ({test})" if negated else f"({test})"


def _unless_null(column: str, test: str, negated: bool) -> str:
    """A negated condition also holds for a record without a value."""
    return f"({column} IS NULL OR {test})" if negated else test


def column_values(record: Record) -> Sequence[str | int | float | None]:
    """The values of the columns of the built-in fields, in their order."""
    values = dict(pair for pair in flatten(record) if pair[0] in COLUMNS)
    return [values.get(name) for name in COLUMNS]
