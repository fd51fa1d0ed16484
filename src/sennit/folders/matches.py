"""The matches of a search: which keywords each holds, and the groups of near matches that become passages.

ripgrep only reports that one of several keywords matched, so this module finds out which.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from typing import Final, NamedTuple

from sennit.folders.options import GrepOptions, ignores_case
from sennit.folders.ripgrep import common_flags, find_ripgrep, strip_preview_mark

OUTPUT_LINE: Final = re.compile(rb"^(\d+):([^\n]*)\n", re.MULTILINE)
"""A line of ripgrep's output: the line number, and the match or the whole line."""

MAX_COUNTED_KEYWORDS: Final = 16
"""With more keywords, it is slower to count those in a file than to look at all of its matches."""

Rank = tuple[int, int, str, int]
"""Minus the number of keywords, minus the number of matches, path, line. Lower is better."""


class KeywordMatch(NamedTuple):
    """What a match or a line contains: a bit for each keyword, the number of matches, and the first match."""

    keywords: int
    matches: int
    first: bytes


class MatchCache(dict[bytes, KeywordMatch]):
    """The keywords in each distinct match, computed on first use; distinct matches are few.

    A match also contains the keywords that are part of the matching keyword.
    """

    def __init__(self, keywords: Sequence[str], options: GrepOptions) -> None:
        super().__init__()
        self._finders = [_create_finder(word, options) for word in keywords] if len(keywords) > 1 else None

    def __missing__(self, match: bytes) -> KeywordMatch:
        bits = 1
        if self._finders is not None:
            bits = sum(1 << index for index, contains in enumerate(self._finders) if contains(match))
        found = self[match] = KeywordMatch(bits, 1, strip_preview_mark(match))
        return found


def match_expressions(
    keywords: Sequence[str], options: GrepOptions, bodies: Iterable[bytes], deadline: float
) -> tuple[Mapping[bytes, KeywordMatch], bool]:
    """Find which of several regular expressions each line contains, with one run of ripgrep for each expression.

    Python's `re` has another syntax, and some expressions take exponential time in it. Also returns whether there was
    time for all expressions.
    """
    lines = list(dict.fromkeys(text for body in bodies for _, text in OUTPUT_LINE.findall(body)))
    by_line = dict.fromkeys(lines, KeywordMatch(0, 0, b""))
    data = b"".join(line + b"\n" for line in lines)
    for index, keyword in enumerate(keywords):
        command = [find_ripgrep(), *common_flags([keyword], options), "--text", "--encoding=none"]
        command += ["--no-filename", "--line-number", "--only-matching", f"--regexp={keyword}", "-"]
        try:
            output = subprocess.run(
                command,
                input=data,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                check=False,
                timeout=deadline - time.monotonic(),
            ).stdout
        except subprocess.TimeoutExpired:
            return by_line, False
        for number, match in OUTPUT_LINE.findall(output):
            line = lines[int(number) - 1]
            bits, matches, first = by_line[line]
            by_line[line] = KeywordMatch(bits | 1 << index, matches + 1, first or strip_preview_mark(match))
    return by_line, True


def keyword_upper_bound(keywords: Sequence[str], options: GrepOptions) -> Callable[[bytes], int]:
    """A function that quickly computes an upper bound of the number of keywords in the matches of a file."""
    count = len(keywords)
    if count == 1 or count > MAX_COUNTED_KEYWORDS:
        return lambda _: count
    exact = [keyword.encode() for keyword in keywords if not ignores_case(keyword, options)]
    lowercase = [keyword.lower().encode() for keyword in keywords if ignores_case(keyword, options)]

    def count_keywords(body: bytes) -> int:
        # Beyond ASCII, case folding is not one to one: the Kelvin sign is also a capital k.
        if not body.isascii():
            return count
        lowered = body.lower() if lowercase else b""
        return sum(word in body for word in exact) + sum(word in lowered for word in lowercase)

    return count_keywords


