"""Titles have no markup, attributes, closing #s or shortcodes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.ingest.markdown.titles import MAX_TITLE_CHARS, plain_title, read_heading


@pytest.mark.parametrize(
    ("source", "text", "anchor"),
    [
        ("Named { #my-id }", "Named", "my-id"),
        ("Named {: #my-id .big }", "Named", "my-id"),
        ("Named { .big #my-id key=value }", "Named", "my-id"),
        ("Named {/* #my-id */}", "Named", "my-id"),
        ("Named \\{#my-id}", "Named", "my-id"),
        ("The constructor {#a.B.__init__}", "The constructor", "a.B.__init__"),
        ("Named {#my-id} ##", "Named", "my-id"),
        ("Named ## {#my-id}", "Named", "my-id"),
        ("Styled {.big}", "Styled", "styled"),
        ("GET /users/{id}", "GET /users/{id}", "get-usersid"),
        ("The set {1, 2}", "The set {1, 2}", "the-set-1-2"),
        ("Closed ##", "Closed", "closed"),
        ("C#", "C#", "c"),
        (":rocket: Start `here`", "Start here", "rocket-start-here"),
        ("Icons :material-check:{ .large } done", "Icons done", "icons-material-check-large--done"),
        ("The `:key:` syntax", "The :key: syntax", "the-key-syntax"),
        ("std::vec::Vec at 10:30:45", "std::vec::Vec at 10:30:45", "stdvecvec-at-103045"),
        ("A note[^1]", "A note", "a-note"),
        ("[text][reference] and [brackets]", "text and [brackets]", "text-and-brackets"),
        ("list[int]", "list[int]", "listint"),
        ("~~old~~ __new__", "old new", "old-new"),
        ("`a` and `b`", "a and b", "a-and-b"),
    ],
)
def test_a_heading_has_a_plain_title_and_an_anchor(source: str, text: str, anchor: str) -> None:
    assert read_heading(source) == (text, anchor)


@given(st.text(max_size=300))
def test_any_heading_has_a_short_title_on_one_line(source: str) -> None:
    title = plain_title(source)
    assert len(title) <= MAX_TITLE_CHARS
    assert "\n" not in title
    assert title == title.strip()
