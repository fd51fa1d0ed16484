"""Folders of text, as they are on disk: reading files safely, and finding text in them."""

from sennit.folders.access import FileText, Folders, ReadError
from sennit.folders.finding import grep
from sennit.folders.options import GrepOptions
from sennit.folders.passages import GrepAnswer, Passage

__all__ = ["FileText", "Folders", "GrepAnswer", "GrepOptions", "Passage", "ReadError", "grep"]
