"""Documentation pages: parses a page into chunks (summary, examples, sections), and extracts its code examples."""

from sennit.ingest.pages.examples import (
    Example,
    example_records,
    examples_from_file,
    examples_from_jsonl,
    examples_from_page,
)
from sennit.ingest.pages.page import ChunkKind, DocPage, PageChunk, PageOptions
from sennit.ingest.pages.parser import parse_page
from sennit.ingest.pages.records import page_records

__all__ = [
    "ChunkKind",
    "DocPage",
    "Example",
    "PageChunk",
    "PageOptions",
    "example_records",
    "examples_from_file",
    "examples_from_jsonl",
    "examples_from_page",
    "page_records",
    "parse_page",
]
