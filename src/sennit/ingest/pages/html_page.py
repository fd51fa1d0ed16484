"""Parses an HTML page into an outline, with the same parser as other HTML files."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Final, NamedTuple

from sennit.ingest.html import parse_html
from sennit.ingest.markdown import Block, Heading, Outline, heading_anchor

_CANONICAL: Final = re.compile(
    r"<link\b(?=[^>]*\brel\s*=\s*[\"']?canonical\b)[^>]*\bhref\s*=\s*[\"']([^\"'>]+)", re.I
)
_DESCRIPTION: Final = re.compile(
    r"<meta\b(?=[^>]*\bname\s*=\s*[\"']?description\b)[^>]*\bcontent\s*=\s*(?:\"([^\">]*)\"|'([^'>]*)')", re.I
)
_H1: Final = re.compile(r"<h1[\s>]", re.I)

HEAD_CHARS: Final = 65536
"""The <head> is searched in this many characters at the start of a file."""


class HtmlPage(NamedTuple):
    """The outline of an HTML file, with the title, URL and description in its <head>."""

    outline: Outline
    title_count: int
    """The number of headings that are the page's title: the <title>, and the h1."""
    title: str
    url: str | None
    description: str


def parse_html_page(source: str) -> HtmlPage:
    """Parse an HTML file."""
    document = parse_html(source)
    outline = Outline(document.lines, numbers=document.numbers)
    for line, (level, text) in document.headings.items():
        outline.headings[line] = Heading(level, text, line + 1, heading_anchor(text))
    _add_blocks(outline, dict(document.verbatim))
    headings = list(document.headings.values())
    levels = [level for level, _ in headings]
    # The <title> is level 1, and an h1 is level 2: see sennit.ingest.html.
    title_count = 2 if levels[:2] == [1, 2] and levels.count(2) == 1 else int(levels[:1] in ([1], [2]))
    title = headings[title_count - 1][1] if title_count else ""
    head = source[:HEAD_CHARS]
    canonical = _CANONICAL.search(head)
    description = _DESCRIPTION.search(head)
    return HtmlPage(
        outline,
        title_count,
        title,
        unescape(canonical[1]).strip() if canonical else None,
        unescape(description[1] or description[2] or "").strip() if description else "",
    )


def _add_blocks(outline: Outline, verbatim: Mapping[int, int]) -> None:
    """Add a block for each run of lines between blank lines, and one for each <pre>."""
    first = None
    until = 0
    for line, text in enumerate((*outline.lines, "")):
        if line < until:
            continue
        if line in verbatim:
            until = verbatim[line]
            outline.blocks.append(Block(line, until, "code"))
        elif text.strip():
            if line in outline.headings:
                outline.blocks.append(Block(line, line + 1, "heading"))
                first = None
            elif first is None:
                first = line
        elif first is not None:
            outline.blocks.append(Block(first, line, "paragraph"))
            first = None
