"""The result of an exact text search: passages, each with its matching lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sennit.records import Json


@dataclass(frozen=True, slots=True)
class Passage:
    """Matching lines of a file, with the lines around them."""

    path: str
    """The real path as text, relative to the current folder where that is shorter."""
    real: Path
    """The path to open, which may hold bytes that are not UTF-8."""
    first: int
    last: int
    text: str
    """The lines from first to last, joined by newlines."""
    matched: tuple[int, ...]
    """The numbers of the lines that match."""
    keywords: tuple[str, ...]
    """The keywords found in the passage, in the given order."""
    matches: int

    @property
    def citation(self) -> str:
        """The path and the lines, such as `a.md:3-9`."""
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
class GrepResult:
    """Passages, the best first: by keywords, then matches, then path and line."""

    passages: tuple[Passage, ...] = ()
    files: int = 0
    """The number of files with a match, including those without a passage here."""
    matches: int = 0
    limits: tuple[str, ...] = ()
    """The limits that were reached, one sentence each."""
    skipped: tuple[str, ...] = ()
    """The files that could not be read, with the reasons."""
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
