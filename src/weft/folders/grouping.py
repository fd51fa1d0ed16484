"""Matches that are near each other make one passage, and the best of them are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter

from weft.folders.matching import LINE, Held

Rank = tuple[int, int, str, int]
"""Less is better: minus the keywords, minus the matches, the path, the line."""


@dataclass(slots=True)
class Group:
    """Matches of one file that make one passage."""

    path: str
    lines: list[tuple[int, bytes]]
    keywords: int
    matches: int

    @property
    def rank(self) -> Rank:
        return -self.keywords.bit_count(), -self.matches, self.path, self.lines[0][0]


class Best:
    """Takes in what is found in file after file and keeps the best passages.

    `most` says how many keywords a file has at most. A file with too few of them, or too few matches, for any of its
    passages to be among the best is only counted: most files of a frequent word are, in a microsecond. Without
    `most`, where a line may hold several matches, every file is looked at.
    """

    def __init__(
        self,
        keep: int,
        merge_within: int,
        held: Mapping[bytes, Held],
        most: Callable[[bytes], int] | None = None,
    ) -> None:
        self._keep = keep
        self._merge_within = merge_within
        self._held = held
        self._most = most
        self._groups: list[Group] = []
        self._last: Rank | None = None
        self.matches = 0
        """In all files."""
        self.more = False
        """Whether there were other passages."""

    def take(self, path: str, body: bytes) -> None:
        """A file, and what was found in its lines."""
        if self._most is not None and self._last is not None:
            matches = body.count(b"\n")
            if (-self._most(body), -matches, path) > self._last[:3]:
                self.matches += matches
                self.more = True
                return
        for group in groups(path, body, self._held, self._merge_within):
            self.matches += group.matches
            if self._last is None or group.rank <= self._last:
                self._groups.append(group)
            else:
                self.more = True
        if len(self._groups) > 2 * self._keep:
            self._cut()

    def ranked(self) -> list[Group]:
        """What was kept, the best first."""
        self._cut()
        return self._groups

    def _cut(self) -> None:
        self._groups.sort(key=attrgetter("rank"))
        if len(self._groups) >= self._keep:
            self.more = self.more or len(self._groups) > self._keep
            del self._groups[self._keep :]
            self._last = self._groups[-1].rank


def groups(path: str, body: bytes, held: Mapping[bytes, Held], merge_within: int) -> Iterator[Group]:
    """The passages of one file, in order."""
    lines: list[tuple[int, bytes]] = []
    keywords = matches = before = 0
    for digits, text in LINE.findall(body):
        number = int(digits)
        if number - before > merge_within and lines:
            yield Group(path, lines, keywords, matches)
            lines = []
            keywords = matches = 0
        before = number
        bits, count, _ = held[text]
        keywords |= bits
        matches += count
        lines.append((number, text))
    if lines:
        yield Group(path, lines, keywords, matches)
