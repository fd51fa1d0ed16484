"""What a name is: words without case, accents, possessives and punctuation, each as a number."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import is_stop, term_hash
from sennit.analysis._tables import UNSPACED
from sennit.analysis._tokens import fold, tokens
from sennit.facts import aliases_of
from sennit.graph.common import COMMON
from sennit.records import Record

REVISION: Final = 1
"""Raise it with every change that gives a name another number: databases then fill their tables of names anew."""

MAX_NAME_WORDS: Final = 12
"""A longer title is a sentence, which nobody repeats word for word."""

MAX_WORDS: Final = 500
"""Of one text: mentions are looked for in its first page or two, so that the cost of a seed has a limit."""

MAX_CHARACTERS: Final = 10 * MAX_WORDS
"""More than any language needs for its words; the rest of a text is not even read."""

MAX_NAMES: Final = 64
"""Of one record, aliases included."""

# What is known of a word of a text.
CAPITAL, INITIAL, STOP, NUMBER, ORDINARY, CASELESS, SHOUTED = (1 << n for n in range(7))

# What is known of a name.
PLAIN, SURE = 1, 2
"""PLAIN: written without capitals, as `numpy` is. SURE: of a record that declares its names."""

Hashes = NDArray[np.uint64]
Flags = NDArray[np.uint8]

_PRIME: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1
_STOPS: Final = str.maketrans({"!": ".", "?": ".", ":": ".", "…": ".", "\n": ". "})
"""What may end a sentence, as a full stop: where it is followed by a space, a capital is no wonder."""

_JOINERS: Final = re.compile(r"[-.@&_,+#‐‑]")
_POSSESSIVE: Final = re.compile(r"'s$", re.IGNORECASE)
_UNSPACED: Final = re.compile(f"[{UNSPACED}]")
_BETWEEN_UNSPACED: Final = re.compile(f"(?<=[{UNSPACED}]) (?=[{UNSPACED}])")
CLOSING: Final = (")", "）")
_IN_BRACKETS: Final = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text, in order."""

    hashes: Hashes
    flags: Flags
    written: tuple[str, ...]
    shows_case: bool
    """Whether the writer uses capitals for names: one stands inside a sentence."""


class Name(NamedTuple):
    """A name of a record."""

    hash: int
    """Signed, as SQLite keeps numbers."""
    flags: int


def words_of(text: str) -> Words:
    """The words of a text, at most MAX_WORDS."""
    numbers, marks, written = _spell(text[:MAX_CHARACTERS])
    hashes, flags = np.frombuffer(numbers, np.uint64), np.frombuffer(marks, np.uint8)[:MAX_WORDS]
    cased = flags & (CASELESS | NUMBER) == 0
    if (flags[cased] & SHOUTED != 0).all():
        # Where every word is in capitals, they say nothing.
        flags = flags & np.uint8(0xFF ^ CAPITAL)
    inside = flags & (CAPITAL | INITIAL) == CAPITAL
    return Words(hashes[:MAX_WORDS], flags, tuple(written[:MAX_WORDS]), bool(inside.any()))


def name_number(name: str) -> int | None:
    """The number of a name as SQLite keeps it; None when it has no words, or too many."""
    numbers, marks, _ = _spell(name[:MAX_CHARACTERS])
    return _number(numbers) if 0 < len(marks) <= MAX_NAME_WORDS else None


def names_of(record: Record) -> list[Name]:
    """Every name of a record: its title, the title without what tells it from others, and its aliases."""
    aliases = aliases_of(record)
    sure = 0 if aliases is None else SURE
    out: dict[int, int] = {}
    for name in (*_forms(record.title), *(aliases or ())):
        numbers, marks, _ = _spell(name[: MAX_NAME_WORDS * 64])
        if 0 < len(marks) <= MAX_NAME_WORDS and len(out) < MAX_NAMES:
            stands_out = any(mark & (CAPITAL | CASELESS) for mark in marks)
            out.setdefault(_number(numbers), sure | (0 if stands_out else PLAIN))
    return [Name(number, flags) for number, flags in out.items()]


def joined(written: Iterable[str]) -> str:
    """Words as a reader writes them: with spaces, unless their script has none."""
    return _BETWEEN_UNSPACED.sub("", " ".join(written))


def signed(hashes: Hashes) -> NDArray[np.int64]:
    """Numbers as SQLite keeps them."""
    return hashes.view(np.int64)


def phrases(hashes: Hashes, longest: int = MAX_NAME_WORDS) -> Iterator[Hashes]:
    """For each length, from one word on, the number of the phrase that begins at each word."""
    current = hashes
    for length in range(1, min(longest, len(hashes)) + 1):
        if length > 1:
            current = current[:-1] * np.uint64(_PRIME) + hashes[length - 1 :]
        yield current


def _forms(title: str) -> Iterable[str]:
    """`Jaws (film)` is also Jaws; `Adolph of Cleves, Lord of Ravenstein` is also Adolph of Cleves."""
    if not title:
        return
    yield title
    # A look at the end spares most titles a search for brackets.
    bare = _IN_BRACKETS.sub("", title) if title.rstrip()[-1:] in CLOSING else title
    if bare and bare != title:
        yield bare
    first, comma, _ = bare.partition(",")
    # One word before a comma is as often a family name or a heading.
    if comma and len(first.split()) > 1:
        yield first


def _number(words: bytes) -> int:
    """Of the numbers of some words, as `_spell` gives them."""
    number = 0
    for word in memoryview(words).cast("Q"):
        number = (number * _PRIME + word) & _MASK
    return number - (1 << 64) if number >> 63 else number


def _spell(text: str) -> tuple[bytes, bytes, list[str]]:
    """The number of each word in eight bytes, what is known of it, and how it was written."""
    hashes = bytearray()
    flags = bytearray()
    written: list[str] = []
    for sentence in text.translate(_STOPS).split(". "):
        first = len(flags)
        for numbers, marks, pieces in map(_spelled, tokens(sentence)):
            hashes += numbers
            flags += marks
            written += pieces
        if first < len(flags):
            flags[first] |= INITIAL
    return bytes(hashes), bytes(flags), written


_Spelled: TypeAlias = tuple[bytes, bytes, tuple[str, ...]]


@lru_cache(maxsize=50_000)
def _spelled(raw: str) -> _Spelled:
    """The words of one token: a name is the same with and without hyphens, and in any run of Chinese."""
    if _UNSPACED.match(raw):
        pieces = list(raw)
    else:
        split = _JOINERS.split(raw.replace("’", "'"))
        pieces = [bare for piece in split if (bare := _POSSESSIVE.sub("", piece))]
    folded = [fold(piece.replace("'", "")) for piece in pieces]
    return (
        b"".join(term_hash(word).to_bytes(8, sys.byteorder) for word in folded),
        bytes(map(_flags, pieces, folded)),
        tuple(pieces),
    )


def _flags(written: str, folded: str) -> int:
    first = written[0]
    flags = 0
    if first.isupper() and folded != "i":
        flags |= CAPITAL
        if len(written) > 1 and written.isupper():
            flags |= SHOUTED
    elif first.isalpha() and first.lower() == first.upper():
        flags |= CASELESS
    if is_stop(folded):
        flags |= STOP
    if folded.isdecimal():
        flags |= NUMBER
    if folded in COMMON or len(folded) == 1:
        flags |= ORDINARY
    return flags
