"""Folders on disk: safe reading of text files, and exact text search with ripgrep."""

from sennit.folders.access import FileText, Folders, ReadError, parse_location
from sennit.folders.options import GrepOptions
from sennit.folders.passages import GrepResult, Passage
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
