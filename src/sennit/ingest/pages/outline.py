"""The shape of a page: its lines, what kind of block each belongs to, and its headings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

BlockKind = Literal[
    "paragraph", "heading", "fence", "code", "html", "list", "quote", "table", "rule", "aside", "jsx"
]


class Block(NamedTuple):
    """A run of lines that is one thing; `last` is the line after it, blank lines at the end left out."""

    first: int
    last: int
    kind: BlockKind
    depth: int = 0
    """0 on the page itself, 1 and more inside asides."""


class Heading(NamedTuple):
    """A heading of the page itself, not one inside a list, a quote or an aside."""

    level: int
    text: str
    """As written, its markup included."""
    last: int
    """The line after it: an underlined heading has two lines or more."""


class Item(NamedTuple):
    """Where an item of a list begins; 1 is an item of the outermost list."""

    line: int
    depth: int


@dataclass(slots=True)
class Outline:
    """What a scan of the lines found. Lines are counted from 0 here, and from 1 everywhere a reader sees them."""

    lines: Sequence[str]
    blocks: list[Block] = field(default_factory=list)
    headings: dict[int, Heading] = field(default_factory=dict)
    items: list[Item] = field(default_factory=list)
    code: list[tuple[int, int]] = field(default_factory=list)
    """Fences inside lists, quotes and asides: first line and the line after the last."""
    metadata: list[tuple[int, int]] = field(default_factory=list)
    """Front matter and imports: they say something about the page and are not on it."""
    numbers: Sequence[int] | None = None
    """The number of each line in the file, when that is not its place in `lines`."""
