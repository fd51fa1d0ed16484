r"""Patterns of `like`: `*` stands for any characters, also none and also `/`; `?` for exactly one.

A backslash makes the next `*`, `?` or `\` an ordinary character; every other character is ordinary, brackets too.
Matching never backtracks over a `*`, and a pattern is not a regular expression, so no pattern is slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from sennit.errors import FilterError

MAX_PATTERN_CHARACTERS: Final = 2048
"""Longer than any path or title that a pattern describes."""

MAX_ATTEMPTS: Final = 64
"""Places at which a segment is compared one by one. A text with more of them is scanned in linear time."""

_SPECIAL: Final = re.compile(r"[*?\\]")
_PIECE: Final = re.compile(r"\\.|.", re.DOTALL)


class _Segment(NamedTuple):
    """The part of a pattern between two `*`."""

    length: int
    runs: tuple[tuple[int, str], ...]
    """The ordinary characters, as runs between the `?`, each with its offset."""
    longest: tuple[int, str]

    def matches_at(self, text: str, start: int) -> bool:
        return 0 <= start <= len(text) - self.length and all(
            text.startswith(run, start + offset) for offset, run in self.runs
        )

    def find(self, text: str, start: int, end: int) -> int:
        """The first place from `start` at which the segment fits before `end`; -1 if there is none."""
        offset, run = self.longest
        last = end - self.length + offset + len(run)
        at = text.find(run, start + offset, last) if start + self.length <= end else -1
        attempts = 0
        while at >= 0 and not self.matches_at(text, at - offset):
            attempts += 1
            if attempts == MAX_ATTEMPTS:
                return self._scan(text, at - offset + 1, end)
            at = text.find(run, at + 1, last)
        return at - offset if at >= 0 else -1

    def _scan(self, text: str, start: int, end: int) -> int:
        """Do the same in one pass (Shift-And): bit i says whether the first i + 1 characters fit up to here."""
        ordinary: dict[str, int] = {}
        anything = (1 << self.length) - 1
        for offset, run in self.runs:
            for bit, character in enumerate(run, offset):
                ordinary[character] = ordinary.get(character, 0) | 1 << bit
                anything &= ~(1 << bit)
        accepts = {character: bits | anything for character, bits in ordinary.items()}
        state, whole = 0, 1 << (self.length - 1)
        for at in range(start, end):
            state = (state << 1 | 1) & accepts.get(text[at], anything)
            if state & whole:
                return at - self.length + 1
        return -1


class Pattern:
    """A compiled pattern of `like`."""

    __slots__ = ("_required", "_segments", "ignore_case", "is_prefix", "prefix")

    def __init__(self, segments: Sequence[_Segment], ignore_case: bool) -> None:
        self._segments = segments
        self.ignore_case = ignore_case
        """Whether texts are compared after case folding."""
        first = segments[0].runs
        self.prefix = first[0][1] if first and first[0][0] == 0 else ""
        """The ordinary characters with which the pattern begins; folded where the case does not matter."""
        self.is_prefix = (
            len(segments) == 2 and segments[0].length == len(self.prefix) and not segments[1].length
        )
        """Whether the prefix is all that a text needs."""
        self._required = max((segment.longest[1] for segment in segments), key=len)
        """Characters that every fitting text contains."""

    def matches(self, text: str) -> bool:
        """Return whether the whole text fits the pattern."""
        return self._fits(text.casefold() if self.ignore_case else text)

    def matches_each(self, texts: Iterable[str]) -> list[bool]:
        """Return for each text whether it fits; a search for the longest run of characters decides most of them."""
        required, fits = self._required, self._fits
        folded = map(str.casefold, texts) if self.ignore_case else texts
        return [required in text and fits(text) for text in folded]

    def _fits(self, text: str) -> bool:
        first, *rest = self._segments
        if not rest:
            return len(text) == first.length and first.matches_at(text, 0)
        last = rest.pop()
        at, end = first.length, len(text) - last.length
        if at > end or not first.matches_at(text, 0) or not last.matches_at(text, end):
            return False
        # The first place is the best one: it leaves the most text for the segments after it.
        for segment in rest:
            found = segment.find(text, at, end)
            if found < 0:
                return False
            at = found + segment.length
        return True


def escape_pattern(text: str) -> str:
    """Return the pattern that only this text fits."""
    return _SPECIAL.sub(r"\\\g<0>", text)


def pattern_pieces(pattern: str) -> list[str]:
    """The characters of a pattern in order; an escaped one has its backslash before it."""
    pieces: list[str] = _PIECE.findall(pattern)
    return pieces


def normalise_pattern(name: str, pattern: str, *, ignore_case: bool) -> str:
    """Return the one way to write a pattern: no `*` beside another, and folded where the case does not matter."""
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise FilterError(
            f"The pattern for {name!r} has {len(pattern):,} characters; the limit is {MAX_PATTERN_CHARACTERS:,}"
        )
    pieces: list[str] = []
    for piece in pattern_pieces(pattern):
        if piece[0] == "\\" and piece not in (r"\*", r"\?", r"\\"):
            raise FilterError(
                f"The pattern for {name!r} has a lone backslash; write \\\\ for a backslash, \\* and \\? for these "
                "characters themselves"
            )
        if piece != "*" or pieces[-1:] != ["*"]:
            pieces.append(piece)
    joined = "".join(pieces)
    return joined.casefold() if ignore_case else joined


@lru_cache(256)
def compile_pattern(pattern: str, ignore_case: bool) -> Pattern:
    """Compile a normalised pattern. Cached, because each written record is compared with the same few."""
    segments: list[_Segment] = []
    runs: list[tuple[int, str]] = []
    run, length = "", 0
    for piece in [*pattern_pieces(pattern), ""]:
        if piece not in ("*", "?", ""):
            run += piece[-1]
            length += 1
            continue
        if run:
            runs.append((length - len(run), run))
            run = ""
        if piece == "?":
            length += 1
        else:
            longest = max(runs, key=lambda one: len(one[1]), default=(0, ""))
            segments.append(_Segment(length, tuple(runs), longest))
            runs, length = [], 0
    return Pattern(segments, ignore_case)
