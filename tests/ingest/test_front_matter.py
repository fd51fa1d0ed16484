"""Front matter: the values of YAML and TOML, and the line where the page starts."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.ingest.chunk import split_lines
from sennit.ingest.markdown.front_matter import MAX_CHARS, parse_front_matter

yaml = import_module("yaml")  # the reference; it has no type stubs


def read(text: str) -> tuple[dict[str, Any], int]:
    return parse_front_matter(split_lines(text))


@pytest.mark.parametrize(
    "inside",
    [
        "title: Hello",
        'title: "Hello: world"',
        "title: 'It''s'",
        "title: Hello # a comment",
        "title: a#b",
        'title: "tab\\tand \\u00e9"',
        "draft: true\nother: false\nnone: null\nempty:\ntilde: ~",
        "weight: 10\nnegative: -3\nratio: 2.5",
        "tags: [a, 'b c', \"d, e\", 4]",
        "tags:\n  - a\n  - b c\n  - 'd: e'",
        "tags:\n- a\n- b\nnext: 1",
        "nested:\n  one: 1\n  two:\n    three: x\nafter: y",
        "map: {a: 1, b: [x, y]}",
        "list:\n  - name: a\n    size: 1\n  - name: b",
        "text: |\n  one\n    two\n\n  three",
        "text: >-\n  one\n  two\n\n  three",
        "long: this goes\n  on here\nnext: 1",
        "quoted key: 1\n'other key': 2",
        "url: https://example.org/a#b",
        "# only a comment\ntitle: x",
        "empty_list: []\nempty_map: {}",
    ],
)
def test_values_equal_those_of_a_yaml_parser(inside: str) -> None:
    values, end = read(f"---\n{inside}\n---\ntext\n")
    expected = {
        key: value.rstrip("\n") if isinstance(value, str) else value
        for key, value in yaml.safe_load(inside).items()
    }
    assert values == expected
    assert end == inside.count("\n") + 3


PLAIN = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=20)
# YAML 1.1 reads these as booleans or null, even as keys; in front matter they are words.
KEYS = st.from_regex(r"[a-z]{1,8}", fullmatch=True).filter(
    lambda key: key not in ("y", "n", "yes", "no", "on", "off", "true", "false", "null")
)
VALUES = st.recursive(
    st.one_of(st.booleans(), st.integers(-(10**9), 10**9), PLAIN),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.dictionaries(KEYS, inner, min_size=1, max_size=4),
    ),
    max_leaves=12,
)


@given(
    values=st.dictionaries(KEYS, VALUES, min_size=1, max_size=5),
    flow=st.booleans(),
)
def test_dumped_yaml_is_read_back(values: dict[str, Any], flow: bool) -> None:
    if flow:
        inside = "".join(
            f"{key}: {yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10**6).removesuffix(chr(10)).removesuffix('...').strip()}\n"
            for key, value in values.items()
        )
    else:
        inside = yaml.safe_dump(values, default_flow_style=False, allow_unicode=True, width=10**6)
    assert read(f"---\n{inside}---\n")[0] == yaml.safe_load(inside)


@given(st.text(max_size=200))
def test_any_text_in_front_matter_is_accepted(inside: str) -> None:
    values, end = read(f"---\nkey: 1\n{inside}\n---\n")
    assert end > 0
    assert isinstance(values, dict)


def test_toml_between_plus_signs_is_read() -> None:
    values, end = read(
        '+++\ntitle = "T"\ntags = ["a", "b"]\ndate = 2024-05-01\n[params]\nx = 1.5\n+++\ntext\n'
    )
    assert values == {"title": "T", "tags": ["a", "b"], "date": "2024-05-01", "params": {"x": 1.5}}
    assert end == 7


@pytest.mark.parametrize(
    "text",
    [
        "",
        "text\n",
        "---\n",
        "---\ntext without a key\n\n---\nmore\n",
        "---\ntitle: x\n",
        "+++\nnot toml\n+++\n",
        "\n---\na: 1\n---\n",
    ],
)
def test_a_page_without_valid_front_matter_has_none(text: str) -> None:
    assert read(text) == ({}, 0)


@pytest.mark.parametrize(
    ("inside", "values"),
    [
        ("title: Retries: a guide\ntags: [a, b]", {"title": "Retries: a guide", "tags": ["a", "b"]}),
        ("title: [Draft] Retries\norder: 3", {"title": "[Draft] Retries", "order": 3}),
        ("title: @home\nurl: /a", {"title": "@home", "url": "/a"}),
        ("title: 'It's broken\nurl: /a", {"title": "'It's broken", "url": "/a"}),
        ("title: a\n\tbad: tab\nurl: /a", {"title": "a bad: tab", "url": "/a"}),
        ("title: a\x00b\nurl: /a", {"title": "a\x00b", "url": "/a"}),
    ],
)
def test_invalid_yaml_loses_neither_the_page_nor_the_other_values(
    inside: str, values: dict[str, Any]
) -> None:
    assert read(f"---\n{inside}\n---\ntext\n")[0] == values


def test_words_dates_and_times_are_text() -> None:
    inside = "country: no\non: push\ndate: 2024-05-01\nat: 10:30\nversion: 007"
    assert read(f"---\n{inside}\n---\n")[0] == {
        "country": "no", "on": "push", "date": "2024-05-01", "at": "10:30", "version": "007",
    }  # fmt: skip


def test_the_last_of_two_equal_keys_counts() -> None:
    assert read("---\ntitle: a\ntitle: b\n---\n")[0] == {"title": "b"}


def test_aliases_are_expanded_up_to_a_number_of_values() -> None:
    assert read("---\na: &x [1, 2]\nb: *x\n---\n")[0] == {"a": [1, 2], "b": [1, 2]}
    levels = "\n".join(f"k{n}: &k{n} [{', '.join([f'*k{n - 1}'] * 9)}]" for n in range(1, 12))
    values, end = read(f"---\ntitle: T\nk0: &k0 [x, x]\n{levels}\n---\ntext\n")
    assert values["title"] == "T"
    assert end == 15
    assert len(str(values)) < 1000
    assert read("---\ntitle: T\na: &a [*a]\n---\n")[0]["title"] == "T"


def test_a_tag_creates_no_object() -> None:
    values, _ = read("---\ntitle: T\na: !!python/object/apply:os.getcwd []\n---\n")
    assert values == {"title": "T", "a": "!!python/object/apply:os.getcwd []"}


def test_long_and_deep_front_matter_is_not_read() -> None:
    assert read(f"---\na: {'x' * MAX_CHARS}\n---\ntext\n") == ({}, 3)
    deep = "[" * 500 + "]" * 500
    assert read(f"---\ntitle: T\na: {deep}\n---\n")[0] == {"title": "T", "a": deep}
