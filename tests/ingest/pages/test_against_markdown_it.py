"""The scanner finds the same blocks as a full CommonMark parser, markdown-it-py.

markdown-it-py differs from CommonMark and GitHub in a few cases, which are left out here: a table head that is itself
a list item or a fence, a `>` with an indent of four, several blank lines after an empty item.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from sennit.ingest.chunk import split_lines
from sennit.ingest.pages.markdown import scan_markdown
from sennit.ingest.pages.patterns import is_table

from .page_checks import installed_pages

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


def parse_blocks(text: str, lines: Sequence[str]) -> tuple[Blocks, dict[int, tuple[int, str]]]:
    blocks: Blocks = []
    headings = {}
    tokens = PARSER.parse(text)
    for at, token in enumerate(tokens):
        if token.level == 0 and token.type in KINDS and token.map is not None:
            first, last = token.map
            blocks.append((first, trim_end(lines, first, last), KINDS[token.type]))
            if token.type == "heading_open":
                headings[first] = (int(token.tag[1]), " ".join(tokens[at + 1].content.split()))
    return blocks, headings


def scan_blocks(lines: Sequence[str]) -> tuple[Blocks, dict[int, tuple[int, str]]]:
    outline = scan_markdown(lines, extended=False)
    blocks: Blocks = [
        (block.first, trim_end(lines, block.first, block.last), block.kind) for block in outline.blocks
    ]
    return blocks, {
        line: (heading.level, " ".join(heading.text.split())) for line, heading in outline.headings.items()
    }


def without_references(blocks: Blocks, lines: Sequence[str]) -> Blocks:
    """Remove link definitions, which are no blocks for the parser, and paragraphs for the scanner."""
    return [block for block in blocks if block[2] != "paragraph" or not REFERENCE.match(lines[block[0]])]


@settings(max_examples=400)
@given(lines=LINES)
def test_scanner_and_parser_find_the_same_blocks(lines: list[str]) -> None:
    assume(
        not any(
            is_table(a, b) and a.lstrip()[:1] in "#`~>-+*_<0123456789" for a, b in itertools.pairwise(lines)
        )
    )
    assume(not any(re.match(r" {4,}>|\s*(?:[-+*]|\d+[.)])\s*$", line) for line in lines))
    text = "\n".join(lines) + "\n"
    assert scan_blocks(split_lines(text)) == parse_blocks(text, split_lines(text))


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
        "x\na | b\n--|--\n",
        "\tcode\n\n\tmore\ntext\n",
        "-\tone\n\n\ttwo\n",
        "````\n```\n# a\n````\n",
        "``` a`b\n# c\n",
        "####### no\n#no\n# yes #\n## \n",
    ],
)
def test_scanner_and_parser_agree_on_corner_cases(text: str) -> None:
    assert scan_blocks(split_lines(text)) == parse_blocks(text, split_lines(text))


def test_scanner_and_parser_agree_on_installed_pages() -> None:
    wrong = []
    pages = installed_pages()
    for path, text in pages:
        if len(text) > 200_000:
            continue
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        lines = split_lines(text)
        ours, theirs = scan_blocks(lines), parse_blocks(text, lines)
        if (without_references(ours[0], lines), ours[1]) != (without_references(theirs[0], lines), theirs[1]):
            wrong.append(path)
    assert len(pages) > 20
    assert wrong == []
