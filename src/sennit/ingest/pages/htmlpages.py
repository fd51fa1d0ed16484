"""Pages in HTML: the shown text with its headings, by the same reader that ordinary HTML files have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Final, NamedTuple

from sennit.ingest.html import html
from sennit.ingest.pages.outline import Block, Heading, Outline

_CANONICAL: Final = re.compile(
    r"<link\b(?=[^>]*\brel\s*=\s*[\"']?canonical\b)[^>]*\bhref\s*=\s*[\"']([^\"'>]+)", re.I
)
_DESCRIPTION: Final = re.compile(
    r"<meta\b(?=[^>]*\bname\s*=\s*[\"']?description\b)[^>]*\bcontent\s*=\s*(?:\"([^\">]*)\"|'([^'>]*)')", re.I
)
_H1: Final = re.compile(r"<h1[\s>]", re.I)

HEAD: Final = 65536
"""Characters at the beginning of a file in which its <head> is looked for."""


class HtmlPage(NamedTuple):
    """An HTML file as an outline, with what its <head> says."""

    outline: Outline
    titles: int
    """How many headings are the page's title: that of the browser's window, and the h1."""
    title: str
    url: str | None
    description: str


def html_page(source: str) -> HtmlPage:
    """Read an HTML file."""
    document = html(source)
    outline = Outline(document.lines, numbers=document.numbers)
    for line, (level, text) in document.headings.items():
        outline.headings[line] = Heading(level, text, line + 1)
    _blocks(outline, dict(document.verbatim))
    found = list(document.headings.values())
    levels = [level for level, _ in found]
    # The title of the window is level 1, and an h1 level 2: see sennit.ingest.html.
    titles = 2 if levels[:2] == [1, 2] and levels.count(2) == 1 else int(levels[:1] in ([1], [2]))
    title = found[titles - 1][1] if titles else ""
    head = source[:HEAD]
    canonical = _CANONICAL.search(head)
    description = _DESCRIPTION.search(head)
    return HtmlPage(
        outline,
        titles,
        title,
        unescape(canonical[1]).strip() if canonical else None,
        unescape(description[1] or description[2] or "").strip() if description else "",
    )


def _blocks(outline: Outline, verbatim: Mapping[int, int]) -> None:
    """Each run of lines between blank ones is a block, and so is each <pre>, whatever is in it."""
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
