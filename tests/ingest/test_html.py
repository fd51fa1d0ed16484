"""HTML: the visible text, with its line numbers."""

from __future__ import annotations

from html import escape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.ingest.chunk import chunks
from sennit.ingest.html import HTML_VERSION, parse_html
from sennit.ingest.text_profile import reader_version

PAGE = """<!DOCTYPE html>
<html><head><title>The guide</title>
<style>p { color: red }</style>
<script>if (a < b) { document.write("<p>no</p>") }</script></head>
<body>
<h1>Start &amp; go</h1>
<p>First <b>bold</b> words,
second line &mdash; same paragraph.</p>
<!-- a comment with <p>tags</p> -->
<ul><li>one<li>two</ul>
<table><tr><td>x</td><td>y</td></tr></table>
<pre>
def f():
    return 1 &lt; 2
</pre>
<a title="a > b" href='x'>link</a> 3 < 4
</body></html>
"""


def test_visible_text_keeps_its_line_numbers() -> None:
    document = parse_html(PAGE)
    assert document.numbers is not None
    lines = dict(zip(document.lines, document.numbers, strict=True))
    assert lines["Start & go"] == 6
    assert lines["First bold words,"] == 7
    assert lines["second line — same paragraph."] == 8
    assert (lines["one"], lines["two"]) == (10, 10)
    assert lines["x y"] == 11
    assert (lines["def f():"], lines["    return 1 < 2"]) == (13, 14)
    assert lines["link 3 < 4"] == 16


def test_hidden_text_is_left_out() -> None:
    text = "\n".join(parse_html(PAGE).lines)
    assert all(word not in text for word in ("color", "document", "comment", "tags", "href"))


def test_headings_are_the_title() -> None:
    assert [chunk.title for chunk in chunks(parse_html(PAGE))] == ["The guide > Start & go"]


@pytest.mark.parametrize(
    "source", ["<", "<p", "<p>a", "a<b>c", "</", "<!--", "<!-", "&amp", "<a b='>x", "<svg>x", "<pre"]
)
def test_incomplete_markup_is_not_an_error(source: str) -> None:
    parse_html(source)


def test_text_after_an_unclosed_element_is_kept() -> None:
    assert "kept" in parse_html("<svg><p>kept").lines


@given(st.text(alphabet="<>/!-abp1\"'= \n&;#", max_size=200))
def test_any_markup_gives_ascending_line_numbers(source: str) -> None:
    document = parse_html(source)
    assert document.numbers is not None
    assert len(document.numbers) == len(document.lines)
    assert list(document.numbers) == sorted(document.numbers)
    assert all(1 <= number <= source.count("\n") + 1 for number in document.numbers)


@given(st.lists(st.text(alphabet="abc déx", min_size=1).filter(str.strip), min_size=1, max_size=20))
def test_no_word_of_the_paragraphs_is_lost(paragraphs: list[str]) -> None:
    source = "\n".join(f"<p>{text}</p>" for text in paragraphs)
    assert " ".join(parse_html(source).lines).split() == " ".join(paragraphs).split()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "source", ["<div>" * 400_000, "<a " * 400_000, "<a<b>" * 200_000, "<!--" * 300_000, "<svg>" * 200_000, "<a '\">" * 200_000, "<script>" * 100_000, "&" * 500_000]
)  # fmt: skip
def test_hostile_markup_is_parsed_in_linear_time(source: str) -> None:
    assert parse_html(source).numbers is not None


def test_a_pre_that_fits_into_a_chunk_is_not_split() -> None:
    code = "\n".join(f"some code here = {number}." for number in range(60))
    source = "<p>" + "Before it. " * 60 + f"</p>\n<pre>{code}</pre>\n<p>" + "After it. " * 80
    assert any(code in chunk.text for chunk in chunks(parse_html(source)))


@pytest.mark.parametrize(
    ("inside", "lines"),
    [
        ("def f():\n\n    return 1\n\n\nf()", ["def f():", "", "    return 1", "", "", "f()"]),
        ("if a:\n\tb()  \n \t\n\tc(1,\t2)", ["if a:", "\tb()  ", " \t", "\tc(1,\t2)"]),
        ("a &lt; b &amp;&amp; c\n\n&#100;&nbsp;e", ["a < b && c", "", "d\xa0e"]),
        ("a&#10;&#10;b", ["a", "", "b"]),
        (
            "<code><span class='k'>for</span> <b><i>x</i></b>:\n\n  <span>y</span>\n</code>",
            ["for x:", "", "  y"],
        ),
        ("\na", ["a"]),
        ("\n\na", ["", "a"]),
        ("<code>\na\n\n</code>", ["", "a", ""]),
        ("\r\na\r\n\r\n  b\r\n", ["a", "", "  b"]),
        ("a<br><br/>b<br>\nc", ["a", "", "b", "", "c"]),
        ("<div>a</div><div><br></div><div> b</div>", ["a", "", " b"]),
        ("a <!-- no\nno --> b\n\n<script>no\n</script>c", ["a  b", "", "c"]),
        ("1 < 2\n\n 3 > 2", ["1 < 2", "", " 3 > 2"]),
        ("   ", ["   "]),
    ],
    ids="blank-lines tabs entities breaks-as-entities spans leading-newline blank-first-line newline-behind-another-tag "
    "two-characters-a-break br div hidden bare-marks only-spaces".split(),
)
def test_every_line_of_a_pre_is_unchanged(inside: str, lines: list[str]) -> None:
    document = parse_html(f"<p>x</p><pre>{inside}</pre><p>y</p>")
    # A blank line separates it from the next paragraph, unless it already ends with one.
    assert document.lines == ["x", "", *lines, *([""] if lines[-1].strip() else []), "y"]


def test_blank_lines_of_a_pre_have_line_numbers() -> None:
    document = parse_html("<p>x</p>\n<pre>\na\n\n\n b\n</pre>\ny")
    assert document.numbers is not None
    assert list(zip(document.numbers, document.lines, strict=True))[2:6] == [
        (3, "a"),
        (4, ""),
        (5, ""),
        (6, " b"),
    ]


@given(st.lists(st.text(alphabet="ab <&\t\xa0'", max_size=8), min_size=1, max_size=8))
def test_escaped_code_in_a_pre_is_unescaped(code: list[str]) -> None:
    lines = parse_html("<pre>\n" + escape("\n".join(["first", *code, "last"])) + "\n</pre>").lines
    assert lines == ["first", *code, "last"]


def test_the_reader_version_includes_the_html_version() -> None:
    assert reader_version("a.html").endswith(f".{HTML_VERSION}")


def test_closed_pre_elements_are_verbatim_blocks() -> None:
    assert parse_html("<p>a</p><pre>\nb\nc\n</pre><p>d</p>").verbatim == [(2, 4)]
    assert parse_html("<pre>a<pre>b</pre>c</pre>").verbatim == [(0, 5)]
    assert parse_html("<pre></pre><pre>a\nb").verbatim == []
    assert parse_html("<pre>\n\n a\n\nb\n  \n</pre>").verbatim == [(1, 4)]
    assert parse_html("<pre>\n\n  \n</pre>c").verbatim == []
