"""Each operator against a plain-Python oracle: in its text, dict and Python form, on one record and in a search."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sennit
from sennit.filters import Filter, field, matches, parse_filter, patterns
from sennit.filters.patterns import MAX_PATTERN_CHARACTERS, compile_pattern
from test_filters import fits

Values = Sequence[Any]
"""The values of a field: the elements of a list, or one value."""


def texts(values: Values) -> list[str]:
    return [value for value in values if isinstance(value, str)]


def folded(values: Values) -> list[str]:
    return [value.casefold() for value in texts(values)]


def same(one: object, other: object) -> bool:
    """Equality in which True is not 1, and a number equals itself in any type."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Values, Any], bool]:
    """An oracle for < and its kind: only values of the operand's type have an order."""

    def holds(values: Values, operand: Any) -> bool:
        kind = str if isinstance(operand, str) else (int, float)
        return any(
            isinstance(value, kind) and not isinstance(value, bool) and compare(value, operand)
            for value in values
        )

    return holds


class Operator(NamedTuple):
    """An operator: its operands, what it means, and how Python writes it."""

    operands: st.SearchStrategy[Any]
    oracle: Callable[[Values, Any], bool]
    python: Callable[[sennit.filters.Field, Any], Filter]
    sign: str = ""
    """Its text form, if that is not its name."""


word = st.text(st.sampled_from("abAB*?\\/ßé[]%_\n"), max_size=4)
pattern = st.lists(
    st.sampled_from(["*", "?", "\\*", "\\?", "\\\\", "a", "b", "A", "ß", "/", "[", "\n"]), max_size=6
).map("".join)
number = st.integers(-2, 2) | st.sampled_from([0.5, 1.5])
scalar = word | number | st.booleans()
bound = word | number
some = st.lists(scalar, max_size=3)

OPERATORS: dict[str, Operator] = {
    "eq": Operator(scalar, lambda vs, x: any(same(v, x) for v in vs), lambda f, x: f == x, "="),
    "ne": Operator(scalar, lambda vs, x: not any(same(v, x) for v in vs), lambda f, x: f != x, "!="),
    "in": Operator(some, lambda vs, x: any(same(v, one) for v in vs for one in x), lambda f, x: f.is_in(x)),
    "not_in": Operator(
        some, lambda vs, x: not any(same(v, one) for v in vs for one in x), lambda f, x: ~f.is_in(x), "not in"
    ),
    "lt": Operator(bound, ordered(lambda v, x: v < x), lambda f, x: f < x, "<"),
    "lte": Operator(bound, ordered(lambda v, x: v <= x), lambda f, x: f <= x, "<="),
    "gt": Operator(bound, ordered(lambda v, x: v > x), lambda f, x: f > x, ">"),
    "gte": Operator(bound, ordered(lambda v, x: v >= x), lambda f, x: f >= x, ">="),
    "has": Operator(scalar, lambda vs, x: any(same(v, x) for v in vs), lambda f, x: f.has(x)),
    "has_any": Operator(
        some, lambda vs, x: any(same(v, one) for v in vs for one in x), lambda f, x: f.has_any(x)
    ),
    "has_all": Operator(
        some, lambda vs, x: all(any(same(v, one) for v in vs) for one in x), lambda f, x: f.has_all(x)
    ),
    "like": Operator(
        pattern, lambda vs, x: any(fits(v, x, False) for v in texts(vs)), lambda f, x: f.like(x)
    ),
    "ilike": Operator(
        pattern,
        lambda vs, x: any(fits(v, x, True) for v in texts(vs)),
        lambda f, x: f.like(x, ignore_case=True),
    ),
    "not_like": Operator(
        pattern,
        lambda vs, x: not any(fits(v, x, False) for v in texts(vs)),
        lambda f, x: ~f.like(x),
        "not like",
    ),
    "starts_with": Operator(
        word, lambda vs, x: any(v.startswith(x) for v in texts(vs)), lambda f, x: f.starts_with(x)
    ),
    "istarts_with": Operator(
        word,
        lambda vs, x: any(v.startswith(x.casefold()) for v in folded(vs)),
        lambda f, x: f.starts_with(x, ignore_case=True),
    ),
    "ends_with": Operator(
        word, lambda vs, x: any(v.endswith(x) for v in texts(vs)), lambda f, x: f.ends_with(x)
    ),
    "iends_with": Operator(
        word,
        lambda vs, x: any(v.endswith(x.casefold()) for v in folded(vs)),
        lambda f, x: f.ends_with(x, ignore_case=True),
    ),
    "contains": Operator(word, lambda vs, x: any(x in v for v in texts(vs)), lambda f, x: f.contains(x)),
    "icontains": Operator(
        word,
        lambda vs, x: any(x.casefold() in v for v in folded(vs)),
        lambda f, x: f.contains(x, ignore_case=True),
    ),
}


def written(operand: Any) -> str:
    """An operand as the text form writes it."""
    if isinstance(operand, list):
        return f"({', '.join(map(written, operand))})"
    return json.dumps(operand, ensure_ascii=False)


def three_forms(name: str, operand: Any) -> list[Filter]:
    operator = OPERATORS[name]
    return [
        parse_filter(f"x {operator.sign or name} {written(operand)}"),
        parse_filter({"x": {name: operand}}),
        operator.python(field("x"), operand),
    ]


values = scalar | st.lists(scalar, max_size=3) | st.none()


