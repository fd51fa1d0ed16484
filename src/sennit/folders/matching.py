"""Which of several keywords was found: ripgrep only says that one of them was."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from sennit.folders.options import GrepOptions, ignores_case
from sennit.folders.ripgrep import binary, flags, original

LINE: Final = re.compile(rb"^(\d+):([^\n]*)\n", re.MULTILINE)
"""What ripgrep prints: the number of a line, and the match or the line."""


class Held(NamedTuple):
    """What a match or a line holds: a bit for each keyword, how many matches, and the first of them."""

    keywords: int
    matches: int
    first: bytes


class Matches(dict[bytes, Held]):
    """What matches hold, each looked at when it comes for the first time; there are few different ones.

    A keyword that is a part of the one that matched is there, too.
    """

    def __init__(self, keywords: Sequence[str], options: GrepOptions) -> None:
        super().__init__()
        self._finders = [_finder(keyword, options) for keyword in keywords] if len(keywords) > 1 else None

    def __missing__(self, match: bytes) -> Held:
        bits = 1
        if self._finders is not None:
            bits = sum(1 << at for at, finds in enumerate(self._finders) if finds(match))
        held = self[match] = Held(bits, 1, original(match))
        return held


def expressions(
    keywords: Sequence[str], options: GrepOptions, bodies: Iterable[bytes], deadline: float
) -> tuple[Mapping[bytes, Held], bool]:
    """What lines hold of several regular expressions: ripgrep is asked for each, over these lines alone.

    Python's own expressions are another language, and some take longer than anybody waits. Says also whether
    there was time for all of them.
    """
    lines = list(dict.fromkeys(text for body in bodies for _, text in LINE.findall(body)))
    known = dict.fromkeys(lines, Held(0, 0, b""))
    data = b"".join(line + b"\n" for line in lines)
    for at, keyword in enumerate(keywords):
        command = [binary(), *flags([keyword], options), "--text", "--encoding=none", "--no-filename"]
        command += ["--line-number", "--only-matching", f"--regexp={keyword}", "-"]
        left = deadline - time.monotonic()
        try:
            answer = subprocess.run(
                command,
                input=data,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                check=False,
                timeout=left,
            ).stdout
        except subprocess.TimeoutExpired:
            return known, False
        for number, found in LINE.findall(answer):
            line = lines[int(number) - 1]
            bits, matches, first = known[line]
            known[line] = Held(bits | 1 << at, matches + 1, first or original(found))
    return known, True


def most_keywords(keywords: Sequence[str], options: GrepOptions) -> Callable[[bytes], int]:
    """At most so many of the keywords are in what was found in a file; quick, and never too low."""
    count = len(keywords)
    if count == 1 or count > _FEW:
        return lambda _: count
    exact = [keyword.encode() for keyword in keywords if not ignores_case(keyword, options)]
    folded = [keyword.lower().encode() for keyword in keywords if ignores_case(keyword, options)]

    def most(body: bytes) -> int:
        # Beyond ASCII, letters with one lower case may look different: K is also the sign of the kelvin.
        if not body.isascii():
            return count
        lowered = body.lower() if folded else b""
        return sum(word in body for word in exact) + sum(word in lowered for word in folded)

    return most


_FEW: Final = 16
"""Keywords that are looked for one by one."""


def _finder(keyword: str, options: GrepOptions) -> Callable[[bytes], bool]:
    word = keyword.encode()
    if not ignores_case(keyword, options):
        return lambda match: word in match
    # Written out, a keyword is an expression without repeats, which Python finds without going back.
    pattern = re.compile(re.escape(keyword), re.IGNORECASE)
    return lambda match: pattern.search(match.decode("utf-8", "replace")) is not None
