"""The text form of filters, and how fields are named."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from time import perf_counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.errors import FilterError
from sennit.filters import (
    BUILTIN_FIELDS,
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
    Value,
    canonical_name,
    field,
    field_path,
    matches,
    parse_filter,
)
from sennit.filters.text_parser import MAX_DEPTH, MAX_TEXT_BYTES
from sennit.records import Record

A, B, C = Equal("a", 1), Equal("b", 2), Equal("c", 3)
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def seconds(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> float:
    return datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp()


keys = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6) | st.sampled_from(
    [*BUILTIN_FIELDS, "metadata", "and", "In", "a.b", "a\\", "`", "\\."]
)


# Field names


@pytest.mark.parametrize("name", BUILTIN_FIELDS)
def test_a_metadata_field_with_a_builtin_name_keeps_its_prefix(name: str) -> None:
    assert canonical_name((name,)) == name
    assert canonical_name(("metadata", name)) == f"metadata.{name}"
    assert field_path(f"metadata.{name}") == ("metadata", name)


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("source.system", "source.system"),
        ("metadata.source.system", "source.system"),
        ("kind.sub", "metadata.kind.sub"),
        ("metadata", "metadata.metadata"),
        ("metadata.metadata.kind", "metadata.metadata.kind"),
        (r"a\.b.c", r"a\.b.c"),
    ],
)
def test_a_metadata_field_has_one_canonical_name(written: str, canonical: str) -> None:
    assert canonical_name(field_path(written)) == canonical


def test_a_key_with_a_dot_is_not_a_nested_path() -> None:
    assert field_path(r"a\.b") == ("a.b",)
    assert field_path("a.b") == ("a", "b")
    assert field_path(r"a\\.b") == ("a\\", "b")


@given(st.lists(keys, min_size=1, max_size=4))
def test_a_canonical_name_parses_back_to_its_path(path: list[str]) -> None:
    name = canonical_name(tuple(path))
    assert canonical_name(field_path(name)) == name
    assert field_path(name)[-1] == path[-1]


@given(st.lists(keys, min_size=1, max_size=3), st.lists(keys, min_size=1, max_size=3))
def test_different_metadata_paths_have_different_names(one: list[str], other: list[str]) -> None:
    same_name = canonical_name(("metadata", *one)) == canonical_name(("metadata", *other))
    assert same_name == (one == other)


@pytest.mark.parametrize("name", ["", ".", "a..b", ".a", "a.", "a\\", r"a\b", "\ud800", "x" * 1025])
def test_an_invalid_field_name_is_rejected(name: str) -> None:
    with pytest.raises(FilterError):
        field_path(name)


# Meaning of a text


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ('artifact_type = "note"', Equal("artifact_type", "note")),
        ("artifact_type == note", Equal("artifact_type", "note")),
        ("artifact_type='note'", Equal("artifact_type", "note")),
        ("a != 1", Not(A)),
        ("a < 1", Range("a", high=1, include_high=False)),
        ("a <= 1", Range("a", high=1)),
        ("a > 1", Range("a", low=1, include_low=False)),
        ("a >= 1", Range("a", low=1)),
        ("a in (1, two, 'three')", In("a", (1, "two", "three"))),
        ("a in [1,]", In("a", (1,))),
        ("a in ()", In("a", ())),
        ("a NOT IN (1)", Not(In("a", (1,)))),
        ("exists a.b", Exists("a.b")),
        ("a exists", Exists("a")),
        ("a not exists", Not(Exists("a"))),
        ("a between 1 and 5 and b = 2", And((Range("a", 1, 5), B))),
        ("a not between 1 and 5", Not(Range("a", 1, 5))),
        ("a > 1 and <= 5 and b = 2", And((Range("a", 1, 5, include_low=False), B))),
        ("a >= 1 and a < 5", And((Range("a", 1), Range("a", None, 5, True, False)))),
        ("`odd key.with dot` = 1", Equal(r"odd key\.with dot", 1)),
        ("source.`a.b`.c = 1", Equal(r"source.a\.b.c", 1)),
        ("`and` = 1", Equal("and", 1)),
        (
            "metadata.kind = note and kind = note",
            And((Equal("metadata.kind", "note"), Equal("kind", "note"))),
        ),
        ("timestamp >= 2026-01-01", Range("timestamp", low=seconds(2026, 1, 1))),
        ("timestamp = 2026-01-01T01:00:00+01:00", Equal("timestamp", seconds(2026, 1, 1))),
        ("created >= 2026-01-01", Range("created", low="2026-01-01")),
        ("path = docs/a-b.md", Equal("path", "docs/a-b.md")),
        ("all = 1 and any in (2)", And((Equal("all", 1), In("any", (2,))))),
        ("all()", EVERYTHING),
        ("any()", NOTHING),
        ("any(a = 1)", Or((A,))),
        ("all(a = 1, b = 2 or c = 3)", And((A, Or((B, C))))),
        (" \n\t", EVERYTHING),
    ],
)
def test_a_text_parses_to_a_filter(text: str, meaning: Filter) -> None:
    assert parse_filter(text) == meaning


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("a = 1 or b = 2 and c = 3", Or((A, And((B, C))))),
        ("(a = 1 or b = 2) and c = 3", And((Or((A, B)), C))),
        ("not a = 1 and b = 2", And((Not(A), B))),
        ("NOT (a = 1 And b = 2)", Not(And((A, B)))),
        ("not not a = 1", Not(Not(A))),
        ("a = 1 and b = 2 and c = 3", And((A, B, C))),
        ("((((a = 1))))", A),
    ],
)
def test_not_binds_tighter_than_and_which_binds_tighter_than_or(text: str, meaning: Filter) -> None:
    assert parse_filter(text) == meaning


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("12", 12),
        ("-1.50", -1.5),
        ("2.0", 2),
        (".5e1", 5),
        ("1e300", 1e300),
        ("9" * 30, 1e30),
        ("true", True),
        ("FALSE", False),
        ('"true"', "true"),
        ('"1"', "1"),
        ("1.2.3", "1.2.3"),
        ("nan", "nan"),
        (r'"a\n\t\"\\\'\u00e9"', "a\n\t\"\\'é"),
        (r'"\ud83d\ude00"', "😀"),
        (r"'it\'s'", "it's"),
        ("größe", "größe"),
        ("'two\nlines'", "two\nlines"),
    ],
)
def test_a_written_value_has_a_type(written: str, value: str | float) -> None:
    assert parse_filter(f"x = {written}") == Equal("x", value)


# Time


@pytest.mark.parametrize(
    ("text", "low", "high", "include_low", "include_high"),
    [
        ("= 2026-03-01", seconds(2026, 3, 1), seconds(2026, 3, 2), True, False),
        (">= 2026-03-01", seconds(2026, 3, 1), None, True, True),
        ("> 2026-03-01", seconds(2026, 3, 2), None, True, True),
        ("<= 2026-03-01", None, seconds(2026, 3, 2), True, False),
        ("< 2026-03-01", None, seconds(2026, 3, 1), True, False),
        ("> 2026-03-01T10:00", seconds(2026, 3, 1, 10), None, False, True),
        ("between 2026-03-01 and 2026-03-02", seconds(2026, 3, 1), seconds(2026, 3, 3), True, False),
        ("> 2026-03-01 and < 2026-03-05", seconds(2026, 3, 2), seconds(2026, 3, 5), True, False),
        ("= today", seconds(2026, 3, 10), seconds(2026, 3, 11), True, False),
        ('< "Yesterday"', None, seconds(2026, 3, 9), True, False),
        ('= "last 7 days"', seconds(2026, 3, 3, 12), NOW.timestamp(), True, True),
        ('= "LAST  24 hours"', seconds(2026, 3, 9, 12), NOW.timestamp(), True, True),
        ('>= "last 2 weeks"', seconds(2026, 2, 24, 12), None, True, True),
        ('> "last 1 day"', seconds(2026, 3, 9, 12), None, False, True),
        ('< "last 30 minutes"', None, seconds(2026, 3, 10, 11, 30), True, False),
        ("<= 9999-12-31", None, seconds(9999, 12, 31) + 86_400, True, False),
    ],
)
def test_a_time_becomes_a_range(
    text: str, low: float | None, high: float | None, include_low: bool, include_high: bool
) -> None:
    expression = parse_filter(f"timestamp {text}", now=NOW)
    assert expression == Range("timestamp", low, high, include_low, include_high)
    assert parse_filter(str(expression)) == expression


def test_a_list_may_mix_days_and_times_in_any_order() -> None:
    time = datetime(2026, 3, 1, 10, tzinfo=timezone(timedelta(hours=1)))
    values: list[Value] = ["today", time, date(2026, 3, 1), "yesterday"]
    expression = field("timestamp", now=NOW).is_in(values)
    assert expression == field("timestamp", now=NOW).is_in(reversed(values))
    for day, found in (
        (time, True),
        (datetime(2026, 3, 1), True),
        (NOW, True),
        (datetime(2026, 3, 8), False),
    ):
        assert matches(expression, Record(id="r", text="words", timestamp=day)) is found


# Errors and their positions


@pytest.mark.parametrize(
    ("text", "position", "advice"),
    [
        ("a = ", 4, "Expected a value, not the end"),
        ("a", 1, "Expected = !="),
        ("a = 1 b", 6, "quote a text"),
        ("a = 1 and", 9, "Expected a field name"),
        ("(a = 1", 6, "to close the parenthesis"),
        ("a = 1)", 5, "'and', 'or' or the end"),
        ('a = "open', 4, "never closed"),
        ("`open = 1", 0, "never closed"),
        (r'a = "x\q"', 6, "Unknown escape"),
        (r'a = "x\ud800y"', 6, "surrogate"),
        (r'a = "\udc00\ud800"', 5, "surrogate"),
        ("a ! b", 2, "write != or not"),
        ('"a" = 1', 0, "backticks"),
        ("a = `b`", 4, "double quotes"),
        ("and = 1", 0, "written `and`"),
        ("a = or", 4, "needs quotes"),
        ("a..b = 1", 0, "must not be empty"),
        ("a in 1", 5, "a list such as"),
        ("a in (1 2)", 8, "',' after a value"),
        ("a in (1]", 7, "',' after a value"),
        ("a between 1 or 2", 12, "between the two bounds"),
        ("a > 1 and > 2", 10, "Expected a field name"),
        ("a not = 1", 6, "between, exists, has, like"),
        ("a like", 6, "Expected a value, not the end"),
        ("a like and", 7, "needs quotes"),
        (r"b = 1 and path like c:\docs", 20, "lone backslash"),
        ("timestamp like 2026", 15, "holds numbers"),
        ("tags has_all a", 13, "after 'has_all'"),
        ("a = 1e999", 4, "infinity"),
        ("a >= true", 2, "use equality"),
        ("a between 1 and x", 2, "of one type"),
        ("timestamp in (today, noon)", 21, "'last 7 days'"),
        ("b = 1 and timestamp > soon", 22, "2026-03-01"),
        ("a = \ud800", 4, "surrogate"),
        ("all(a = 1 b = 2)", 10, "between the parts"),
    ],
)
def test_an_error_has_a_position_and_advice(text: str, position: int, advice: str) -> None:
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert caught.value.position == position
    assert caught.value.text == text
    assert advice in str(caught.value)


SIGNS = [*"`\"'\\()[],=<>!. \n\x00é😀\ud800", ">=", "!=", "\\u", "d800"]
KEYWORDS = [
    "like",
    "icontains",
    "has",
    "has_all",
    "and",
    "or",
    "not",
    "in",
    "exists",
    "between",
    "all",
    "any",
    "true",
]
WORDS = ["a", "kind", "timestamp", "metadata.", "1", "-2.5", "1e999", "2026-01-01", "last 7 days", "today"]
pieces = st.lists(st.sampled_from(SIGNS + KEYWORDS + WORDS), max_size=24)


def parse_or_error(text: str) -> Filter | FilterError:
    try:
        return parse_filter(text)
    except FilterError as error:
        return error


@given(st.text() | pieces.map(" ".join) | pieces.map("".join))
def test_any_text_parses_or_raises_an_error_with_a_position(text: str) -> None:
    outcome = parse_or_error(text)
    if isinstance(outcome, FilterError):
        assert outcome.text == text
        assert outcome.position is not None
        assert 0 <= outcome.position <= len(text)
    else:
        assert parse_filter(str(outcome)) == outcome


# Hostile texts


@pytest.mark.parametrize(
    "text",
    [
        "(" * 30_000,
        "not " * 15_000,
        "not(" * 15_000,
        "all(" * 15_000,
        "(" * 20_000 + "a=1" + ")" * 20_000,
        "a=1 and (" * 7_000,
        "`a`" * 20_000,
        "a" + ".b" * 30_000 + "=1 and",
        "a in (" + "1," * 12_000 + "1",
        "'" + "\\n" * 30_000,
        " or ".join(["a=1"] * 9_000) + " or",
    ],
)
def test_a_hostile_text_is_rejected_quickly(text: str) -> None:
    started = perf_counter()
    with pytest.raises(FilterError) as caught:
        parse_filter(text)
    assert caught.value.position is not None
    assert perf_counter() - started < 10


def test_the_nesting_of_a_text_is_limited() -> None:
    for opening, closing in (("(", ")"), ("not ", ""), ("all(", ")")):
        parse_filter(opening * MAX_DEPTH + "a = 1" + closing * MAX_DEPTH)
        with pytest.raises(FilterError, match="nested deeper"):
            parse_filter(opening * (MAX_DEPTH + 1) + "a = 1" + closing * (MAX_DEPTH + 1))


@pytest.mark.parametrize("letter", ["x", "é", "😀"])
def test_a_text_is_at_most_64_kib_long(letter: str) -> None:
    count = (MAX_TEXT_BYTES - len('a = ""')) // len(letter.encode())
    assert parse_filter(f'a = "{letter * count}"') == Equal("a", letter * count)
    with pytest.raises(FilterError, match="longer than 65,536 bytes") as caught:
        parse_filter(f'a = "{letter * (count + 1)}"')
    assert caught.value.position is not None
    assert caught.value.position <= count + len('a = ""')


def test_a_text_has_at_most_ten_thousand_conditions() -> None:
    parse_filter(" or ".join(["a=1"] * 8_000))
    with pytest.raises(FilterError, match="more than 10,000"):
        parse_filter("a in (" + ",".join(map(str, range(10_001))) + ")")


def test_hostile_nesting_is_rejected_without_a_recursion_error() -> None:
    nested: dict[str, object] = {"a": 1}
    joined: dict[str, object] = {"a": 1}
    for _ in range(100_000):
        nested, joined = {"not": nested}, {"and": [joined]}
    cyclic: dict[str, object] = {}
    cyclic["or"] = [cyclic, {"a": 1}]
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    for hostile in (nested, joined, cyclic, {"a": deep}, {"a": {"eq": deep}}, {"timestamp": deep}):
        with pytest.raises(FilterError):
            parse_filter(hostile)
    grown: Filter = Equal("a", 1)
    for _ in range(MAX_DEPTH):
        grown = ~grown
    with pytest.raises(FilterError, match="nested deeper"):
        Not(grown)
    assert parse_filter(str(grown)) == grown


def test_a_filter_has_at_most_ten_thousand_values() -> None:
    assert len(In("a", tuple(range(MAX_NODES))).values) == MAX_NODES
    doubled: dict[str, object] = {}
    for _ in range(60):
        doubled = {"and": [doubled, doubled]}
    for hostile in ({"a": list(range(MAX_NODES + 1))}, {"or": [{"a": 1}] * (MAX_NODES + 1)}, doubled):
        with pytest.raises(FilterError, match="more than 10,000"):
            parse_filter(hostile)
