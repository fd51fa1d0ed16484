"""Where a text is, in the form that a person reads, clicks or gives back to a command."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from sennit.records import Record

SHORT_HASH_CHARACTERS: Final = 8
"""Digits of a hash that are shown: enough to tell a million records apart."""

_GENERATED_ID: Final = re.compile(r"(.*[^0-9a-f]|)([0-9a-f]{12,})", re.DOTALL)


def short_id(record_id: str) -> str:
    """Return an id with the first digits of its hash, if it ends in one; commands take it as they take the whole."""
    found = _GENERATED_ID.fullmatch(record_id)
    return f"{found[1]}{found[2][:SHORT_HASH_CHARACTERS]}" if found else record_id


def display_citation(record: Record, location: str | None) -> str:
    """Return where a record's text is: path with lines, URL, or short id. `location` is the path of its file."""
    from sennit.results import cite_record

    if location is not None:
        return cite_record(record, location)
    return cite_record(record) if record.url is not None else short_id(record.id)


def file_link(path: str, line: int | None = None) -> str:
    """Return the address of a file, and of a line in it."""
    absolute = os.path.abspath(path)  # noqa: PTH100 - follows no links
    return f"file://{quote(os.fsencode(absolute))}" + (f"#L{line}" if line else "")


def record_link(record: Record, location: str | None) -> str | None:
    """Return the address that a terminal opens when the citation is clicked; None if there is none."""
    if location is not None:
        return file_link(location, record.lines[0] if record.lines else None)
    return record.url if record.url is not None and record.url.startswith(("https://", "http://")) else None
