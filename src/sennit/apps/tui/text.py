"""Text for the screen: sanitized, and truncated or wrapped by the cells it occupies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len, chop_cells
from rich.style import Style
from rich.text import Text

from sennit.apps.cli.output import one_line
from sennit.apps.excerpts import LEAD_CHARACTERS, Span, best_passages, find_matches
from sennit.context.sanitize import sanitize_for_terminal
from sennit.folders.options import GrepOptions, ignores_case

# Only the sixteen colours of the terminal's theme, so that a light theme stays light. Red, green and magenta are
# readable on both backgrounds; blue is not on black, nor yellow and cyan on white. Everything that a colour says,
# bold or a sign says too, because the terminal may have no colours.
PLAIN: Final = Style()
BOLD: Final = Style(bold=True)
DIM: Final = Style(dim=True)
MATCH: Final = Style(color="red", bold=True)
ACCENT: Final = Style(color="magenta")
NUMBER: Final = Style(color="green")
ERROR: Final = Style(color="red", bold=True)

TAB_SIZE: Final = 4

MAX_LINE_CHARACTERS: Final = 2_000
"""Characters of one line that are shown: a full screen, and no more of a line of ten megabytes."""

MIN_LEFT_CELLS: Final = 8
"""Cells that the left text of a row keeps; on a narrower row the right text is left out."""


def sanitize_line(text: str) -> str:
    """Return one line of untrusted text without control characters, with tabs expanded, and not too long."""
    cut = text[:MAX_LINE_CHARACTERS]
    shown = sanitize_for_terminal(cut.expandtabs(TAB_SIZE).replace("\n", " "))
    return f"{shown} … {len(text) - len(cut):,} more characters" if len(cut) < len(text) else shown


def sanitize_title(text: str) -> str:
    """Return untrusted text on one line without runs of blanks: for titles, paths and messages."""
    return sanitize_line(one_line(text[: 2 * MAX_LINE_CHARACTERS]))


def highlight(line: str | Text, spans: Sequence[Span], style: Style = PLAIN) -> Text:
    """Return the line with its spans highlighted."""
    text = line.copy() if isinstance(line, Text) else Text(line, style)
    text.end, text.no_wrap = "", True
    for first, last in spans:
        text.stylize(MATCH, first, last)
    return text


def find_spans(line: str, query: str, keywords: Sequence[str] = ()) -> list[Span]:
    """Return the spans that match the exact keywords if there are any, else the words of the query."""
    if not keywords:
        return find_matches(line, query)
    longest = sorted(keywords, key=len, reverse=True)
    pattern = "|".join(
        f"(?i:{re.escape(word)})" if ignores_case(word, GrepOptions()) else re.escape(word)
        for word in longest
    )
    return [found.span() for found in re.finditer(pattern, line)]


def best_excerpt(text: str, query: str, width: int, rows: int) -> list[Text]:
    """Return the best matching part of a text, in at most `rows` rows."""
    out: list[Text] = []
    for line in best_passages(text, query, max(width * rows, 1), width):
        shown = highlight(line.text, line.spans)
        out += [truncate(shown, width)] if line.is_verbatim else wrap_text(shown, width)
    return out[:rows]


def crop_around(line: str, spans: Sequence[Span], width: int) -> Text:
    """Return the part of a line that fits and contains the first span."""
    first = spans[0][0] if spans else 0
    start = max(0, min(first - LEAD_CHARACTERS, len(line) - width + 1)) if cell_len(line) > width else 0
    text = highlight(line, spans)[start:]
    return truncate(Text.assemble("…" if start else "", text), width)


def wrap_text(text: Text, width: int) -> Iterator[Text]:
    """Yield the text in rows of at most `width` cells, broken at blanks where possible."""
    rest, offset, breaks = text.plain, 0, list[int]()
    while cell_len(rest) > width:
        fitting = max(len(chop_cells(rest, width)[0]), 1)
        blank = rest.rfind(" ", fitting // 2, fitting + 1)
        end = fitting if blank < 0 else blank + 1
        offset += end
        breaks.append(offset)
        rest = rest[end:]
    for row in text.divide(breaks):
        # A full row may end with the blank at which it was broken; that blank does not fit.
        if row.cell_len > width and row.plain.endswith(" "):
            row.right_crop(1)
        yield row


def truncate(text: Text, width: int) -> Text:
    """Return the text cut at the end to `width` cells, with an ellipsis."""
    out = text.copy()
    out.truncate(max(width, 0), overflow="ellipsis")
    return out


def truncate_start(text: str, width: int) -> str:
    """Return the end of a text, with an ellipsis before it: the end of a path is what distinguishes it."""
    if cell_len(text) <= width:
        return text
    start = len(text)
    cells_left = width - 1
    while start > 0 and cells_left >= cell_len(text[start - 1]):
        cells_left -= cell_len(text[start - 1])
        start -= 1
    return f"…{text[start:]}" if width > 0 else ""


def align_right(left: Text, right: Text, width: int) -> Text:
    """Return a row with one text on the left and one on the right; the left one is truncated."""
    left_width = width - right.cell_len - 1
    if left_width < MIN_LEFT_CELLS:
        return truncate(left, width)
    start = truncate(left, left_width)
    return Text.assemble(start, " " * (width - start.cell_len - right.cell_len), right, end="", no_wrap=True)
