"""Text of strangers made harmless for a prompt: nothing hidden, nothing that steers, nothing that is markup."""

from __future__ import annotations

import unicodedata
from typing import Final

JOINERS: Final = "\u200c\u200d"
"""Zero-width, and needed: Persian and Indic words and many emoji are spelled with them."""

INVISIBLE: Final = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Drawn as nothing, though their category says otherwise."""

SELECTORS: Final = range(0xFE00, 0xFE10)
"""Choose the look of the character before; in a row they can spell a hidden message."""

MORE_SELECTORS: Final = range(0xE0100, 0xE01F0)

_REMOVED: Final = frozenset(("Cc", "Cf", "Cs", "Co", "Cn"))
_WITHOUT_BREAKS: Final = str.maketrans("", "", "\n\t")
_BREAKS: Final = "\u2028\u2029\x85"
_LESS: Final = "<\uff1c\ufe64"
"""What reads as the beginning of a tag."""


def cleaned(text: str) -> str:
    """Without control characters (but newline and tab), direction marks and what cannot be seen."""
    if text.isascii() and text.translate(_WITHOUT_BREAKS).isprintable():
        return text
    out: list[str] = []
    for at, character in enumerate(text):
        if character in "\n\t":
            out.append(character)
        elif character in _BREAKS:
            out.append("\n")
        elif character in JOINERS:
            if 0 < at < len(text) - 1 and _joins(text[at - 1]) and _joins(text[at + 1]):
                out.append(character)
        elif ord(character) in SELECTORS:
            if out and ord(out[-1][-1]) not in SELECTORS and not out[-1].isspace():
                out.append(character)
        elif not (
            unicodedata.category(character) in _REMOVED
            or character in INVISIBLE
            or ord(character) in MORE_SELECTORS
        ):
            out.append(character)
    return "".join(out)


def _joins(character: str) -> bool:
    """Whether a joiner next to this can mean something: letters and marks outside Latin, emoji."""
    return character > "\u02ff" and unicodedata.category(character)[0] in "LMS"


def one_line(text: str) -> str:
    """A name or label: cleaned, in one line."""
    return " ".join(cleaned(text).split())


def cut(text: str, most: int) -> str:
    """At most so many characters, with a mark where something is missing."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"


def escaped(text: str) -> str:
    """Text that no reader of tags takes for one; > stays, for it opens nothing."""
    text = text.replace("&", "&amp;")
    for character in _LESS:
        text = text.replace(character, "&lt;")
    return text.replace("]]>", "]]&gt;")
