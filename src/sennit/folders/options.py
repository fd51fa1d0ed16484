"""What a search for exact text is asked: the keywords, and how to look for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from sennit.errors import InvalidInput
from sennit.folders.globs import expanded
from sennit.records import is_unicode

MAX_KEYWORDS: Final = 1000
MAX_KEYWORD: Final = 1000
"""Characters; a keyword is a part of one line."""

_META: Final = frozenset("\\.+*?()|[]{}^$#&-~")
_NOT_LITERAL: Final = re.compile(r"\\[pP]\{[^}]*\}|\\.|\(\?P?<[^>]*>", re.DOTALL)
"""Classes such as \\S and \\p{Greek}, and names of groups: capitals in them stand for no capital."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GrepOptions:
    """How to search, and when to stop."""

    regex: bool = False
    case: Literal["smart", "sensitive", "ignore"] = "smart"
    """Smart: a keyword without capitals is found in any case."""
    globs: tuple[str, ...] = ()
    """Files to take, or with `!` in front to leave out, as in .gitignore."""
    hidden: bool = False
    ignored: bool = False
    """Also what .gitignore, .ignore and .rgignore leave out."""
    context: int = 10
    merge_within: int = 20
    max_files: int = 20_000
    max_matches: int = 200_000
    """The search stops at so many files or matches."""
    seconds: float = 5.0
    max_passages: int = 20
    max_bytes: int = 256 * 1024
    """The best passages are in the answer: so many, with so many bytes of text."""
    max_file_bytes: int = 32 * 1024 * 1024
    """Passages are cut from files up to this size."""

    def __post_init__(self) -> None:
        for name, (least, most) in _BETWEEN.items():
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise InvalidInput(f"{name} must be a whole number from {least} to {most:,}, not {value!r}")
        if isinstance(self.seconds, bool) or not 0 < self.seconds <= 3600:
            raise InvalidInput(f"seconds must be above 0 and at most 3600, not {self.seconds!r}")
        if self.case not in ("smart", "sensitive", "ignore"):
            raise InvalidInput(f"case must be smart, sensitive or ignore, not {self.case!r}")
        object.__setattr__(self, "globs", expanded(self.globs))


_MANY: Final = 1_000_000_000
_BETWEEN: Final = {
    "context": (0, 200),
    "merge_within": (0, 1000),
    "max_files": (1, _MANY),
    "max_matches": (1, _MANY),
    "max_passages": (1, 10_000),
    "max_bytes": (1, _MANY),
    "max_file_bytes": (1, _MANY),
}


def checked(keywords: Sequence[str]) -> tuple[str, ...]:
    """The keywords without repeats; raises InvalidInput for what cannot be searched for."""
    if isinstance(keywords, str) or not keywords:
        raise InvalidInput("Name at least one keyword to search for, in a list.")
    for keyword in keywords:
        if not isinstance(keyword, str) or not keyword.strip():
            raise InvalidInput(f"A keyword is a text that is not blank, not {keyword!r}.")
        if any(character in keyword for character in "\n\r\0"):
            raise InvalidInput(
                f"A keyword is part of one line: {keyword[:80]!r}. Search for its lines as several keywords."
            )
        if len(keyword) > MAX_KEYWORD or not is_unicode(keyword):
            raise InvalidInput(
                f"A keyword has at most {MAX_KEYWORD:,} characters and no lone surrogates: {keyword[:80]!r}."
            )
    distinct = tuple(dict.fromkeys(keywords))
    if len(distinct) > MAX_KEYWORDS:
        raise InvalidInput(f"{len(distinct):,} keywords; the most in one search is {MAX_KEYWORDS:,}.")
    return distinct


def ignores_case(keyword: str, options: GrepOptions) -> bool:
    """Whether a keyword is found in any case."""
    if options.case != "smart":
        return options.case == "ignore"
    said = _NOT_LITERAL.sub("", keyword) if options.regex else keyword
    return not any(character.isupper() for character in said)


def expression(keyword: str, options: GrepOptions) -> str:
    """The regular expression of a keyword, in ripgrep's language."""
    if options.regex:
        return keyword
    return "".join(
        f"\\{character}"
        if character in _META
        else character
        if character >= " "
        else f"\\x{ord(character):02x}"
        for character in keyword
    )
