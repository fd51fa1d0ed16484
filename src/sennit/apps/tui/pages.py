"""What the preview holds: the file around a result, or the record's own text where there is no file to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sennit.apps.tui.items import Item
from sennit.errors import SennitError
from sennit.ingest.chunk import split_lines

if TYPE_CHECKING:
    from sennit.engine import Database

AROUND: Final = 200
"""Lines shown before and after a result: some screens full, and read in a moment from a file of any size."""

MOST_LINES: Final = 2_000
"""Of one result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some lines, and which of them are the result."""

    item: Item
    lines: tuple[str, ...]
    first: int | None
    """The number of the first line in its file; None where lines have no numbers."""
    chosen: tuple[int, int] | None = None
    """First and last number of the result's own lines; None: all are."""
    start: int = 1
    """The number of the line to look at first."""
    file: str | None = None
    """The real path, when this is the file."""
    note: str = ""
    """Why it is not the file, or not as it was."""


def page_of(db: Database, item: Item) -> Page:
    """The file around the result, if this database may read it, else what the record has."""
    if item.path is None or item.lines is None:
        return own_page(item, "")
    first, last = item.lines[0], min(item.lines[1], item.lines[0] + MOST_LINES)
    try:
        found = db.read_file(item.path, lines=(max(1, first - AROUND), last + AROUND))
    except SennitError as error:
        return own_page(item, str(error))
    lines = tuple(split_lines(found.text))
    own = lines[first - found.first : last - found.first + 1]
    changed = not any(line.strip() and line.strip() in item.text for line in own)
    return Page(
        item=item,
        lines=lines,
        first=found.first,
        chosen=(first, last),
        start=item.start or first,
        file=found.path,
        note="the file has changed since it was indexed" if changed else "",
    )


def own_page(item: Item, note: str) -> Page:
    """What the record has, and why it is not the file."""
    return Page(
        item=item,
        lines=tuple(split_lines(item.text)[:MOST_LINES]) if item.text else (),
        first=item.lines[0] if item.lines else None,
        note=note,
    )
