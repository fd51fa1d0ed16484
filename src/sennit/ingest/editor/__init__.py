"""What the code in an editor is about, in a few words to search with."""

from sennit.ingest.editor.keywords import editor_keywords

__all__ = ["editor_keywords"]