@pytest.mark.parametrize("name", OPERATORS)
@given(data=st.data())
@settings(max_examples=60)
def test_an_operator_means_the_same_in_all_forms_and_what_python_says(name: str, data: st.DataObject) -> None:
    operand = data.draw(OPERATORS[name].operands)
    stored = data.draw(st.lists(values, min_size=1, max_size=6))
    forms = three_forms(name, operand)
    assert forms[0] == forms[1] == forms[2] == parse_filter(str(forms[0]))
    for value in stored:
        elements = value if isinstance(value, list) else [] if value is None else [value]
        record = sennit.Record(id="r", text="lantern", metadata={"x": value})
        assert matches(forms[0], record) is OPERATORS[name].oracle(elements, operand), (value, operand)


@given(
    st.lists(values, min_size=1, max_size=10),
    st.lists(st.sampled_from(sorted(OPERATORS)), min_size=1, max_size=6, unique=True),
    st.data(),
)
@settings(max_examples=60)
def test_a_filtered_search_finds_what_the_oracle_says(
    stored: list[Any], names: list[str], data: st.DataObject
) -> None:
    with sennit.open(":memory:", embedding__provider="none") as db:
        db.add([sennit.Record(id="known", text="-", metadata={"x": "known"})])
        db.add(
            sennit.Record(id=f"r{n}", text="lantern", metadata={"x": value}) for n, value in enumerate(stored)
        )
        for name in names:
            operand = data.draw(OPERATORS[name].operands)
            expected = {
                f"r{n}"
                for n, value in enumerate(stored)
                if OPERATORS[name].oracle(
                    value if isinstance(value, list) else [] if value is None else [value], operand
                )
            }
            found = db.search("lantern", recipe="keyword", limit=20, filters=three_forms(name, operand)[0])
            assert {hit.id for hit in found} == expected, (name, operand)


# Patterns


@given(pattern | word.map(lambda text: text.replace("\\", "")), word, st.booleans())
@settings(max_examples=500)
def test_a_pattern_matches_as_its_regular_expression(glob: str, text: str, ignore_case: bool) -> None:
    like = sennit.filters.Like("x", glob, ignore_case)
    assert compile_pattern(like.pattern, ignore_case).matches(text) == fits(text, glob, ignore_case)


@pytest.mark.parametrize(
    ("glob", "text", "holds"),
    [
        ("docs/*", "docs/a.md", True),
        ("docs/*", "docs/guide/a.md", True),
        ("docs/*", "docs/", True),
        ("docs/*", "docs", False),
        ("docs/**/*.md", "docs/guide/a.md", True),
        ("*.py", "src/a.py", True),
        ("*.py", "src/a.pyc", False),
        ("a?c", "abc", True),
        ("a?c", "ac", False),
        ("a?c", "a\nc", True),
        ("a?c", "a😀c", True),
        (r"50\*", "50*", True),
        (r"50\*", "500", False),
        (r"c:\\*", "c:\\docs", True),
        ("routes/[slug].js", "routes/[slug].js", True),
        ("routes/[slug].js", "routes/s.js", False),
        ("100%_", "100%_", True),
        ("", "", True),
        ("", "a", False),
        ("*", "", True),
        ("?*", "", False),
    ],
)
def test_a_pattern_describes_a_whole_text(glob: str, text: str, holds: bool) -> None:
    record = sennit.Record(id="r", text="words", metadata={"x": text})
    assert matches(field("x").like(glob), record) is holds


@pytest.mark.parametrize(
    "glob",
    [
        "*a" * (MAX_PATTERN_CHARACTERS // 2 - 1) + "b",
        "*" + "?" * (MAX_PATTERN_CHARACTERS - 2) + "b",
        "*a?" * (MAX_PATTERN_CHARACTERS // 3 - 1) + "b",
    ],
)
def test_a_hostile_pattern_needs_few_steps(glob: str) -> None:
    """A backtracking matcher would need longer than the age of the universe."""
    assert not matches(
        field("x").like(glob), sennit.Record(id="r", text="words", metadata={"x": "a" * 100_000})
    )


def test_a_segment_of_many_runs_is_found_in_one_pass() -> None:
    """Each of four million places fits up to the last of a thousand runs."""
    glob = "*" + "a?" * 1000 + "b*"
    assert not compile_pattern(glob, False).matches("a" * 4_000_000)
    assert compile_pattern(glob, False).matches("a" * 10_000 + "b")


@given(st.text("ab", min_size=80, max_size=200), st.text("ab?", min_size=1, max_size=12))
@settings(max_examples=200)
def test_a_scan_finds_what_a_regular_expression_finds(text: str, segment: str) -> None:
    glob = f"*{segment}*{segment}?*"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(patterns, "MAX_ATTEMPTS", 1)
        assert compile_pattern(glob, False).matches(text) == fits(text, glob, False)


def test_a_filtered_search_by_pattern_fills_its_limit() -> None:
    """The records outside the folder rank above those inside."""
    with sennit.open(":memory:") as db:
        db.add(sennit.Record(id=f"x{n}", text="oboe oboe oboe", path=f"src/{n}.py") for n in range(200))
        db.add(
            sennit.Record(id=f"k{n}", text=f"an oboe among other words {n}", path=f"docs/{n}.md")
            for n in range(12)
        )
        for recipe in ("keyword", "vector", "default"):
            found = db.search("oboe", recipe=recipe, limit=10, filters='path like "docs/*"')
            assert len(found) == 10
            assert all(hit.record.path and hit.record.path.startswith("docs/") for hit in found)
