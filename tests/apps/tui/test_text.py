"""Text on the screen, whoever wrote it: harmless, and never wider than its place."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from sennit.apps.tui.text import (
    MATCH,
    MOST_CHARACTERS,
    around,
    beside,
    brief,
    excerpt,
    fitted,
    marked,
    safe,
    spans_of,
    tail,
    wrapped,
)

ANY = st.text(st.characters(codec="utf-8"), max_size=300)
PIECES = (
    "a b", "\t", "\x1b[31m", "\x00\x07", "\r\n", "\u202e\u2066", "\u2028", "漢字", "👩", "\u200d", "é\u0301", "\u200f",
    "\u200b", "\U000e0041",
)  # fmt: skip
ODD = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
LINES = st.one_of(ANY, ODD)
WIDTHS = st.integers(1, 120)


@given(LINES)
def test_no_character_of_a_line_steers_a_terminal(text: str) -> None:
    for shown in (safe(text), brief(text)):
        assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Zl", "Zp")]
        assert not [c for c in shown if unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF")]
        assert not [c for c in shown if unicodedata.bidirectional(c) in ("LRI", "RLI", "FSI", "PDI")]


def test_a_line_without_end_is_cut_and_says_so() -> None:
    shown = safe("x" * 10_000_000)
    assert shown.startswith("x" * MOST_CHARACTERS + " …")
    assert shown.endswith("9,998,000 more characters")


@given(LINES, WIDTHS)
def test_wrapping_loses_nothing_and_fits(text: str, width: int) -> None:
    line = Text(safe(text))
    rows = list(wrapped(line, width))
    assert "".join(row.plain for row in rows).replace(" ", "") == line.plain.replace(" ", "")
    assert all(row.cell_len <= width for row in rows if width > 1)


@given(LINES, LINES, WIDTHS)
def test_what_is_fitted_fits(left: str, right: str, width: int) -> None:
    start, end = Text(safe(left)), Text(safe(right))
    assert fitted(start, width).cell_len <= width
    assert cell_len(tail(start.plain, width)) <= width
    assert beside(start, end, width).cell_len <= width
    if width > 2:
        spans = spans_of(start.plain, right)
        assert around(start.plain, spans, width).cell_len <= width


@given(LINES, st.text("abc ", max_size=20), st.integers(10, 100), st.integers(1, 3))
def test_an_excerpt_has_its_rows_and_its_width(text: str, query: str, width: int, rows: int) -> None:
    drawn = excerpt(text, query, width, rows)
    assert len(drawn) <= rows
    assert all(row.cell_len <= width for row in drawn)


def test_blanks_are_where_lines_break() -> None:
    assert [row.plain for row in wrapped(Text("one two three"), 8)] == ["one two ", "three"]
    assert [row.plain for row in wrapped(Text("abcdefghijkl"), 5)] == ["abcde", "fghij", "kl"]


def test_the_words_of_the_question_are_marked() -> None:
    line = "Vectors are stored in half precision"
    assert [line[a:b] for a, b in spans_of(line, "how is a vector stored")] == ["Vectors", "stored"]
    assert [(span.start, span.end) for span in marked(line, [(0, 7)]).spans if span.style == MATCH] == [
        (0, 7)
    ]


def test_keywords_are_marked_as_they_were_searched_for() -> None:
    line = "copy_tree Copy (a+b)"
    assert [line[a:b] for a, b in spans_of(line, "x", ["copy"])] == ["copy", "Copy"]
    assert [line[a:b] for a, b in spans_of(line, "x", ["Copy"])] == ["Copy"]
    assert [line[a:b] for a, b in spans_of(line, "x", ["(a+b)"])] == ["(a+b)"]


def test_a_match_far_to_the_right_is_in_sight() -> None:
    line = "x" * 200 + " needle " + "y" * 50
    shown = around(line, spans_of(line, "needle", ["needle"]), 60)
    assert "needle" in shown.plain
    assert shown.plain.startswith("…")


def test_of_a_path_the_end_is_kept() -> None:
    assert tail("/a/long/way/to/file.py:10-20", 15) == "…/file.py:10-20"
    assert tail("short", 15) == "short"
