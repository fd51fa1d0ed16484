"""A documentation page, its chunks, and the options for both."""

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
    """How pages are parsed, and how long their chunks are."""

    max_chars: int = 1200
    """A section up to this length is one chunk. No part of a longer section is longer."""
    target_chars: int = 600
    """The approximate length of the parts of a longer section."""
    min_chars: int = 300
    """The minimum length of a part, unless the next block does not fit."""
    summary_titles: tuple[str, ...] = ("summary", "overview")
    examples_titles: tuple[str, ...] = ("examples", "example")
    urls: Mapping[str, str] = field(default_factory=dict)
    """Path prefix → URL of the pages below it: {"docs/": "https://example.org/docs/"}."""
    mdx: bool | None = None
    """Whether pages are MDX. None: decide by the extension, or by an import at the top."""

    def __post_init__(self) -> None:
        if not 0 < self.min_chars <= self.target_chars <= self.max_chars:
            raise InvalidInput(
                "Page sizes must be 0 < min_chars <= target_chars <= max_chars, "
                f"not {self.min_chars}, {self.target_chars}, {self.max_chars}"
            )


@dataclass(frozen=True, slots=True)
class PageChunk:
    """A part of a page: whole lines of the source, or sentences of a line that is too long for one chunk."""

    kind: ChunkKind
    title: str
    """The heading above it, without markup; the page's name if there is no heading."""
    heading_path: tuple[str, ...]
    """The headings above it, from the outermost to its own."""
    text: str
    first_line: int
    last_line: int
    """Lines count from 1; both are included."""
    anchor: str = ""
    """The fragment of its heading: the part of the URL after #."""
    repeated_lines: int = 0
    """Lines at the start of the text that repeat the head of a table or fence from the part before."""
    part: int = 1
    parts: int = 1
    """The number of this part of its section, and the number of all parts."""


@dataclass(frozen=True, slots=True)
class DocPage:
    """A documentation page, with its chunks in the order of the source."""

    name: str
    """Its title, or a name made from its path."""
    url: str | None
    title: str
    """The title in its front matter or its first heading; may be empty."""
    chunks: tuple[PageChunk, ...]
    description: str = ""
    tags: tuple[str, ...] = ()
    front_matter: Mapping[str, Json] = field(default_factory=dict)
    metadata_lines: tuple[tuple[int, int], ...] = ()
    """The lines of front matter and imports, which are in no chunk."""
