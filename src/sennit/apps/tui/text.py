"""Text as a screen may show it: harmless whoever wrote it, cut and wrapped by the cells it takes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len, chop_cells
from rich.style import Style
from rich.text import Text

from sennit.apps.cli.output import one_line, plain
from sennit.apps.cli.snippets import LEAD, Span, matches, snippet
from sennit.folders.options import GrepOptions, ignores_case

# The sixteen colours are the terminal's own, so that a light one stays light. Red, green and magenta can be read
# on both; blue cannot on black, nor yellow and cyan on white. What a colour says, bold or a sign says too: there
# may be none.
PLAIN: Final = Style()
BOLD: Final = Style(bold=True)
DIM: Final = Style(dim=True)
MATCH: Final = Style(color="red", bold=True)
PLACE: Final = Style(color="magenta")
NUMBER: Final = Style(color="green")
ERROR: Final = Style(color="red", bold=True)

TAB: Final = 4

MOST_CHARACTERS: Final = 2_000
"""Of one line: a screen holds that many, and a line of ten megabytes is not text for reading."""

_BREAKS: Final = re.compile(
    "[\u2028\u2029\u061c\u200e\u200f\u2060-\u2064\ufff9-\ufffb]|[\U000e0000-\U000e007f]"
)
"""Further characters that break or turn a line, or hide in it; the command line's own list has the rest."""

_OPEN, _CLOSE = "\x02", "\x03"


def safe(text: str) -> str:
    """One line of a stranger's text: no control characters, no turned direction, tabs as spaces, not endless."""
    cut = text[:MOST_CHARACTERS]
    shown = _BREAKS.sub("\ufffd", plain(cut.expandtabs(TAB).replace("\n", " ")))
    return f"{shown} … {len(text) - len(cut):,} more characters" if len(cut) < len(text) else shown


def brief(text: str) -> str:
    """A stranger's text as one line without runs of blanks: for titles, paths and messages."""
    return safe(one_line(text[: 2 * MOST_CHARACTERS]))


def marked(line: str, spans: Sequence[Span], style: Style = PLAIN) -> Text:
    """The line with its spans highlighted."""
    text = Text(line, style, end="", no_wrap=True)
    for first, last in spans:
        text.stylize(MATCH, first, last)
    return text


def spans_of(line: str, query: str, keywords: Sequence[str] = ()) -> list[Span]:
    """Where the line says what was asked for: these very keywords, or the words of the query."""
    if not keywords:
        return matches(line, query)
    longest = sorted(keywords, key=len, reverse=True)
    pattern = "|".join(
        f"(?i:{re.escape(word)})" if ignores_case(word, GrepOptions()) else re.escape(word)
        for word in longest
    )
    return [found.span() for found in re.finditer(pattern, line)]


def excerpt(text: str, query: str, width: int, rows: int) -> list[Text]:
    """The piece of a text that answers best, in at most so many rows."""
    line = snippet(text, query, max(width * rows - 2, 1), lambda word: f"{_OPEN}{word}{_CLOSE}")
    # snippet() has taken all control characters out of the text, so these two are its marks.
    parts = re.split(f"{_OPEN}([^{_CLOSE}]*){_CLOSE}", line)
    out = Text(end="", no_wrap=True)
    for at, part in enumerate(parts):
        out.append(_BREAKS.sub("\ufffd", part), MATCH if at % 2 else PLAIN)
    return list(wrapped(out, width))[:rows]


def around(line: str, spans: Sequence[Span], width: int) -> Text:
    """As much of a line as fits, with the first of the spans in it."""
    first = spans[0][0] if spans else 0
    start = max(0, min(first - LEAD, len(line) - width + 1)) if cell_len(line) > width else 0
    text = marked(line, spans)[start:]
    return fitted(Text.assemble("…" if start else "", text), width)


def wrapped(text: Text, width: int) -> Iterator[Text]:
    """The text in rows of at most so many cells, broken at blanks where there are any."""
    rest, offset, breaks = text.plain, 0, list[int]()
    while cell_len(rest) > width:
        room = max(len(chop_cells(rest, width)[0]), 1)
        blank = rest.rfind(" ", room // 2, room + 1)
        at = room if blank < 0 else blank + 1
        offset += at
        breaks.append(offset)
        rest = rest[at:]
    for row in text.divide(breaks):
        # The blank at which a full row ends has no room and is not missed.
        if row.cell_len > width and row.plain.endswith(" "):
            row.right_crop(1)
        yield row


def fitted(text: Text, width: int) -> Text:
    """The text cut at the end to so many cells, with an ellipsis."""
    out = text.copy()
    out.truncate(max(width, 0), overflow="ellipsis")
    return out


def tail(text: str, width: int) -> str:
    """The end of a text: of a path, the part that tells it from others."""
    if cell_len(text) <= width:
        return text
    at = len(text)
    room = width - 1
    while at > 0 and room >= cell_len(text[at - 1]):
        room -= cell_len(text[at - 1])
        at -= 1
    return f"…{text[at:]}" if width > 0 else ""


def beside(left: Text, right: Text, width: int) -> Text:
    """Two texts on one row, the second at its end; the first gives way."""
    room = width - right.cell_len - 1
    if room < 8:
        return fitted(left, width)
    start = fitted(left, room)
    return Text.assemble(start, " " * (width - start.cell_len - right.cell_len), right, end="", no_wrap=True)
