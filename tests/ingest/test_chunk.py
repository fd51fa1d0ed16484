"""Chunks: no text is lost, and line numbers are exact."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.ingest import markup
from sennit.ingest.chunk import CODE_LIMITS, PROSE_LIMITS, Chunk, Document, chunks, split_lines

WORDS = st.text(alphabet="abc .!?#-=`~:()\"' \t日é。", max_size=90)
LINES = st.lists(
    st.one_of(
        WORDS,
        st.just(""),
        st.sampled_from(
            ["# Title", "## Part", "```", "~~~~", "---", "===", "    indented()", "def f():", "}"]
        ),
        st.integers(1000, 9000).map(lambda n: "word " * (n // 5)),
        st.integers(1000, 9000).map(lambda n: "x" * n),
    ),
    max_size=120,
)
SHAPES = {
    "text": Document,
    "code": lambda lines: Document(lines, code=True),
    "markdown": markup.parse_markdown,
    "rst": markup.parse_rst,
}


def make_chunks(kind: str, lines: list[str]) -> list[Chunk]:
    return list(chunks(SHAPES[kind](lines)))


@pytest.mark.parametrize("kind", SHAPES)
@given(lines=LINES)
def test_chunks_match_their_lines_and_cover_all_text(kind: str, lines: list[str]) -> None:
    limits = CODE_LIMITS if kind == "code" else PROSE_LIMITS
    covered: dict[int, str] = {}
    for passage in make_chunks(kind, lines):
        assert 1 <= passage.first <= passage.last <= len(lines)
        assert passage.text.strip()
        assert len(passage.text) <= limits.maximum
        source = lines[passage.first - 1 : passage.last]
        if passage.first == passage.last and len(source[0]) > limits.maximum:
            covered[passage.first] = covered.get(passage.first, "") + passage.text
            continue
        assert passage.text == "\n".join(source)
        covered |= {number: lines[number - 1] for number in range(passage.first, passage.last + 1)}
    for number, line in enumerate(lines, 1):
        if line.strip():
            assert covered[number].split() == line.split()


@pytest.mark.parametrize("kind", SHAPES)
@given(lines=LINES)
def test_chunks_are_in_order_and_overlap_is_limited(kind: str, lines: list[str]) -> None:
    for before, after in pairwise(make_chunks(kind, lines)):
        assert before.first <= after.first
        assert before.last <= after.last
        assert before.last - after.first < 8


def test_prose_is_split_between_paragraphs() -> None:
    paragraph = "A sentence of some words that goes on.\n" * 9
    found = list(chunks(Document(split_lines("\n".join([paragraph] * 12)))))
    assert len(found) > 2
    assert all(chunk.text.startswith("A sentence") and chunk.text.endswith("goes on.") for chunk in found)
    assert all(chunk.last % 10 == 9 for chunk in found), "each ends where a paragraph does"


def test_code_is_split_before_a_function() -> None:
    function = "def work(value):\n" + "    value = value + 1\n" * 24 + "    return value\n\n"
    found = list(chunks(Document(split_lines(function * 8), code=True)))
    assert len(found) > 2
    assert all(chunk.text.startswith("def work") and chunk.text.endswith("return value") for chunk in found)


def test_title_is_the_path_of_headings() -> None:
    text = (
        "# Guide\n\nIntro.\n\n"
        + "word " * 60
        + "\n\n## Install\n\n"
        + "step " * 80
        + "\n\n### Linux\n\napt\n"
    )
    titles = [chunk.title for chunk in chunks(markup.parse_markdown(split_lines(text)))]
    assert titles == ["Guide", "Guide > Install", "Guide > Install > Linux"]


def test_headings_in_a_fence_are_code() -> None:
    document = markup.parse_markdown(
        split_lines("# A\n\n```sh\n# not a heading\n```\n\nB\n===\n\nC\n---\n\n- x\n---\n")
    )
    assert document.headings == {0: (1, "A"), 6: (1, "B"), 9: (2, "C")}


def test_code_fence_is_not_split_if_it_fits() -> None:
    fence = "```\n" + "some code here = 1\n" * 40 + "```\n"
    text = "Before it. " * 60 + "\n\n" + fence + "\n" + "After it. " * 80
    found = list(chunks(markup.parse_markdown(split_lines(text))))
    assert any(chunk.text.count("```") == 2 for chunk in found)


def test_rst_heading_is_found_by_its_underline() -> None:
    document = markup.parse_rst(split_lines("=====\nTitle\n=====\n\nText\n\nPart\n----\n\nmore\n"))
    assert document.headings == {0: (1, "Title"), 6: (2, "Part")}


def test_chunk_inside_a_paragraph_overlaps_the_one_before() -> None:
    lines = [f"line {n} of one long paragraph without an end" for n in range(100)]
    found = list(chunks(Document(lines)))
    assert len(found) > 2
    assert all(after.first <= before.last for before, after in pairwise(found))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", []),
        ("a", ["a"]),
        ("a\n", ["a"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\rb\r", ["a", "b"]),
        ("a\n\nb", ["a", "", "b"]),
        ("a\x0cb\u2028c\n", ["a\x0cb\u2028c"]),
    ],
)
def test_lines_are_numbered_as_in_an_editor(text: str, lines: list[str]) -> None:
    assert split_lines(text) == lines
