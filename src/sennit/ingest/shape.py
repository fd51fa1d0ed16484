"""The shape of a text: its headings, and the lines that belong together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from sennit.ingest.chunk import Document

_ATX: Final = re.compile(r" {0,3}(#{1,6})(?=[ \t]|\Z)")
_SETEXT: Final = re.compile(r" {0,3}(=+|-+)[ \t]*\Z")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_NOT_A_PARAGRAPH: Final = re.compile(r" {0,3}(?:[>|]|[-*+][ \t]|\d{1,9}[.)][ \t])| {4}|\t")
_ADORNMENT: Final = re.compile(r"([=\-~^\"'#*+`:._])\1{2,}\Z")
_ATTRIBUTES: Final = re.compile(r"[ \t]*\{#[^{}]*\}\Z")

MAX_HEADING: Final = 200
"""Characters of a heading that are kept; a longer one is a paragraph that somebody underlined."""


def markdown(lines: Sequence[str]) -> Document:
    """Headings (ATX and Setext) outside code fences; fences and front matter hold together."""
    document = Document(lines)
    at = _front_matter(document)
    fence = ""
    opened = 0
    while at < len(lines):
        line = lines[at]
        if fence:
            document.glued.add(at)
            bare = line.strip()
            if bare.startswith(fence) and not bare.strip(fence[0]) and len(line) - len(line.lstrip()) < 4:
                fence = ""
        elif (opening := _FENCE.match(line)) and not (opening[1][0] == "`" and "`" in line[opening.end() :]):
            fence, opened = opening[1], at
        elif heading := _ATX.match(line):
            document.headings[at] = (len(heading[1]), _heading(line[heading.end() :]))
        elif at and _SETEXT.match(line) and _is_paragraph(document, at - 1):
            level = 1 if line.lstrip()[0] == "=" else 2
            document.headings[at - 1] = (level, lines[at - 1].strip()[:MAX_HEADING])
            document.glued.add(at)
        at += 1
    if fence:
        # Never closed: everything after it is one block for Markdown, and no reason to cut badly.
        document.glued.difference_update(range(opened, len(lines)))
    return document


def _heading(text: str) -> str:
    """A heading without the #s that may close it and the anchor that may follow it."""
    text = text.strip()
    open_ended = text.rstrip("#")
    if open_ended != text and open_ended[-1:] in ("", " ", "\t"):
        text = open_ended.rstrip()
    return _ATTRIBUTES.sub("", text[:MAX_HEADING])


def _front_matter(document: Document) -> int:
    """Glue the block between two lines of --- at the top; the line after it."""
    lines = document.lines
    if lines and lines[0].rstrip() == "---":
        for at in range(1, min(len(lines), 200)):
            if lines[at].rstrip() in ("---", "..."):
                document.glued.update(range(1, at + 1))
                return at + 1
    return 0


def _is_paragraph(document: Document, at: int) -> bool:
    """Whether a line is a paragraph of one line, which an underline makes a heading."""
    line = document.lines[at]
    return bool(
        line.strip()
        and at not in document.headings
        and at not in document.glued
        and not _NOT_A_PARAGRAPH.match(line)
        and (at == 0 or not document.lines[at - 1].strip() or at - 1 in document.headings)
    )


def restructured(lines: Sequence[str]) -> Document:
    """Headings of reStructuredText: lines with a line of punctuation under, or under and over, them."""
    document = Document(lines)
    levels: dict[str, int] = {}
    for at in range(1, len(lines)):
        under = lines[at].rstrip()
        title = lines[at - 1].strip()
        if (
            not title
            or len(under) < len(title.rstrip())
            or not _ADORNMENT.match(under)
            or len(title) > MAX_HEADING
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
        document.glued.update(range(first + 1, at + 1))
    return document
