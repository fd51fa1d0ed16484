"""The structure of Markdown and reStructuredText: headings, and blocks of lines that must stay together."""

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

MAX_HEADING_CHARACTERS: Final = 200
"""Markdown headings are cut at this length. In reStructuredText, a longer underlined line is a paragraph."""


def parse_markdown(lines: Sequence[str]) -> Document:
    """Find ATX and Setext headings outside code fences; keep fences and front matter in one piece."""
    document = Document(lines)
    at = _front_matter(document)
    fence = ""
    opened_at = 0
    while at < len(lines):
        line = lines[at]
        if fence:
            document.no_break_before.add(at)
            bare = line.strip()
            if bare.startswith(fence) and not bare.strip(fence[0]) and len(line) - len(line.lstrip()) < 4:
                fence = ""
        elif (opening := _FENCE.match(line)) and not (opening[1][0] == "`" and "`" in line[opening.end() :]):
            fence, opened_at = opening[1], at
        elif heading := _ATX.match(line):
            document.headings[at] = (len(heading[1]), _clean_heading(line[heading.end() :]))
        elif at and _SETEXT.match(line) and _is_paragraph(document, at - 1):
            level = 1 if line.lstrip()[0] == "=" else 2
            document.headings[at - 1] = (level, lines[at - 1].strip()[:MAX_HEADING_CHARACTERS])
            document.no_break_before.add(at)
        at += 1
    if fence:
        # The fence is never closed. Markdown makes one block of the rest, but chunks may still be cut there.
        document.no_break_before.difference_update(range(opened_at, len(lines)))
    return document


def _clean_heading(text: str) -> str:
    """Remove the closing #s of a heading and the anchor after it."""
    text = text.strip()
    open_ended = text.rstrip("#")
    if open_ended != text and open_ended[-1:] in ("", " ", "\t"):
        text = open_ended.rstrip()
    return _ATTRIBUTES.sub("", text[:MAX_HEADING_CHARACTERS])


def _front_matter(document: Document) -> int:
    """Keep the block between two lines of --- at the top together; return the index of the line after it."""
    lines = document.lines
    if lines and lines[0].rstrip() == "---":
        for at in range(1, min(len(lines), 200)):
            if lines[at].rstrip() in ("---", "..."):
                document.no_break_before.update(range(1, at + 1))
                return at + 1
    return 0


def _is_paragraph(document: Document, at: int) -> bool:
    """Whether the line is a paragraph of one line, which an underline turns into a heading."""
    line = document.lines[at]
    return bool(
        line.strip()
        and at not in document.headings
        and at not in document.no_break_before
        and not _NOT_A_PARAGRAPH.match(line)
        and (at == 0 or not document.lines[at - 1].strip() or at - 1 in document.headings)
    )


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
