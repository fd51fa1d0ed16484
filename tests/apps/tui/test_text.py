"""Text on the screen: sanitized, and never wider than its cells."""

from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from sennit.apps.tui.text import (
    MATCH,
    MAX_LINE_CHARACTERS,
    align_right,
    best_excerpt,
    crop_around,
    find_spans,
    highlight,
    sanitize_line,
    sanitize_title,
    truncate,
    truncate_start,
    wrap_text,
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
def test_sanitized_lines_have_no_control_characters(text: str) -> None:
    for shown in (sanitize_line(text), sanitize_title(text)):
        assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Zl", "Zp")]
        assert not [c for c in shown if unicodedata.bidirectional(c) in ("LRE", "RLE", "LRO", "RLO", "PDF")]
        assert not [c for c in shown if unicodedata.bidirectional(c) in ("LRI", "RLI", "FSI", "PDI")]


def test_very_long_line_is_cut_with_a_note() -> None:
    shown = sanitize_line("x" * 10_000_000)
    assert shown.startswith("x" * MAX_LINE_CHARACTERS + " …")
    assert shown.endswith("9,998,000 more characters")


@given(LINES, WIDTHS)
def test_wrapping_keeps_the_text_and_fits(text: str, width: int) -> None:
    line = Text(sanitize_line(text))
    rows = list(wrap_text(line, width))
    assert "".join(row.plain for row in rows).replace(" ", "") == line.plain.replace(" ", "")
    assert all(row.cell_len <= width for row in rows if width > 1)


@given(LINES, LINES, WIDTHS)
def test_truncated_text_fits(left: str, right: str, width: int) -> None:
    start, end = Text(sanitize_line(left)), Text(sanitize_line(right))
    assert truncate(start, width).cell_len <= width
    assert cell_len(truncate_start(start.plain, width)) <= width
    assert align_right(start, end, width).cell_len <= width
    if width > 2:
        spans = find_spans(start.plain, right)
        assert crop_around(start.plain, spans, width).cell_len <= width


@given(LINES, st.text("abc ", max_size=20), st.integers(10, 100), st.integers(1, 3))
def test_excerpt_keeps_to_rows_and_width(text: str, query: str, width: int, rows: int) -> None:
    drawn = best_excerpt(text, query, width, rows)
    assert len(drawn) <= rows
    assert all(row.cell_len <= width for row in drawn)


def test_lines_break_at_blanks() -> None:
    assert [row.plain for row in wrap_text(Text("one two three"), 8)] == ["one two ", "three"]
    assert [row.plain for row in wrap_text(Text("abcdefghijkl"), 5)] == ["abcde", "fghij", "kl"]


def test_query_words_are_highlighted() -> None:
    line = "Vectors are stored in half precision"
    assert [line[a:b] for a, b in find_spans(line, "how is a vector stored")] == ["Vectors", "stored"]
    assert [(span.start, span.end) for span in highlight(line, [(0, 7)]).spans if span.style == MATCH] == [
        (0, 7)
    ]


def test_keywords_are_highlighted_with_the_case_of_the_search() -> None:
    line = "copy_tree Copy (a+b)"
    assert [line[a:b] for a, b in find_spans(line, "x", ["copy"])] == ["copy", "Copy"]
    assert [line[a:b] for a, b in find_spans(line, "x", ["Copy"])] == ["Copy"]
    assert [line[a:b] for a, b in find_spans(line, "x", ["(a+b)"])] == ["(a+b)"]


def test_match_at_the_end_of_a_line_is_visible() -> None:
    line = "x" * 200 + " needle " + "y" * 50
    shown = crop_around(line, find_spans(line, "needle", ["needle"]), 60)
    assert "needle" in shown.plain
    assert shown.plain.startswith("…")


def test_truncated_path_keeps_its_end() -> None:
    assert truncate_start("/a/long/way/to/file.py:10-20", 15) == "…/file.py:10-20"
    assert truncate_start("short", 15) == "short"
