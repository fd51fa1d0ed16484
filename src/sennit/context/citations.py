"""Numbered citations, and a filter that removes those that do not exist from an answer.

The filter reads an answer part by part, as a model writes it. It removes a number in square brackets that belongs to
no passage, with the space before it. In code, `a[1]` is no citation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sennit.context.sanitize import one_line
from sennit.records import Json, Record
from sennit.results.hits import cite_record, project_of

MAX_NUMBERS: Final = 50
"""Numbers in one pair of brackets; a longer list is no citation."""

_MARK: Final = re.compile(
    r"(?P<space>[ \t]*)\[(?P<numbers>\^?\d{1,4}(?: ?[,;\u2013-] ?\^?\d{1,4}){0,49})\]"
    r"(?P<link>\([^()\n]{0,500}\))?"
)
_MAY_BE_MARK: Final = re.compile(r"[ \t]*(?:\[[\^\d ,;\u2013-]{0,450})?")
_MAX_LOOKBEHIND: Final = 500
"""Characters of the output that are kept to recognise an open bracket."""

_OPEN: Final = re.compile(r"\[[\^\d ,;\u2013-]*\Z")
_MAY_BE_LINK: Final = re.compile(r"\([^()\n]{0,500}")
_FENCE: Final = re.compile(r" {0,3}(?P<fence>`{3,}|~{3,})(?P<rest>[^\n]*)")
_MAY_BE_FENCE: Final = re.compile(r" {0,3}(?:`{0,2}|~{0,2}|(?:`{3,}|~{3,})[^\n]*)")
_RUN: Final = re.compile(r"`+")
_PLAIN: Final = re.compile(r"[^`\[\n \t]+")
_SPACE: Final = re.compile(r"[ \t]+")
_MAX_INLINE_CODE_CHARACTERS: Final = 1000
"""Characters after which an unclosed backtick counts as a plain character."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A passage that may be cited."""

    number: int
    id: str
    title: str
    location: str
    """Path with lines, or address, or id."""
    url: str | None
    project: str = ""
    """The indexed folder that it comes from, by name."""
    revision: str = ""
    """The git revision of that folder, such as `main@1a2b3c4d`."""

    def to_dict(self) -> dict[str, Json]:
        return {
            "number": self.number,
            "id": self.id,
            "title": self.title,
            "location": self.location,
            "url": self.url,
            "project": self.project,
            "revision": self.revision,
        }

    def __str__(self) -> str:
        url = f" ({self.url})" if self.url and self.url != self.location else ""
        # A record without a title and a file is at its id.
        place = " — ".join(dict.fromkeys((self.title or self.id, self.location)))
        return f"[{self.number}] {place}{url}"


def make_citation(number: int, record: Record, location: str | None = None, revision: str = "") -> Citation:
    """Return the citation of a record. `location` is its path as it is shown, `revision` that of its folder."""
    anchor = record.metadata.get("anchor")
    url = record.url
    if url is not None:
        url = one_line(f"{url}#{anchor}" if isinstance(anchor, str) and anchor and "#" not in url else url)
    place = one_line(cite_record(record, location))
    project, at = one_line(project_of(record)), one_line(revision)
    return Citation(number, record.id, one_line(record.title), place, url, project, at)


def filter_citations(text: str, known: Iterable[int]) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
    """Return a text without citations that do not exist, the numbers it cites, and those removed, in order."""
    citations = CitationFilter(known)
    kept = citations.feed(text) + citations.finish()
    return kept, citations.cited, citations.removed


