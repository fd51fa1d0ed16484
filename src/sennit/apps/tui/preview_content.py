"""The content of the preview: the file around a result, or the record's text if there is no file to read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sennit.apps.tui.items import ResultRow
from sennit.errors import SennitError
from sennit.ingest.chunk import split_lines

if TYPE_CHECKING:
    from sennit.engine import Database

CONTEXT_LINES: Final = 200
"""Lines before and after a result: several screens, and fast to read from a file of any size."""

MAX_RESULT_LINES: Final = 2_000
"""Lines of one result that are shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewContent:
    """Lines of text, and which of them belong to the result."""

    item: ResultRow
    lines: tuple[str, ...]
    first: int | None
    """The line number of the first line; None if the lines have no numbers."""
    result_lines: tuple[int, int] | None = None
    """First and last line number of the result; None if all lines belong to it."""
    start: int = 1
    """The number of the line to show first."""
    file: str | None = None
    """The path as it is shown, if the lines are from the file."""
    note: str = ""
    """Why the lines are not from the file, or that the file has changed."""


def load_preview(db: Database, item: ResultRow) -> PreviewContent:
    """Load the file around the result, or the record's text if the database may not read the file."""
    if item.path is None or item.lines is None:
        return record_preview(item, "")
    first, last = item.lines[0], min(item.lines[1], item.lines[0] + MAX_RESULT_LINES)
    try:
        found = db.files.read(item.path, lines=(max(1, first - CONTEXT_LINES), last + CONTEXT_LINES))
    except SennitError as error:
        return record_preview(item, str(error))
    lines = tuple(split_lines(found.text))
    result_text = lines[first - found.first : last - found.first + 1]
    changed = item.quotes_file and not any(line.strip() and line.strip() in item.text for line in result_text)
    return PreviewContent(
        item=item,
        lines=lines,
        first=found.first,
        result_lines=(first, last),
        start=item.start or first,
        file=found.path,
        note="the file has changed since it was indexed" if changed else "",
    )


def record_preview(item: ResultRow, note: str) -> PreviewContent:
    """Return the record's own text, with a note that says why it is not the file."""
    return PreviewContent(
        item=item,
        lines=tuple(split_lines(item.text)[:MAX_RESULT_LINES]) if item.text else (),
        first=item.lines[0] if item.lines else None,
        note=note,
    )
