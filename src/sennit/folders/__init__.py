"""Folders on disk: safe reading of text files, and exact text search with ripgrep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sennit.folders.access import FileText, Folders, ReadError, parse_location
from sennit.folders.options import GrepOptions
from sennit.folders.passages import GrepResult, Passage

if TYPE_CHECKING:
    from sennit.folders.search import grep

__all__ = [
    "FileText",
    "Folders",
    "GrepOptions",
    "GrepResult",
    "Passage",
    "ReadError",
    "grep",
    "parse_location",
]


def __getattr__(name: str) -> Any:
    # Imported on first use: most searches of a database never run ripgrep.
    if name != "grep":
        raise AttributeError(f"module 'sennit.folders' has no attribute {name!r}")
    from sennit.folders.search import grep

    return grep