class CitationFilter:
    """Reads an answer part by part and returns as much of it as is decided."""

    def __init__(self, known: Iterable[int]) -> None:
        self._known = frozenset(known)
        self._cited: dict[int, None] = {}
        self._removed: dict[int, None] = {}
        self._pending = ""
        self._fence = ""
        """The fence that opened the current code block; empty outside of one."""
        self._at_line_start = True
        self._emitted = ""
        """The end of what was returned."""

    @property
    def cited(self) -> tuple[int, ...]:
        return tuple(self._cited)

    @property
    def removed(self) -> tuple[int, ...]:
        return tuple(self._removed)

    def feed(self, part: str) -> str:
        """Take a further part, and return what is decided."""
        self._pending += part
        return self._advance(last=False)

    def finish(self) -> str:
        """Return the rest, when there are no more parts."""
        return self._advance(last=True)

    def _advance(self, *, last: bool) -> str:
        out: list[str] = []
        text, at = self._pending, 0
        while at < len(text):
            taken = self._step(text, at, last=last)
            if taken is None:
                break
            output, at = taken
            out.append(output)
            self._emitted = (self._emitted + output)[-_MAX_LOOKBEHIND:]
            self._at_line_start = text[at - 1] == "\n"
        self._pending = text[at:]
        return "".join(out)

    def _step(self, text: str, at: int, *, last: bool) -> tuple[str, int] | None:
        """Return what the next piece becomes and where it ends; None if that needs more text."""
        if self._fence or self._at_line_start:
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
        """Whether a line opens a code block."""
        found = _FENCE.match(text, at, end)
        # A fence of backticks has no backtick after it: "```x```" is inline code.
        return found is not None and not (found["fence"][0] == "`" and "`" in found["rest"])

    def _inside(self, line: str, end: int) -> tuple[str, int]:
        """Take a line of a code block: its first, its last, or one between."""
        found = _FENCE.match(line)
        if not self._fence:
            self._fence = found["fence"] if found else ""
        elif found and not found["rest"].strip() and found["fence"].startswith(self._fence):
            self._fence = ""
        return line, end

    def _code(self, text: str, at: int, *, last: bool) -> tuple[str, int] | None:
        """Take inline code, or backticks that open none."""
        run = _RUN.match(text, at)
        assert run is not None
        if run.end() == len(text) and not last:
            return None
        blank = text.find("\n\n", at)
        stop = min(len(text) if blank < 0 else blank, run.end() + _MAX_INLINE_CODE_CHARACTERS)
        for other in _RUN.finditer(text, run.end(), stop):
            if len(other[0]) == len(run[0]) and (other.end() < len(text) or last):
                return text[at : other.end()], other.end()
        if stop == len(text) and not last:
            return None
        return run[0], run.end()

    def _mark(self, text: str, at: int, *, last: bool) -> tuple[str, int] | None:
        """Take a citation with the space before it, or something else that begins like one."""
        found = _MARK.match(text, at)
        if found is None:
            if not last and _MAY_BE_MARK.fullmatch(text, at):
                return None
            space = _SPACE.match(text, at)
            return (space[0], space.end()) if space else ("[", at + 1)
        if not last and (found.end() == len(text) or _MAY_BE_LINK.fullmatch(text, found.end())):
            return None
        return self._filter_numbers(found), found.end()

    def _filter_numbers(self, found: re.Match[str]) -> str:
        numbers = _numbers(found["numbers"])
        if len(numbers) > MAX_NUMBERS:
            return found[0]
        existing = [number for number in numbers if number in self._known]
        self._cited |= dict.fromkeys(existing)
        self._removed |= dict.fromkeys(number for number in numbers if number not in self._known)
        if existing:
            return f"{found['space']}{''.join(f'[{number}]' for number in existing)}"
        # Removing it must not make a citation of the text around it: [[9]7] and [7[9]].
        return " " if _OPEN.search(self._emitted) else ""


def _numbers(text: str) -> Sequence[int]:
    """Return 1, 3, 4, 5 for `1, 3-5`."""
    out: dict[int, None] = {}
    for part in re.split(r"[,;]", text.replace("^", "")):
        ends = [int(number) for number in re.findall(r"\d+", part)]
        if len(ends) == 2 and ends[0] <= ends[1] <= ends[0] + MAX_NUMBERS:
            out |= dict.fromkeys(range(ends[0], ends[1] + 1))
        else:
            out |= dict.fromkeys(ends)
    return list(out)
