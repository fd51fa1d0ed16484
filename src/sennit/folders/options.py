"""The keywords and options of an exact text search."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sennit.errors import InvalidInput
from sennit.folders.globs import expand_globs
from sennit.records import is_unicode
from sennit.search_parameters import KEYWORDS

MAX_KEYWORDS: Final = 1000
MAX_KEYWORD_CHARACTERS: Final = KEYWORDS.max_characters

_REGEX_META_CHARACTERS: Final = frozenset("\\.+*?()|[]{}^$#&-~")
_NOT_LITERAL: Final = re.compile(r"\\[pP]\{[^}]*\}|\\.|\(\?P?<[^>]*>", re.DOTALL)
"""Classes such as \\S and \\p{Greek}, and group names. A capital in them does not make a search case-sensitive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepOptions:
    """How to search, and when to stop."""

    regex: bool = False
    case: Literal["smart", "sensitive", "ignore"] = "smart"
    """Smart: a keyword without capitals matches in any case."""
    globs: tuple[str, ...] = ()
    """Files to include, or to exclude with a leading `!`, as in .gitignore."""
    hidden: bool = False
    ignored: bool = False
    """Also search files that .gitignore, .ignore and .rgignore exclude."""
    context: int = 10
    merge_within: int = 20
    max_files: int = 20_000
    max_matches: int = 200_000
    """The search stops at this many files or matches."""
    seconds: float = 5.0
    max_passages: int = 20
    max_bytes: int = 256 * 1024
    """The result has at most this many passages and bytes of text, the best first."""
    max_file_bytes: int = 32 * 1024 * 1024
    """Passages come from files up to this size."""

    def __post_init__(self) -> None:
        for name, (minimum, maximum) in _RANGES.items():
            value = getattr(self, name)
            if type(value) is not int or not minimum <= value <= maximum:
                raise InvalidInput(
                    f"{name} must be a whole number from {minimum} to {maximum:,}, not {value!r}"
                )
        if isinstance(self.seconds, bool) or not 0 < self.seconds <= 3600:
            raise InvalidInput(f"seconds must be above 0 and at most 3600, not {self.seconds!r}")
        if self.case not in ("smart", "sensitive", "ignore"):
            raise InvalidInput(f"case must be smart, sensitive or ignore, not {self.case!r}")
        object.__setattr__(self, "globs", expand_globs(self.globs))


_NO_LIMIT: Final = 1_000_000_000
_RANGES: Final = {
    "context": (0, 200),
    "merge_within": (0, 1000),
    "max_files": (1, _NO_LIMIT),
    "max_matches": (1, _NO_LIMIT),
    "max_passages": (1, 10_000),
    "max_bytes": (1, _NO_LIMIT),
    "max_file_bytes": (1, _NO_LIMIT),
}


def check_keywords(keywords: Sequence[str]) -> tuple[str, ...]:
    """Remove duplicate keywords; raises InvalidInput for keywords that cannot be searched for."""
    if isinstance(keywords, str) or not keywords:
        raise InvalidInput("Give at least one keyword to search for, in a list.")
    for keyword in keywords:
        if not isinstance(keyword, str) or not keyword.strip():
            raise InvalidInput(f"A keyword must be a string that is not blank, not {keyword!r}.")
        if any(character in keyword for character in "\n\r\0"):
            raise InvalidInput(
                f"A keyword must be part of one line: {keyword[:80]!r}. Search for its lines as several keywords."
            )
        if len(keyword) > MAX_KEYWORD_CHARACTERS or not is_unicode(keyword):
            raise InvalidInput(
                f"A keyword has at most {MAX_KEYWORD_CHARACTERS:,} characters and no lone surrogates: {keyword[:80]!r}."
            )
    distinct = tuple(dict.fromkeys(keywords))
    if len(distinct) > MAX_KEYWORDS:
        raise InvalidInput(f"{len(distinct):,} keywords; the limit for one search is {MAX_KEYWORDS:,}.")
    return distinct


def ignores_case(keyword: str, options: GrepOptions) -> bool:
    """Whether a keyword matches in any case."""
    if options.case != "smart":
        return options.case == "ignore"
    literal = _NOT_LITERAL.sub("", keyword) if options.regex else keyword
    return not any(character.isupper() for character in literal)


def keyword_pattern(keyword: str, options: GrepOptions) -> str:
    """The regular expression of a keyword, in the syntax of ripgrep."""
    if options.regex:
        return keyword
    return "".join(
        f"\\{character}"
        if character in _REGEX_META_CHARACTERS
        else character
        if character >= " "
        else f"\\x{ord(character):02x}"
        for character in keyword
    )
