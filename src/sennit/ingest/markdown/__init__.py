"""Markdown and MDX: the blocks, headings and code of a page with their lines, and its front matter."""

from sennit.ingest.markdown.front_matter import parse_front_matter
from sennit.ingest.markdown.outline import Block, CodeBlock, Heading, Item, Outline
from sennit.ingest.markdown.parser import parse_markdown
from sennit.ingest.markdown.titles import heading_anchor, normalise_title, plain_title

__all__ = [
    "Block",
    "CodeBlock",
    "Heading",
    "Item",
    "Outline",
    "heading_anchor",
    "normalise_title",
    "parse_front_matter",
    "parse_markdown",
    "plain_title",
]
