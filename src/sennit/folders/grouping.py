"""Matches that are near each other make one passage, and the best of them are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter

from sennit.folders.matching import LINE, Held

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

    `most` says how many keywords a file has at most, `of` how many there are. A file with too few of them, or too few
    matches, for any of its passages to be among the best is only counted: most files of a frequent word are, in a
    microsecond. Without `most`, where a line may hold several matches, every file is looked at.
    """

    def __init__(
        self,
        keep: int,
        merge_within: int,
        held: Mapping[bytes, Held],
        most: Callable[[bytes], int] | None = None,
        of: int = 1,
    ) -> None:
        self._keep = keep
        self._merge_within = merge_within
        self._held = held
        self._most = most
        self._of = of
        self._groups: list[Group] = []
        self._last: Rank | None = None
        self._bar: tuple[int, int, str] | None = None
        """The rank of the last one without its line: what a whole file is measured by."""
        self.matches = 0
        """In all files."""
        self.more = False
        """Whether there were other passages."""

    def take(self, path: str, body: bytes) -> None:
        """A file, and what was found in its lines."""
        bar = self._bar
        if bar is not None and self._most is not None:
            matches = body.count(b"\n")
            # To count them is quicker than to look which keywords they are, and mostly enough.
            if (-self._of, -matches, path) > bar or (-self._most(body), -matches, path) > bar:
                self._pass_over(matches)
                return
        lines = [(int(digits), text) for digits, text in LINE.findall(body)]
        for start, end in runs(lines, self._merge_within):
            if bar is not None and self._most is not None and (-self._of, start - end, path) > bar:
                self._pass_over(end - start)
                continue
            group = self._group(path, lines[start:end])
            if self._last is None or group.rank <= self._last:
                self.matches += group.matches
                self._groups.append(group)
            else:
                self._pass_over(group.matches)
        if len(self._groups) > 2 * self._keep:
            self._cut()

    def ranked(self) -> list[Group]:
        """What was kept, the best first."""
        self._cut()
        return self._groups

    def _pass_over(self, matches: int) -> None:
        """Count matches whose passages are not among the best."""
        self.matches += matches
        self.more = True

    def _group(self, path: str, lines: list[tuple[int, bytes]]) -> Group:
        keywords = matches = 0
        for _, text in lines:
            bits, count, _ = self._held[text]
            keywords |= bits
            matches += count
        return Group(path, lines, keywords, matches)

    def _cut(self) -> None:
        self._groups.sort(key=attrgetter("rank"))
        if len(self._groups) >= self._keep:
            self.more = self.more or len(self._groups) > self._keep
            del self._groups[self._keep :]
            self._last = self._groups[-1].rank
            self._bar = self._last[:3]


def runs(lines: list[tuple[int, bytes]], within: int) -> Iterator[tuple[int, int]]:
    """Where lines that follow each other this closely begin and end, as positions among the lines."""
    start = 0
    for at, ((before, _), (number, _)) in enumerate(pairwise(lines), 1):
        if number - before > within:
            yield start, at
            start = at
    if lines:
        yield start, len(lines)
