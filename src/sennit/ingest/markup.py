"""The structure of Markdown and reStructuredText: headings, and blocks of lines that must stay together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sennit.ingest import markdown
from sennit.ingest.chunk import Document

MARKDOWN_VERSION: Final = 1
"""Increase when the same page would have other headings or blocks. Pages of an older version are indexed again."""

MAX_HEADING_CHARACTERS: Final = 200
"""In reStructuredText, a longer underlined line is a paragraph."""

_ADORNMENT: Final = re.compile(r"([=\-~^\"'#*+`:._])\1{2,}\Z")


def parse_markdown(lines: Sequence[str]) -> Document:
    """Find the headings of a page; keep its fences, underlined headings and front matter in one piece."""
    document = Document(lines)
    _, start = markdown.parse_front_matter(lines)
    outline = markdown.parse_markdown(lines, start=start)
    document.headings = {line: (heading.level, heading.title) for line, heading in outline.headings.items()}
    pieces = [(0, start), *((line, heading.last) for line, heading in outline.headings.items())]
    # A fence that is never closed takes in the rest of the page, in which chunks may still end.
    pieces += [(code.first, code.last) for code in outline.code if code.closed]
    for first, last in pieces:
        document.no_break_before.update(range(first + 1, last))
    return document


def parse_rst(lines: Sequence[str]) -> Document:
    """Find the headings of reStructuredText: lines with punctuation below, or above and below."""
    document = Document(lines)
    levels: dict[str, int] = {}
    for at in range(1, len(lines)):
        under = lines[at].rstrip()
        title = lines[at - 1].strip()
        if (
            not title
            or len(under) < len(title.rstrip())
            or not _ADORNMENT.match(under)
            or len(title) > MAX_HEADING_CHARACTERS
        ):
            continue
        if _ADORNMENT.match(title):
            continue
        over = at >= 2 and lines[at - 2].rstrip() == under
        if not over and (lines[at - 1][0].isspace() or (at >= 2 and lines[at - 2].strip())):
            continue
        level = levels.setdefault(f"{under[0]}{over}", len(levels) + 1)
        first = at - 2 if over else at - 1
        document.headings[first] = (level, title)
        document.no_break_before.update(range(first + 1, at + 1))
    return document
