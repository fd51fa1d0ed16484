"""Filters: the three forms agree, conditions have their documented meaning, and `flatten` agrees with `matches`."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.errors import FilterError
from sennit.filters import (
    EVERYTHING,
    NOTHING,
    And,
    Equal,
    Exists,
    Filter,
    In,
    Like,
    Not,
    Or,
    Range,
    Scalar,
    canonical_name,
    field,
    field_path,
    field_values,
    fields_of,
    filter_to_dict,
    flatten,
    matches,
    parse_filter,
)
from sennit.records import Record

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def record(metadata: Mapping[str, Any] | None = None, **fields: Any) -> Record:
    return Record(**{"id": "r", "text": "words", "metadata": metadata or {}, **fields})


# Few keys and values, so that random filters match random records.
words = st.sampled_from(["a", "b", "a.b", "kind", "metadata", "in", "x y", "`", "\\", "é\n"])
scalars: st.SearchStrategy[Scalar] = (
    st.booleans()
    | st.integers(-2, 2)
    | st.sampled_from([0.5, 1.0, -0.0, 1e300, 2**63, -(2**63), 10**30])
    | st.sampled_from(["", "a", "b", "true", "1", "note", '"\\', "😀"])
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
)
names = st.one_of(
    st.sampled_from(["id", "kind", "title", "position", "scope", "path", "parent"]),
    st.lists(words, min_size=1, max_size=3).map(lambda path: canonical_name(("metadata", *path))),
)
timestamps = st.datetimes(max_value=datetime(9999, 12, 31), timezones=st.just(UTC)).map(
    datetime.timestamp
) | st.integers(0, 3).map(float)
ordered = st.one_of(
    scalars.filter(lambda v: not isinstance(v, bool)).map(lambda v: (v, v)), st.just(("a", "b"))
)
bounds = st.one_of(
    ordered, st.just((-1, 1.5)), ordered.map(lambda b: (b[0], None)), ordered.map(lambda b: (None, b[1]))
)
patterns = st.lists(
    st.sampled_from(["*", "?", "\\*", "\\?", "\\\\", "a", "b", "n", "O", "ß", "é", "\n", "/", "[", '"']),
    max_size=5,
).map("".join)
leaves: st.SearchStrategy[Filter] = st.one_of(
    st.builds(Like, names.filter(lambda name: name != "position"), patterns, st.booleans()),
    st.builds(Equal, names, scalars),
    st.builds(In, names, st.lists(scalars, max_size=4).map(tuple)),
    st.builds(
        lambda n, b, low, high: Range(n, b[0], b[1], low, high), names, bounds, st.booleans(), st.booleans()
    ),
    st.builds(Exists, names | st.just("timestamp")),
    st.builds(Equal, st.just("timestamp"), timestamps),
    st.builds(In, st.just("timestamp"), st.lists(timestamps, max_size=3).map(tuple)),
    st.builds(Range, st.just("timestamp"), timestamps, timestamps, st.booleans(), st.booleans()),
)
filters: st.SearchStrategy[Filter] = st.recursive(
    leaves,
    lambda below: st.one_of(
        st.builds(Not, below),
        st.builds(And, st.lists(below, max_size=3).map(tuple)),
        st.builds(Or, st.lists(below, max_size=3).map(tuple)),
    ),
    max_leaves=8,
)
json_values = st.recursive(
    scalars | st.none(),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(words, below, max_size=3),
    max_leaves=8,
)
records = st.builds(
    record,
    st.dictionaries(words, json_values, max_size=4),
    kind=st.sampled_from(["", "note", "a"]),
    title=st.sampled_from(["", "a", "b"]),
    path=st.sampled_from([None, "a"]),
    position=st.sampled_from([None, 0, 1, 2]),
    timestamp=st.none() | timestamps,
)


# The forms


@given(filters)
def test_the_text_of_a_filter_parses_back_to_an_equal_filter(expression: Filter) -> None:
    again = parse_filter(str(expression))
    assert again == expression
    assert hash(again) == hash(expression)
    assert str(again) == str(expression)


@given(filters)
def test_a_filter_survives_copying_and_pickling(expression: Filter) -> None:
    assert copy.deepcopy(expression) == pickle.loads(pickle.dumps(expression)) == expression


times = st.sampled_from(
    ["2026-03-01", "2026-03-01T10:00:00Z", "today", "yesterday", "last 7 days", "last 24 hours"]
)


@given(
    st.tuples(names, scalars) | st.tuples(st.just("timestamp"), times),
    st.sampled_from([("eq", "="), ("ne", "!="), ("gt", ">"), ("gte", ">="), ("lt", "<"), ("lte", "<=")]),
)
def test_dict_operator_and_text_forms_agree(condition: tuple[str, Scalar], test: tuple[str, str]) -> None:
    (name, value), (word, sign) = condition, test
    if isinstance(value, bool) and word not in ("eq", "ne"):
        return
    subject = field(name, now=NOW)
    built: dict[str, Filter] = {"eq": subject == value, "ne": subject != value}
    if not isinstance(value, bool):
        built |= {
            "gt": subject > value,
            "gte": subject >= value,
            "lt": subject < value,
            "lte": subject <= value,
        }
    written = str(Equal("x", value)).removeprefix("x = ")
    named = str(Exists(name)).removeprefix("exists ")
    for form in ({name: {word: value}}, {name: {f"${word}": value}}, f"{named} {sign} {written}"):
        assert parse_filter(form, now=NOW) == built[word]


@pytest.mark.parametrize(
    ("as_dict", "as_text", "built"),
    [
        ({"artifact_type": "note"}, "artifact_type = note", field("artifact_type") == "note"),
        ({"tags": ["b", "a"]}, "tags in (a, b)", field("tags").is_in(["a", "b"])),
        ({"tags": {"nin": ["a"]}}, "tags not in (a)", ~field("tags").is_in(["a"])),
        ({"tags": {"$not_in": ["a"]}}, "tags not in (a)", ~field("tags").is_in(["a"])),
        ({"path": {"like": "docs/*"}}, "path like docs/*", field("path").like("docs/*")),
        ({"a": {"not_like": "x"}}, "a not like x", ~field("a").like("x")),
        ({"a": {"$starts_with": "x*"}}, "a starts_with x*", field("a").starts_with("x*")),
        ({"a": {"ends_with": ".md"}}, "a ENDS_WITH .md", field("a").ends_with(".md")),
        ({"a": {"not_icontains": "X"}}, "a not icontains x", ~field("a").contains("x", ignore_case=True)),
        ({"a": {"contains": "1.20"}}, "a contains 1.20", field("a").contains("1.20")),
        ({"like": {"like": "like"}}, "like like like", field("like").like("like")),
        ({"tags": {"has": "a"}}, "tags has a", field("tags").has("a")),
        ({"tags": {"not_has": 1}}, "tags not has 1", ~field("tags").has(1)),
        ({"tags": {"has_any": ["a", "b"]}}, "tags has_any (b, a)", field("tags").has_any(["a", "b"])),
        ({"tags": {"has_all": ["a", "b"]}}, "tags has_all [a, b]", field("tags").has_all(["a", "b"])),
        ({"tags": {"has_all": ["a"]}}, "tags = a", field("tags").has_all(["a"])),
        ({"tags": {"has_all": []}}, "tags has_all ()", EVERYTHING),
        ({"a": {"exists": False}}, "not exists a", ~field("a").exists()),
        ({"a": {"between": [1, 5]}}, "a between 1 and 5", field("a").between(1, 5)),
        ({"a": {"gte": 1, "lt": 5}}, "a >= 1 and a < 5", (field("a") >= 1) & (field("a") < 5)),
        ({"a": 1, "b": 2}, "a = 1 and b = 2", (field("a") == 1) & (field("b") == 2)),
        (
            {"$or": [{"a": 1}, {"not": {"b": 2}}]},
            "a = 1 or not b = 2",
            (field("a") == 1) | ~(field("b") == 2),
        ),
        ({"and": [{"a": 1}, Equal("b", 2)]}, "a = 1 and b = 2", (field("a") == 1) & (field("b") == 2)),
        ({"metadata.and": 1}, "`and` = 1", field("and") == 1),
        ({"timestamp": date(2026, 1, 1)}, "timestamp = 2026-01-01", field("timestamp") == date(2026, 1, 1)),
        ({}, "", EVERYTHING),
        ({"or": []}, "any()", NOTHING),
    ],
)
def test_the_three_forms_are_equal(as_dict: dict[str, object], as_text: str, built: Filter) -> None:
    assert parse_filter(as_dict) == parse_filter(as_text) == parse_filter(built) == built


def test_no_filter_matches_everything() -> None:
    assert parse_filter(None) == EVERYTHING
    assert matches(EVERYTHING, record())
    assert not matches(NOTHING, record())


@pytest.mark.parametrize(
    ("wrong", "advice"),
    [
        ({"a": {"near": 1}}, "'near'.*Known: eq, ne, in, not_in, nin, gt, gte, lt, lte.*has_all.*icontains"),
        ({"a": {"like": 1}}, "takes a text, not int"),
        ({"a": {"contains": ["x"]}}, "takes a text, not list.*has_any"),
        ({"a": {"has_all": "x"}}, "takes a list"),
        ({"a": {"has": ["x"]}}, "list.*`in`"),
        ({"a": {"like": "x\\"}}, "lone backslash"),
        ({"a": {"like": "c:\\docs"}}, "lone backslash"),
        ({"a": {"like": "x" * 3000}}, "3,000 characters.*2,048"),
        ({"a": {"contains": "\ud800"}}, "surrogate"),
        ({"timestamp": {"like": "2026*"}}, "holds numbers"),
        ({"position": {"starts_with": "1"}}, "holds numbers"),
        ({"$nor": []}, r"'\$nor'.*\$and, \$or, \$not"),
        ({"and": {"a": 1}}, "list of conditions.*metadata.and"),
        ({"not": [{"a": 1}]}, "Expected an object"),
        ({"a": None}, "null.*exists"),
        ({"a": {}}, "empty"),
        ({"a": {"exists": 1}}, "true or false"),
        ({"a": {"in": "b"}}, "takes a list"),
        ({"a": {"eq": ["b"]}}, "list.*`in`"),
        ({"a": {"between": [1]}}, "lowest and the highest"),
        ({"a": {"gte": True}}, "use equality"),
        ({"a": float("nan")}, "NaN"),
        ({"a": float("-inf")}, "infinity"),
        ({"a": 10**400}, "too large"),
        ({"a": 10**5000}, "too large"),
        ({"a": "\ud800"}, "surrogate"),
        ({"a": datetime(2026, 1, 1)}, "timestamp"),
        ({1: 2}, "must be a string"),
        ({"timestamp": "soon"}, "last 7 days"),
        ({"timestamp": True}, "bool"),
        ({"timestamp": 1_767_225_600_000}, "seconds since 1970"),
        ({"timestamp": 10**5000}, "seconds since 1970"),
        ({"timestamp": "last 999999999 weeks"}, "year 1"),
        (["a"], "Expected an object"),
    ],
)
def test_a_malformed_filter_is_rejected_with_advice(wrong: Any, advice: str) -> None:
    with pytest.raises(FilterError, match=f"(?s){advice}"):
        parse_filter(wrong)


def test_nodes_accept_times_in_seconds_only() -> None:
    with pytest.raises(FilterError, match="field"):
        Equal("timestamp", "2026-01-01")


def test_a_filter_has_no_truth_value() -> None:
    with pytest.raises(FilterError, match=r"with & \| ~"):
        bool(Equal("a", 1))
    with pytest.raises(FilterError):
        1 < field("a") < 5  # noqa: B015


def test_filters_are_equal_by_meaning_and_true_is_not_one() -> None:
    assert In("a", (2, 1, 1.0)) == In("metadata.a", (1, 2))
    assert Equal("a", 1.0) == Equal("a", 1)
    assert str(Equal("a", 1.0)) == "a = 1"
    assert And((And((Equal("a", 1),)), Equal("b", 2))) == And((Equal("a", 1), Equal("b", 2)))
    assert len({Equal("a", 1), Equal("a", True), Equal("a", "1"), In("a", (1,)), In("a", (True,))}) == 5


def test_patterns_are_equal_by_meaning() -> None:
    assert field("a").contains("x*") == Like("a", r"*x\**") == Like("metadata.a", r"***x\***")
    assert field("a").starts_with("") == field("a").contains("") == Like("a", "*")
    assert (
        Like("a", "STRASSE", ignore_case=True)
        == Like("a", "straße", ignore_case=True)
        != Like("a", "strasse")
    )


def test_fields_of_a_filter_are_distinct() -> None:
    expression = parse_filter("not (a.b = 1 or metadata.kind exists) and kind in (x) and metadata.a.b > 2")
    assert fields_of(expression) == {"a.b", "metadata.kind", "kind"}
    assert fields_of(EVERYTHING) == frozenset()


# Meaning


SUBJECT = record(
    {"flag": True, "one": 1, "word": "c", "tags": ["x", ["y"], None], "sizes": [1, 9], "huge": 10**400}
    | {"people": [{"name": "Ana"}, {"name": ["Bo"]}], "nested": {"deep": {"er": 1}}, "a.b": "dotted"}
    | {"nothing": None, "empty": [], "blank": "", "kind": "other"},
    kind="note",
    position=0,
)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("flag = true", True),
        ("flag = 1", False),
        ("one = 1", True),
        ("one = 1.0", True),
        ("one = true", False),
        ("one = '1'", False),
        ("one in (true, '1')", False),
        ("one < a", False),
        ("word > 1", False),
        ("word >= b and < d", True),
        ("flag >= 0", False),
        ("tags = x", True),
        ("tags in (q, y)", True),
        ("tags = x and tags = y", True),
        ("tags != x", False),
        ("sizes >= 5 and sizes <= 2", True),
        ("sizes between 2 and 5", False),
        ("people.name = Ana", True),
        ("people.name = Bo", True),
        ("nested.deep.er = 1", True),
        ("`nested.deep`.er = 1", False),
        ("`a.b` = dotted", True),
        ("a.b = dotted", False),
        ("exists nothing", False),
        ("nothing = 0", False),
        ("nothing != 0", True),
        ("missing != 0", True),
        ("exists missing", False),
        ("exists nested", False),
        ("exists empty", False),
        ("blank = ''", True),
        ("exists title", False),
        ("kind = note and metadata.kind = other", True),
        ("sensitivity = normal and scope = public and collection = default", True),
        ("position = 0", True),
        ("position = false", False),
        (f"huge > {10**30}", True),
        ("word like c", True),
        ("word like C", False),
        ("word ilike C", True),
        ("people.name starts_with A", True),
        ("people.name contains o", True),
        ("people.name not contains o", False),
        ("people.name ends_with na", True),
        ("tags like '?'", True),
        ("one like '*'", False),
        ("flag contains true", False),
        ("blank like ''", True),
        ("blank like '*'", True),
        ("missing contains ''", False),
        ("missing not contains x", True),
        ("title contains ''", False),
        ("tags has_all (x, y)", True),
        ("tags has_all (x, z)", False),
        ("tags has_any (z, y)", True),
        ("tags has y", True),
        ("sizes has 9", True),
        ("sizes has '9'", False),
    ],
)
def test_a_condition_matches_a_record(text: str, holds: bool) -> None:
    assert matches(parse_filter(text), SUBJECT) is holds


@given(filters, filters, records)
def test_de_morgan(one: Filter, other: Filter, subject: Record) -> None:
    assert matches(~(one & other), subject) == matches(~one | ~other, subject)
    assert matches(~(one | other), subject) == matches(~one & ~other, subject)
    assert matches(~~one, subject) == matches(one, subject)


def matches_pairs(pairs: list[tuple[str, Scalar]], expression: Filter) -> bool:
    """A second evaluator, over flattened pairs, as in the index of a backend."""
    match expression:
        case And(parts):
            return all(matches_pairs(pairs, part) for part in parts)
        case Or(parts):
            return any(matches_pairs(pairs, part) for part in parts)
        case Not(part):
            return not matches_pairs(pairs, part)
    values = [(type_of(value), value) for name, value in pairs if name == expression.field]
    match expression:
        case Exists():
            return bool(values)
        case Equal(_, value):
            return (type_of(value), value) in values
        case In(_, choices):
            return any((type_of(choice), choice) in values for choice in choices)
        case Range(_, low, high, include_low, include_high):
            kind = type_of(high if low is None else low)
            same: list[Any] = [value for found, value in values if found == kind]
            same = [v for v in same if low is None or v > low or (include_low and v == low)]
            return any(high is None or v < high or (include_high and v == high) for v in same)
        case Like(_, pattern, ignore_case):
            texts = [value for _, value in values if isinstance(value, str)]
            return any(fits(text, pattern, ignore_case) for text in texts)


def fits(text: str, pattern: str, ignore_case: bool) -> bool:
    """Whether a text fits a pattern of `like`, by a regular expression."""
    if ignore_case:
        text, pattern = text.casefold(), pattern.casefold()
    wildcards = {"*": ".*", "?": "."}
    pieces = re.findall(r"\\.|.", pattern, re.DOTALL)
    return bool(
        re.fullmatch("".join(wildcards.get(one, re.escape(one[-1])) for one in pieces), text, re.DOTALL)
    )


def type_of(value: Scalar | None) -> str:
    return "bool" if isinstance(value, bool) else "text" if isinstance(value, str) else "number"


@given(filters, records)
def test_matches_agrees_with_an_evaluation_over_flatten(expression: Filter, subject: Record) -> None:
    assert matches(expression, subject) == matches_pairs(list(flatten(subject)), expression)


@given(timestamps)
def test_a_record_is_found_by_its_timestamp(timestamp: float) -> None:
    subject = record(timestamp=timestamp)
    assert matches(field("timestamp") == timestamp, subject)
    assert subject.timestamp is not None
    assert matches(field("timestamp") == subject.timestamp.isoformat(), subject)


# Flatten


def with_types(values: Iterator[Any]) -> set[tuple[str, Any]]:
    return {(type_of(value[1] if isinstance(value, tuple) else value), value) for value in values}


@given(records)
def test_flatten_and_field_values_agree_for_every_canonical_name(subject: Record) -> None:
    pairs = list(flatten(subject))
    assert len(with_types(iter(pairs))) == len(pairs)
    for name in {name for name, _ in pairs}:
        assert canonical_name(field_path(name)) == name
        found = with_types(value for other, value in pairs if other == name)
        assert found == with_types(field_values(subject, field_path(name)))


@given(records)
def test_flatten_does_not_depend_on_the_order_of_keys(subject: Record) -> None:
    again = Record.from_dict({**subject.to_dict(), "metadata": dict(reversed([*subject.metadata.items()]))})
    assert [*map(repr, flatten(again))] == [*map(repr, flatten(subject))]


def test_flatten_yields_distinct_pairs_in_order() -> None:
    subject = record(
        {
            "tags": ["b", "a", "b", 1, True, 1.0],
            "source": {"system": "mail", "a.b": 2.5},
            "id": "other",
            "no": None,
        },
        timestamp=NOW,
        position=0,
        url="https://example.org",
    )
    assert list(flatten(subject)) == [
        ("id", "r"),
        ("collection", "default"),
        ("url", "https://example.org"),
        ("position", 0),
        ("timestamp", NOW.timestamp()),
        ("sensitivity", "normal"),
        ("scope", "public"),
        ("metadata.id", "other"),
        (r"source.a\.b", 2.5),
        ("source.system", "mail"),
        ("tags", "b"),
        ("tags", "a"),
        ("tags", 1),
        ("tags", True),
    ]


@pytest.mark.parametrize(
    "text",
    [
        'kind = "note"',
        'kind = "note" and (tags in ("a", "b") or not exists year)',
        'path like "docs/*" and title ilike "*x*"',
        "year between 3 and 5 or year >= 7",
        "timestamp = 2026-03-01",
        "all()",
        "any()",
        "`and` = 1",
    ],
)
def test_dict_form_reads_back(text: str) -> None:
    given = parse_filter(text)
    assert str(parse_filter(filter_to_dict(given))) in (
        str(given),
        str(given).replace(" and <", " and timestamp <"),
    )