def _create_finder(keyword: str, options: GrepOptions) -> Callable[[bytes], bool]:
    word = keyword.encode()
    if not ignores_case(keyword, options):
        return lambda match: word in match
    # An escaped keyword has no quantifiers, so Python's `re` does not backtrack.
    pattern = re.compile(re.escape(keyword), re.IGNORECASE)
    return lambda match: pattern.search(match.decode("utf-8", "replace")) is not None


@dataclass(slots=True)
class MatchGroup:
    """Matches of one file that make one passage."""

    path: str
    lines: list[tuple[int, bytes]]
    keywords: int
    matches: int

    @property
    def rank(self) -> Rank:
        return -self.keywords.bit_count(), -self.matches, self.path, self.lines[0][0]


class TopGroups:
    """Collects the matches of file after file, and keeps the best groups.

    `max_keywords` computes an upper bound of the keywords in a file, and `keyword_count` is the number of all keywords.
    A file with too few keywords or matches for any of its groups to be among the best is only counted, which takes a
    microsecond. For a frequent word, these are most files. Without `max_keywords`, when a line may contain several
    matches, every file is examined.
    """

    def __init__(
        self,
        keep: int,
        merge_within: int,
        found: Mapping[bytes, KeywordMatch],
        max_keywords: Callable[[bytes], int] | None = None,
        keyword_count: int = 1,
    ) -> None:
        self._keep = keep
        self._merge_within = merge_within
        self._found = found
        self._max_keywords = max_keywords
        self._keyword_count = keyword_count
        self._groups: list[MatchGroup] = []
        self._worst_kept: Rank | None = None
        self._threshold: tuple[int, int, str] | None = None
        """The rank of the worst kept group without its line, to compare whole files with."""
        self.matches = 0
        """The number of matches in all files."""
        self.has_more = False
        """Whether some groups were not kept."""

    def add_file(self, path: str, body: bytes) -> None:
        """Add a file with the output of ripgrep for it."""
        threshold = self._threshold
        if threshold is not None and self._max_keywords is not None:
            matches = body.count(b"\n")
            # To count the matches is faster than to look for keywords in them, and mostly enough.
            if (-self._keyword_count, -matches, path) > threshold or (
                (-self._max_keywords(body), -matches, path) > threshold
            ):
                self._count_only(matches)
                return
        lines = [(int(digits), text) for digits, text in OUTPUT_LINE.findall(body)]
        for start, end in find_runs(lines, self._merge_within):
            if (
                threshold is not None
                and self._max_keywords is not None
                and (-self._keyword_count, start - end, path) > threshold
            ):
                self._count_only(end - start)
                continue
            group = self._create_group(path, lines[start:end])
            if self._worst_kept is None or group.rank <= self._worst_kept:
                self.matches += group.matches
                self._groups.append(group)
            else:
                self._count_only(group.matches)
        if len(self._groups) > 2 * self._keep:
            self._trim()

    def ranked(self) -> list[MatchGroup]:
        """The groups that were kept, the best first."""
        self._trim()
        return self._groups

    def _count_only(self, matches: int) -> None:
        """Count matches whose groups are not among the best."""
        self.matches += matches
        self.has_more = True

    def _create_group(self, path: str, lines: list[tuple[int, bytes]]) -> MatchGroup:
        keywords = matches = 0
        for _, text in lines:
            bits, count, _ = self._found[text]
            keywords |= bits
            matches += count
        return MatchGroup(path, lines, keywords, matches)

    def _trim(self) -> None:
        self._groups.sort(key=attrgetter("rank"))
        if len(self._groups) >= self._keep:
            self.has_more = self.has_more or len(self._groups) > self._keep
            del self._groups[self._keep :]
            self._worst_kept = self._groups[-1].rank
            self._threshold = self._worst_kept[:3]


def find_runs(lines: list[tuple[int, bytes]], within: int) -> Iterator[tuple[int, int]]:
    """Runs of lines whose numbers differ by at most `within` from line to line, as index ranges."""
    start = 0
    for index, ((before, _), (number, _)) in enumerate(pairwise(lines), 1):
        if number - before > within:
            yield start, index
            start = index
    if lines:
        yield start, len(lines)
