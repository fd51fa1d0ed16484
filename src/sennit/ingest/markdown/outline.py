"""The outline of a page: its lines, blocks and headings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

BlockKind = Literal[
    "paragraph", "heading", "fence", "code", "html", "list", "quote", "table", "rule", "admonition", "jsx"
]


class Block(NamedTuple):
    """A run of lines that is one block. `last` is the line after it; trailing blank lines are not part of it."""

    first: int
    last: int
    kind: BlockKind
    depth: int = 0
    """0 on the page itself, 1 and more inside admonitions."""


class Heading(NamedTuple):
    """A heading of the page itself, not one inside a list, a quote or an admonition."""

    level: int
    title: str
    """Without markup."""
    last: int
    """The line after it. An underlined heading has two lines or more."""
    anchor: str
    """The fragment of its URL. Headings with the same text have the same one."""


class Item(NamedTuple):
    """The start of a list item; depth 1 is an item of the outermost list."""

    line: int
    depth: int


class CodeBlock(NamedTuple):
    """A piece of code and its lines on the page: the first, and the one after the last."""

    first: int
    last: int
    language: str
    text: str
    title: str = ""
    closed: bool = True
    """False for a fence that ends with the page, the item or the quote that it is in."""


@dataclass(slots=True)
class Outline:
    """The blocks and headings of a page. Lines count from 0 here, and from 1 in chunks and records."""

    lines: Sequence[str]
    blocks: list[Block] = field(default_factory=list)
    headings: dict[int, Heading] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    code: list[CodeBlock] = field(default_factory=list)
    """Fenced code, also inside lists, quotes and admonitions."""
    metadata: list[tuple[int, int]] = field(default_factory=list)
    """The lines of front matter and imports."""
    numbers: Sequence[int] | None = None
    """The number of each line in the file, if it differs from its index in `lines`."""
