"""Numbered citations: what may be cited, and an answer that cites nothing else.

An answer is read as it comes, part by part. A number in square brackets that is none of the passages is taken out,
with the space before it; what stands in code is code, and `a[1]` there is no citation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sennit.context.plain import one_line
from sennit.records import Json, Record
from sennit.results.hits import citation

MOST_NUMBERS: Final = 50
"""Numbers in one pair of brackets; more are a list of something else."""

_MARK: Final = re.compile(
    r"(?P<space>[ \t]*)\[(?P<numbers>\^?\d{1,4}(?: ?[,;\u2013-] ?\^?\d{1,4}){0,49})\]"
    r"(?P<link>\([^()\n]{0,500}\))?"
)
_MAY_BE_MARK: Final = re.compile(r"[ \t]*(?:\[[\^\d ,;\u2013-]{0,450})?")
_REMEMBERED: Final = 500
_OPEN: Final = re.compile(r"\[[\^\d ,;\u2013-]*\Z")
_MAY_BE_LINK: Final = re.compile(r"\([^()\n]{0,500}")
_FENCE: Final = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})(?P<rest>[^\n]*)")
_MAY_BE_FENCE: Final = re.compile(r" {0,3}(?:`{0,2}|~{0,2}|(?:`{3,}|~{3,})[^\n]*)")
_RUN: Final = re.compile(r"`+")
_PLAIN: Final = re.compile(r"[^`\[\n \t]+")
_SPACE: Final = re.compile(r"[ \t]+")
_MOST_CODE: Final = 1000
"""Characters after which a backtick that is not closed is one by itself."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A passage that may be cited."""

    number: int
    id: str
    title: str
    place: str
    """Path with lines, or address, or id."""
    url: str | None

    def to_dict(self) -> dict[str, Json]:
        return {
            "number": self.number,
            "id": self.id,
            "title": self.title,
            "place": self.place,
            "url": self.url,
        }

    def __str__(self) -> str:
        beside = f" ({self.url})" if self.url and self.url != self.place else ""
        return f"[{self.number}] {self.title or self.id} — {self.place}{beside}"


def cited(number: int, record: Record) -> Citation:
    """A record as a citation."""
    anchor = record.metadata.get("anchor")
    url = record.url
    if url is not None:
        url = one_line(f"{url}#{anchor}" if isinstance(anchor, str) and anchor and "#" not in url else url)
    return Citation(number, record.id, one_line(record.title), one_line(citation(record)), url)


def checked(text: str, known: Iterable[int]) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """A text with only citations that exist; those it has, and those that were taken out, in order."""
    check = Check(known)
    kept = check.feed(text) + check.finish()
    return kept, check.cited, check.removed


class Check:
    """Reads an answer part by part and gives back what is sure of it."""

    def __init__(self, known: Iterable[int]) -> None:
        self._known = frozenset(known)
        self._cited: dict[int, None] = {}
        self._removed: dict[int, None] = {}
        self._waiting = ""
        self._fence = ""
        """The marks that the open block of code began with; empty outside of one."""
        self._line_begins = True
        self._before = ""
        """The end of what was given back."""

    @property
    def cited(self) -> tuple[int, ...]:
        return tuple(self._cited)

    @property
    def removed(self) -> tuple[int, ...]:
        return tuple(self._removed)

    def feed(self, part: str) -> str:
        """What is sure after a further part."""
        self._waiting += part
        return self._advance(last=False)

    def finish(self) -> str:
        """What is left at the end."""
        return self._advance(last=True)

    def _advance(self, *, last: bool) -> str:
        out: list[str] = []
        text, at = self._waiting, 0
        while at < len(text):
            taken = self._step(text, at, last=last)
            if taken is None:
                break
            said, at = taken
            out.append(said)
            self._before = (self._before + said)[-_REMEMBERED:]
            self._line_begins = text[at - 1] == "\n"
        self._waiting = text[at:]
        return "".join(out)

    def _step(self, text: str, at: int, *, last: bool) -> tuple[str, int] | None:
        """What the next piece becomes, and where it ends; None when that is not yet known."""
        if self._fence or self._line_begins:
            end = text.find("\n", at) + 1 or (len(text) if last else 0)
            if not end and (self._fence or _MAY_BE_FENCE.fullmatch(text, at)):
                return None
            if self._fence or self._opens(text, at, end):
                return self._inside(text[at:end], end)
        character = text[at]
        if character == "`":
            return self._code(text, at, last=last)
        if character in "[ \t":
            return self._mark(text, at, last=last)
        if character == "\n":
            return "\n", at + 1
        found = _PLAIN.match(text, at)
        assert found is not None
        return found[0], found.end()

    def _opens(self, text: str, at: int, end: int) -> bool:
        """Whether a line begins a block of code."""
        found = _FENCE.match(text, at, end)
        # A fence of backticks has none behind it: "```x```" is code in a line.
        return found is not None and not (found["fence"][0] == "`" and "`" in found["rest"])

    def _inside(self, line: str, end: int) -> tuple[str, int]:
        """A line of a block of code: its first, its last, or one between."""
        found = _FENCE.match(line)
        if not self._fence:
            self._fence = found["fence"] if found else ""
        elif found and not found["rest"].strip() and found["fence"].startswith(self._fence):
            self._fence = ""
        return line, end

    def _code(self, text: str, at: int, *, last: bool) -> tuple[str, int] | None:
        """Code within a line, or backticks that are nothing."""
        run = _RUN.match(text, at)
        assert run is not None
        if run.end() == len(text) and not last:
            return None
        blank = text.find("\n\n", at)
        stop = min(len(text) if blank < 0 else blank, run.end() + _MOST_CODE)
        for other in _RUN.finditer(text, run.end(), stop):
            if len(other[0]) == len(run[0]) and (other.end() < len(text) or last):
                return text[at : other.end()], other.end()
        if stop == len(text) and not last:
            return None
        return run[0], run.end()

    def _mark(self, text: str, at: int, *, last: bool) -> tuple[str, int] | None:
        """A citation with the space before it, or something else that begins so."""
        found = _MARK.match(text, at)
        if found is None:
            if not last and _MAY_BE_MARK.fullmatch(text, at):
                return None
            space = _SPACE.match(text, at)
            return (space[0], space.end()) if space else ("[", at + 1)
        if not last and (found.end() == len(text) or _MAY_BE_LINK.fullmatch(text, found.end())):
            return None
        return self._kept(found), found.end()

    def _kept(self, found: re.Match[str]) -> str:
        numbers = _numbers(found["numbers"])
        if len(numbers) > MOST_NUMBERS:
            return found[0]
        good = [number for number in numbers if number in self._known]
        self._cited |= dict.fromkeys(good)
        self._removed |= dict.fromkeys(number for number in numbers if number not in self._known)
        if good:
            return f"{found['space']}{''.join(f'[{number}]' for number in good)}"
        # What stood around it must not become a citation by its going: [[9]7] and [7[9]].
        return " " if _OPEN.search(self._before) else ""


def _numbers(text: str) -> Sequence[int]:
    """`1, 3-5` is 1, 3, 4, 5."""
    out: dict[int, None] = {}
    for part in re.split(r"[,;]", text.replace("^", "")):
        ends = [int(number) for number in re.findall(r"\d+", part)]
        if len(ends) == 2 and ends[0] <= ends[1] <= ends[0] + MOST_NUMBERS:
            out |= dict.fromkeys(range(ends[0], ends[1] + 1))
        else:
            out |= dict.fromkeys(ends)
    return list(out)
