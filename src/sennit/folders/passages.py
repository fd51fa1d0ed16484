"""What a search for exact text answers with: passages, each with the lines that match."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sennit.records import Json


@dataclass(frozen=True, slots=True)
class Passage:
    """Matched lines of a file with the lines around them."""

    path: str
    """Real and absolute, as records of files have it."""
    real: Path
    """The same, to be opened: it may hold bytes that are no text."""
    first: int
    last: int
    text: str
    """The lines first to last without their line ends, joined by newlines."""
    matched: tuple[int, ...]
    """Numbers of the lines that match."""
    keywords: tuple[str, ...]
    """Those found here, in the order they were given."""
    matches: int

    @property
    def citation(self) -> str:
        """Path and lines."""
        return f"{self.path}:{self.first}" + (f"-{self.last}" if self.last > self.first else "")

    def numbered(self) -> Iterator[tuple[int, str, bool]]:
        """Each line with its number and whether it matches."""
        matched = frozenset(self.matched)
        for number, line in enumerate(self.text.split("\n"), self.first):
            yield number, line, number in matched

    def marked(self) -> str:
        """The lines with their numbers, and a > before those that match."""
        width = len(str(self.last))
        return "\n".join(
            f"{'>' if matches else ' '} {number:>{width}}  {line}".rstrip()
            for number, line, matches in self.numbered()
        )

    def to_dict(self) -> dict[str, Json]:
        return {
            "citation": self.citation,
            "path": self.path,
            "lines": [self.first, self.last],
            "matched": list(self.matched),
            "keywords": list(self.keywords),
            "matches": self.matches,
            "text": self.text,
        }


@dataclass(frozen=True, slots=True)
class GrepAnswer:
    """Passages, best first: most keywords, then most matches, then by path and line."""

    passages: tuple[Passage, ...] = ()
    files: int = 0
    """Files with a match, also those that have no passage here."""
    matches: int = 0
    limits: tuple[str, ...] = ()
    """Which limits were hit, each in a sentence."""
    skipped: tuple[str, ...] = ()
    """Files that could not be read, each with the reason."""
    milliseconds: float = 0.0

    def to_dict(self) -> dict[str, Json]:
        return {
            "passages": [passage.to_dict() for passage in self.passages],
            "files": self.files,
            "matches": self.matches,
            "limits": list(self.limits),
            "skipped": list(self.skipped),
            "milliseconds": round(self.milliseconds, 3),
        }
