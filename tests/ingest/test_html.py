"""HTML: the text that is shown, on the lines where it stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.ingest.chunk import chunks
from weft.ingest.html import html

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


def test_shown_text_keeps_its_lines() -> None:
    document = html(PAGE)
    assert document.numbers is not None
    lines = dict(zip(document.lines, document.numbers, strict=True))
    assert lines["Start & go"] == 6
    assert lines["First bold words,"] == 7
    assert lines["second line — same paragraph."] == 8
    assert (lines["one"], lines["two"]) == (10, 10)
    assert lines["x y"] == 11
    assert (lines["def f():"], lines["    return 1 < 2"]) == (13, 14)
    assert lines["link 3 < 4"] == 16


def test_what_is_not_shown_is_left_out() -> None:
    text = "\n".join(html(PAGE).lines)
    assert all(word not in text for word in ("color", "document", "comment", "tags", "href"))


def test_headings_are_the_title() -> None:
    assert [chunk.title for chunk in chunks(html(PAGE))] == ["The guide > Start & go"]


@pytest.mark.parametrize(
    "source", ["<", "<p", "<p>a", "a<b>c", "</", "<!--", "<!-", "&amp", "<a b='>x", "<svg>x", "<pre"]
)
def test_unfinished_markup_is_no_error(source: str) -> None:
    html(source)


def test_text_after_an_element_that_is_never_closed_is_kept() -> None:
    assert "kept" in html("<svg><p>kept").lines


@given(st.text(alphabet="<>/!-abp1\"'= \n&;#", max_size=200))
def test_any_markup_gives_lines_in_order(source: str) -> None:
    document = html(source)
    assert document.numbers is not None
    assert len(document.numbers) == len(document.lines)
    assert list(document.numbers) == sorted(document.numbers)
    assert all(1 <= number <= source.count("\n") + 1 for number in document.numbers)


@given(st.lists(st.text(alphabet="abc déx", min_size=1).filter(str.strip), min_size=1, max_size=20))
def test_every_word_of_the_paragraphs_is_there(paragraphs: list[str]) -> None:
    source = "\n".join(f"<p>{text}</p>" for text in paragraphs)
    assert " ".join(html(source).lines).split() == " ".join(paragraphs).split()


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "source", ["<div>" * 400_000, "<a " * 400_000, "<a<b>" * 200_000, "<!--" * 300_000, "<svg>" * 200_000, "<a '\">" * 200_000, "<script>" * 100_000, "&" * 500_000]
)  # fmt: skip
def test_hostile_markup_takes_time_by_its_length_only(source: str) -> None:
    assert html(source).numbers is not None


def test_a_pre_stays_whole_when_it_can() -> None:
    code = "\n".join(f"some code here = {number}." for number in range(60))
    source = "<p>" + "Before it. " * 60 + f"</p>\n<pre>{code}</pre>\n<p>" + "After it. " * 80
    assert any(code in chunk.text for chunk in chunks(html(source)))


def test_the_lines_of_a_pre_are_known_and_one_never_closed_is_none() -> None:
    assert html("<p>a</p><pre>\nb\nc\n</pre><p>d</p>").verbatim == [(2, 4)]
    assert html("<pre>a<pre>b</pre>c</pre>").verbatim == [(0, 5)]
    assert html("<pre></pre><pre>a\nb").verbatim == []
