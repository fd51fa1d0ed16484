"""Folders of text, as they are on disk: reading files safely, and finding text in them."""

from weft.folders.access import FileText, Folders, ReadError
from weft.folders.finding import grep
from weft.folders.options import GrepOptions
from weft.folders.passages import GrepAnswer, Passage

__all__ = ["FileText", "Folders", "GrepAnswer", "GrepOptions", "Passage", "ReadError", "grep"]
