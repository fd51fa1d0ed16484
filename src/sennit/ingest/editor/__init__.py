"""Extracts search keywords from the code that is open in an editor."""

from sennit.ingest.editor.keywords import editor_keywords

__all__ = ["editor_keywords"]
