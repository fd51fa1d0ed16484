"""The blocks have the same lines as in another CommonMark parser, markdown-it-py.

Both parsers pass the tests of CommonMark. What is compared here is how offsets in bytes become lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sennit.ingest.chunk import split_lines
from sennit.ingest.markdown import parse_markdown

from .pages.page_checks import installed_pages

PARSER = MarkdownIt("commonmark").enable("table")
PARSER.core.ruler.disable("inline")
KINDS = {
    "heading_open": "heading",
    "paragraph_open": "paragraph",
    "fence": "fence",
    "code_block": "code",
    "html_block": "html",
    "bullet_list_open": "list",
    "ordered_list_open": "list",
    "blockquote_open": "quote",
    "table_open": "table",
    "hr": "rule",
}
ADMONITION = re.compile(r"^[ \t]*(?::::|!!! |\?\?\?|=== )", re.M)
REFERENCE = re.compile(r" {0,3}\[[^\]]+\]:")
PARTS = st.sampled_from(
    [
        "- ",
        "* ",
        "+ ",
        "1. ",
        "2) ",
        "10. ",
        "> ",
        "  ",
        " ",
        "# ",
        "### ",
        "```",
        "~~~",
        "````",
        "---",
        "***",
        "===",
        "--",
        "- - -",
        "<div>",
        "</div>",
        "<!-- ",
        "-->",
        "<script>",
        "</script>",
        "<b>",
        "<foo>",
        "</b>",
        "| a | b |",
        "|---|---|",
        "a|b",
        "--|--",
        "text",
        "more words",
        "`",
        "\\",
        "=",
        "<?php",
        "?>",
        "<pre>",
        "|",
    ]
)
LINES = st.lists(st.lists(PARTS, max_size=4).map("".join), min_size=1, max_size=12)


Blocks = list[tuple[int, int, str]]


def trim_end(lines: Sequence[str], first: int, last: int) -> int:
    while last > first + 1 and not lines[last - 1].strip(" \t"):
        last -= 1
    return last


def their_blocks(text: str, lines: Sequence[str]) -> tuple[Blocks, dict[int, int]]:
    blocks: Blocks = []
    headings = {}
    for token in PARSER.parse(text):
        if token.level == 0 and token.type in KINDS and token.map is not None:
            first, last = token.map
            blocks.append((first, trim_end(lines, first, last), KINDS[token.type]))
            if token.type == "heading_open":
                headings[first] = int(token.tag[1])
    return blocks, headings


def our_blocks(lines: Sequence[str]) -> tuple[Blocks, dict[int, int]]:
    outline = parse_markdown(lines)
    blocks: Blocks = [
        (block.first, trim_end(lines, block.first, block.last), block.kind) for block in outline.blocks
    ]
    return blocks, {line: heading.level for line, heading in outline.headings.items()}


def without_references(blocks: Blocks, lines: Sequence[str]) -> Blocks:
    """Remove link definitions, which are no blocks for the other parser, and paragraphs here."""
    return [block for block in blocks if block[2] != "paragraph" or not REFERENCE.match(lines[block[0]])]


@settings(max_examples=300)
@given(lines=LINES)
def test_each_line_of_text_is_in_one_block(lines: list[str]) -> None:
    held = [line for block in parse_markdown(lines).blocks for line in range(block.first, block.last)]
    assert held == sorted(set(held))
    assert {line for line, text in enumerate(lines) if text.strip()} <= set(held)


@given(lines=LINES)
def test_characters_of_several_bytes_do_not_shift_lines(lines: list[str]) -> None:
    longer = [line.replace("text", "t\u00e4xt").replace("words", "\u65e5\u672c\U0001f600") for line in lines]
    assert our_blocks(longer) == our_blocks(lines)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@given(lines=LINES)
def test_line_ends_do_not_shift_lines(end: str, lines: list[str]) -> None:
    text = end.join((*lines, "end"))
    assert our_blocks(split_lines(text)) == our_blocks([*lines, "end"])


def test_a_lone_carriage_return_in_a_line_does_not_end_it() -> None:
    assert our_blocks(["a\r# no heading", "# yes"]) == ([(0, 1, "paragraph"), (1, 2, "heading")], {1: 1})


def test_a_lone_surrogate_does_not_shift_lines() -> None:
    assert our_blocks(["a\ud800", "", "# b"])[1] == {2: 1}


@pytest.mark.parametrize(
    "text",
    [
        "- a\n- b\n\n  c\n\nd\n",
        "- a\n\n  ```\n  # x\n\n  y\n  ```\n- b\n# c\n",
        "- ```\nfoo\n",
        "> a\nb\n> c\n\n> d\n",
        "> ```\n> # a\nb\n",
        "1. a\n   - b\n     - c\n\n         code\n2. d\n",
        "a\n2. b\n1. c\n",
        "* a\n+ b\n",
        "-\n\n  a\n",
        "- a\n---\n",
        "a\nb\n===\nc\n---\n",
        "<div>\n# a\n\n# b\n</div>\n",
        "<!-- a\n\n# b\n-->\n# c\n",
        "a | b\n--|--\n1 | 2\nc\n> d\n",
        "x\n| a | b |\n|---|---|\n",
        "\tcode\n\n\tmore\ntext\n",
        "-\tone\n\n\ttwo\n",
        "````\n```\n# a\n````\n",
        "``` a`b\n# c\n",
        "####### no\n#no\n# yes #\n## \n",
    ],
)
def test_both_parsers_agree_on_corner_cases(text: str) -> None:
    assert our_blocks(split_lines(text)) == their_blocks(text, split_lines(text))


def test_both_parsers_agree_on_installed_pages() -> None:
    wrong = []
    pages = installed_pages()
    for path, text in pages:
        if len(text) > 200_000 or ADMONITION.search(text):
            continue
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = split_lines(text)
        ours, theirs = our_blocks(lines), their_blocks(text, lines)
        if (without_references(ours[0], lines), ours[1]) != (without_references(theirs[0], lines), theirs[1]):
            wrong.append(path)
    assert len(pages) > 20
    assert wrong == []
