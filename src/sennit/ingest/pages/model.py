"""A page and its chunks, and the settings that shape them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from sennit.errors import InvalidInput
from sennit.records import Json

ChunkKind = Literal["PAGE_SUMMARY", "PAGE_EXAMPLES", "SECTION"]

SUMMARY: Final = "PAGE_SUMMARY"
EXAMPLES: Final = "PAGE_EXAMPLES"
SECTION: Final = "SECTION"


@dataclass(frozen=True, slots=True)
class PageOptions:
    """How pages are read and how long their chunks are, in characters."""

    most: int = 1200
    """A section up to this length is one chunk; no part of a longer one is longer."""
    target: int = 600
    """About how long the parts of a longer section are."""
    least: int = 300
    """A part ends no sooner, unless what follows does not fit."""
    summary_titles: tuple[str, ...] = ("summary", "overview")
    examples_titles: tuple[str, ...] = ("examples", "example")
    urls: Mapping[str, str] = field(default_factory=dict)
    """Address of the pages below a prefix of their paths: {"docs/": "https://example.org/docs/"}."""
    mdx: bool | None = None
    """Whether pages are MDX; None: by their extension, or by an import at the top."""

    def __post_init__(self) -> None:
        if not 0 < self.least <= self.target <= self.most:
            raise InvalidInput(
                f"Page sizes must be 0 < least <= target <= most, not {self.least}, {self.target}, {self.most}"
            )


@dataclass(frozen=True, slots=True)
class Chunk:
    """A part of a page: whole lines of its source, or sentences of a line that is too long for one chunk."""

    kind: ChunkKind
    title: str
    """The heading it stands under, without markup; the page's name where there is none."""
    heading_path: tuple[str, ...]
    """The headings above it, the outermost first, its own last."""
    text: str
    first_line: int
    last_line: int
    """From 1, both included."""
    anchor: str = ""
    """Of its heading, as it stands after # in an address."""
    carried: int = 0
    """Lines at the beginning of the text that repeat the head of the table or fence it continues."""
    part: int = 1
    parts: int = 1
    """Which part of its section it is, and of how many."""


@dataclass(frozen=True, slots=True)
class Page:
    """A page of documentation, in chunks in the order of the source."""

    name: str
    """What it is called: its title, or else what its path says."""
    url: str | None
    title: str
    """What it calls itself, in its front matter or its first heading; may be empty."""
    chunks: tuple[Chunk, ...]
    description: str = ""
    tags: tuple[str, ...] = ()
    front: Mapping[str, Json] = field(default_factory=dict)
    """Its front matter."""
    metadata_lines: tuple[tuple[int, int], ...] = ()
    """Lines that are about the page and not on it: front matter and imports."""
