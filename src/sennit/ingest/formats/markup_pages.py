"""reStructuredText and AsciiDoc as Markdown, line by line, so that the lines of a page stay those of the file."""

from __future__ import annotations

import re
from typing import Final

from sennit.ingest.chunk import split_lines
from sennit.ingest.markup import parse_rst

_ADOC_HEADING: Final = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+\1)?[ \t]*\Z")
_ADOC_FENCE: Final = re.compile(r"(?:-{4,}|\.{4,}|`{3,}|={4,}|\*{4,}|_{4,}|/{4,}|\+{4,})[ \t]*\Z")
_ADOC_LISTING: Final = ("-", ".", "`", "+")
"""Blocks between lines of these characters are shown as they are; the others hold text, or are comments."""
_ADOC_ATTRIBUTE: Final = re.compile(r":!?[\w-]+!?:(?:[ \t]|\Z)|\[[^\]]*\][ \t]*\Z|//(?!/)")
_MARKDOWN_HEADING: Final = re.compile(r"[ \t]{0,3}#{1,6}(?:[ \t]|\Z)")
_FENCE: Final = "```"


def markdown_of_rst(text: str) -> str:
    """Each line of a reStructuredText page as a line of Markdown."""
    lines = split_lines(text)
    out = [f"\\{line}" if _MARKDOWN_HEADING.match(line) else line for line in lines]
    for first, (level, title) in parse_rst(lines).headings.items():
        # A heading is its title and a rule below it, with the same rule above it or without.
        is_over = lines[first].strip() != title
        out[first : first + (3 if is_over else 2)] = ["", f"{'#' * min(level, 6)} {title}", ""][not is_over :]
    return "\n".join(out)


def markdown_of_asciidoc(text: str) -> str:
    """Each line of an AsciiDoc page as a line of Markdown."""
    out: list[str] = []
    block = ""
    """The line that ends the block that the current line is in."""
    for line in split_lines(text):
        stripped = line.rstrip()
        if block:
            is_end = stripped == block
            out.append(_block_line(block, line, is_end=is_end))
            block = "" if is_end else block
        elif _ADOC_FENCE.match(line):
            if stripped[0] in "=*_":
                out.append("")  # An example, a sidebar or a quote: its content is ordinary text.
            else:
                block = stripped
                out.append(_FENCE if stripped[0] in _ADOC_LISTING else "")
        elif heading := _ADOC_HEADING.match(line):
            out.append(f"{'#' * len(heading[1])} {heading[2]}")
        elif _ADOC_ATTRIBUTE.match(line):
            out.append("")
        else:
            out.append(line)
    return "\n".join(out)


def _block_line(block: str, line: str, *, is_end: bool) -> str:
    if block[0] not in _ADOC_LISTING:
        return ""
    return _FENCE if is_end else line
