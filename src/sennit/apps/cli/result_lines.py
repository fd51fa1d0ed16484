"""Results as one line each, for pickers and editors: `path:line:column: text`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

from sennit.apps.cli.output import one_line
from sennit.apps.excerpts import ExcerptOptions, best_sentence_line, excerpt_lines, find_matches
from sennit.apps.locations import display_citation
from sennit.records import FRAGMENT_FIELD

if TYPE_CHECKING:
    from sennit.results import Hit, SearchResult

LineFormat = Literal["fzf", "rofi", "vscode"]

TEXT_CHARACTERS: Final = 200
"""Characters of text in a line; a picker cuts longer ones off."""

_PLACE: Final = re.compile(r"(.+?):([0-9]{1,15}):[0-9]{1,15}:(?: |\Z)")
_PART: Final = re.compile(r"(.+?#[a-z]{1,20}=[0-9]{1,15}(?:-[0-9]{1,15})?):(?: |\Z)")


def format_lines(result: SearchResult, form: LineFormat) -> Iterator[str]:
    """Yield each hit with its end: a line for an editor, a row for rofi, an entry that ends with NUL for fzf.

    An editor can only go to files, so it gets no other hits.
    """
    for hit in result:
        if form == "vscode":
            if hit.location is not None:
                yield f"{_format_hit(hit, result.query, form)}\n"
        elif form == "rofi":
            # What comes after the NUL is not shown, but searched.
            words = one_line(f"{hit.title} {hit.collection} {hit.record.kind}")
            yield f"{_format_hit(hit, result.query, form)}\0meta\x1f{words}\n"
        else:
            yield f"{_format_hit(hit, result.query, form)}\0"


def parse_line(line: str) -> tuple[str, int | None]:
    """Return what a printed line leads to, for `sennit read`: a path with the number of its line, a part, or an id."""
    place = _PLACE.match(line)
    if place is not None:
        return place[1], int(place[2])
    part = _PART.match(line)
    return (part[1] if part else line.partition(": ")[0].removesuffix(":")), None


def _format_hit(hit: Hit, query: str, form: LineFormat) -> str:
    """Where the best line of a hit is, and what it says, without control characters."""
    is_part = hit.record.lines is None and FRAGMENT_FIELD in hit.metadata
    if hit.location is None or (is_part and form != "vscode"):
        text = best_sentence_line(hit.text, query, TEXT_CHARACTERS)
        return f"{one_line(display_citation(hit.record, hit.location))}: {one_line(text)}"
    line, column, text = _best_line(hit, query)
    return f"{one_line(hit.location)}:{line}:{column}: {one_line(text)[:TEXT_CHARACTERS]}"


def _best_line(hit: Hit, query: str) -> tuple[int, int, str]:
    """The number of the line that fits best, the column of its first match, from 1, and its text."""
    first = hit.record.lines[0] if hit.record.lines else 1
    best = excerpt_lines(hit.record, hit.text, query, ExcerptOptions(context=0))
    number = best[0].number if best else None
    if number is None:
        return first, 1, best_sentence_line(hit.text, query, TEXT_CHARACTERS)
    # An excerpt shows tabs as spaces; an editor counts characters.
    text = hit.text.split("\n")[number - first]
    matches = find_matches(text, query)
    return number, matches[0][0] + 1 if matches else 1, text
