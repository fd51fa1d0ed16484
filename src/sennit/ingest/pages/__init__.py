"""Pages of documentation: summary, examples and sections, and the examples that stand on them."""

from sennit.ingest.pages.examples import (
    Example,
    example_records,
    examples_from_file,
    examples_from_jsonl,
    examples_from_page,
)
from sennit.ingest.pages.model import Chunk, ChunkKind, Page, PageOptions
from sennit.ingest.pages.page import page_chunks
from sennit.ingest.pages.records import page_records

__all__ = [
    "Chunk",
    "ChunkKind",
    "Example",
    "Page",
    "PageOptions",
    "example_records",
    "examples_from_file",
    "examples_from_jsonl",
    "examples_from_page",
    "page_chunks",
    "page_records",
]
