"""Properties of every page: no text is lost or repeated, lines are exact, code is not split."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sennit.ingest.chunk import split_lines
from sennit.ingest.markdown import parse_markdown
from sennit.ingest.pages import PageOptions, parse_page

from .page_checks import check, installed_pages, metadata_lines

SMALL = PageOptions(max_chars=240, target_chars=120, min_chars=40)
LINE = st.one_of(
    st.just(""),
    st.sampled_from(
        [
            "# Page",
            "## Summary",
            "## Overview",
            "## Examples",
            "### Deep",
            "Under",
            "=====",
            "-----",
            "---",
            "```js",
            "```",
            "~~~",
            "- item",
            "  - inner",
            "1. one",
            "> quoted",
            "| a | b |",
            "|---|---|",
            "| 1 | 2 |",
            ":::note",
            ":::",
            "!!! tip",
            "    indented",
            "import A from 'a'",
            "<Tab>",
            "</Tab>",
            "<A b={`",
            "`} />",
            "{x}",
            "export const a = {",
            "}",
            "title: x",
            "+++",
            "<!-- c",
            "-->",
            "\tcode",
            "# not in a fence?",
        ]
    ),
    st.text(alphabet="ab .!?|#`-*\u65e5\u3002\u00e9", max_size=60),
    st.integers(50, 900).map(lambda size: "some words. " * (size // 12)),
    st.integers(50, 900).map(lambda size: "x" * size),
)
PAGES = st.lists(LINE, max_size=60).map("\n".join)
PATHS = st.sampled_from(["docs/page.md", "docs/page.mdx"])


@settings(max_examples=300)
@given(text=PAGES, path=PATHS)
def test_chunks_contain_the_text_of_the_page_once_and_in_order(text: str, path: str) -> None:
    check(text, parse_page(text, path=path, options=SMALL), SMALL)


@given(text=PAGES, path=PATHS)
def test_code_that_fits_into_a_chunk_is_not_split(text: str, path: str) -> None:
    page = parse_page(text, path=path, options=SMALL)
    lines = split_lines(text)
    start = max((last for first, last in page.metadata_lines if first == 1), default=0)
    for block in parse_markdown(lines, start=start, mdx=path.endswith("x")).blocks:
        if (
            block.kind in ("fence", "code", "jsx")
            and sum(len(line) + 1 for line in lines[block.first : block.last]) <= SMALL.max_chars
        ):
            inside = set(range(block.first + 1, block.last + 1)) - metadata_lines(page)
            inside = {line for line in inside if lines[line - 1].strip()}
            holding = [c for c in page.chunks if inside & set(range(c.first_line, c.last_line + 1))]
            assert len(holding) <= 1 or block.depth, block


@given(text=PAGES)
def test_the_same_page_gives_the_same_chunks(text: str) -> None:
    assert parse_page(text, path="a.md") == parse_page(text, path="a.md")


@given(text=st.text(max_size=400), path=st.sampled_from(["a.md", "a.mdx", "a.html"]))
def test_any_text_can_be_parsed(text: str, path: str) -> None:
    page = parse_page(text, path=path)
    assert page.name
    assert bool(page.chunks) or path == "a.html" or not page_text(text, page.metadata_lines)


def page_text(text: str, metadata: tuple[tuple[int, int], ...]) -> str:
    lines = split_lines(text.removeprefix("\ufeff"))
    hidden = {line for first, last in metadata for line in range(first, last + 1)}
    return "".join(line for number, line in enumerate(lines, 1) if number not in hidden).strip()


def test_installed_pages_are_chunked_without_loss() -> None:
    options = PageOptions()
    pages = installed_pages()
    assert len(pages) > 20
    for path, text in pages:
        page = parse_page(text, path=path)
        try:
            check(text, page, options)
        except AssertionError as error:
            raise AssertionError(f"{path}: {error}") from error


def test_a_page_of_one_long_line_is_parsed_in_linear_time() -> None:
    page = parse_page("word " * 200_000, path="a.md")
    assert sum(len(chunk.text) for chunk in page.chunks) > 990_000


def test_hostile_pages_are_parsed_in_linear_time() -> None:
    for text in (
        "<A {" + "\n<A {" * 20_000,
        ":::a\n" * 20_000 + ":::\n",
        "> " * 2_000 + "x",
        "- " * 2_000 + "x",
        ("- " * 50 + "x\n") * 200,
        "[" * 20_000,
        "# " + "`" * 20_000,
        "# " + "*a_" * 20_000,
        "| a " * 5_000 + "|\n" + "|-" * 5_000 + "|\n" + "| b " * 5_000,
        "---\na: " + "[" * 5_000 + "\n---\ntext\n",
        "<!--\n" * 20_000,
    ):
        for path in ("a.md", "a.mdx"):
            assert parse_page(text, path=path).chunks
