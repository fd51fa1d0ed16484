"""Names as hashes of their words, without case, accents, possessives and punctuation."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import is_stop_word, term_hash
from sennit.analysis.tables import UNSPACED
from sennit.analysis.tokenizer import fold, tokenize
from sennit.facts import aliases_of
from sennit.graph.common_words import COMMON_WORDS
from sennit.records import Record

REVISION: Final = 1
"""Raise it with every change that alters the hash of a name: databases then rebuild their tables of names."""

MAX_NAME_WORDS: Final = 12
"""A longer title is a sentence, which no text repeats word for word."""

MAX_TEXT_WORDS: Final = 500
"""Mentions are searched only in the first page or two of a text, which bounds the cost of a seed."""

MAX_TEXT_CHARACTERS: Final = 10 * MAX_TEXT_WORDS
"""Enough for that many words in any language; the rest of a text is not read."""

MAX_NAMES_PER_RECORD: Final = 64
"""Including aliases."""

# Flags of a word in a text.
CAPITAL, SENTENCE_START, STOP_WORD, NUMBER, COMMON_WORD, CASELESS, ALL_CAPS = (1 << n for n in range(7))

# Flags of a name.
LOWERCASE, DECLARED = 1, 2
"""LOWERCASE: the name is written without capitals, like `numpy`. DECLARED: its record declares aliases."""

Hashes = NDArray[np.uint64]
Flags = NDArray[np.uint8]

_PRIME: Final = 0x9E3779B97F4A7C15
_MASK: Final = (1 << 64) - 1
_SENTENCE_ENDS: Final = str.maketrans({"!": ".", "?": ".", ":": ".", "…": ".", "\n": ". "})
"""Maps what may end a sentence to a full stop. The first word of a sentence has a capital anyway."""

_JOINERS: Final = re.compile(r"[-.@&_,+#‐‑]")
_POSSESSIVE: Final = re.compile(r"'s$", re.IGNORECASE)
_CLOSING_BRACKETS: Final = (")", "）")
_IN_BRACKETS: Final = re.compile(r"\s*[(（][^()（）]*[)）]\s*$")


@cache
def _unspaced() -> re.Pattern[str]:
    """Matches a character of a script without spaces. Compiled on first use, because the table is long."""
    return re.compile(f"[{UNSPACED}]")


@cache
def _between_unspaced() -> re.Pattern[str]:
    """Matches a space between two such characters."""
    return re.compile(f"(?<=[{UNSPACED}]) (?=[{UNSPACED}])")


@dataclass(frozen=True, slots=True)
class Words:
    """The words of a text, in order."""

    hashes: Hashes
    flags: Flags
    surfaces: tuple[str, ...]
    """The words as the text spells them."""
    uses_capitals: bool
    """Whether a capital occurs inside a sentence: then the writer uses capitals for names."""


class Name(NamedTuple):
    """A name of a record."""

    hash: int
    """Signed, because SQLite stores signed integers."""
    flags: int


def words_of(text: str) -> Words:
    """The words of a text, at most MAX_TEXT_WORDS."""
    hash_bytes, flag_bytes, surfaces = _split_words(text[:MAX_TEXT_CHARACTERS])
    hashes = np.frombuffer(hash_bytes, np.uint64)
    flags = np.frombuffer(flag_bytes, np.uint8)[:MAX_TEXT_WORDS]
    cased = flags & (CASELESS | NUMBER) == 0
    if (flags[cased] & ALL_CAPS != 0).all():
        # If every word is in capitals, capitals carry no information.
        flags = flags & np.uint8(0xFF ^ CAPITAL)
    inside = flags & (CAPITAL | SENTENCE_START) == CAPITAL
    return Words(hashes[:MAX_TEXT_WORDS], flags, tuple(surfaces[:MAX_TEXT_WORDS]), bool(inside.any()))


def name_hash(name: str) -> int | None:
    """The signed hash of a name; None when it has no words, or too many."""
    hash_bytes, flags, _ = _split_words(name[:MAX_TEXT_CHARACTERS])
    return _combine_hashes(hash_bytes) if 0 < len(flags) <= MAX_NAME_WORDS else None


def record_names(record: Record) -> list[Name]:
    """Every name of a record: its title, the title without its qualifier, and its aliases."""
    aliases = aliases_of(record)
    declared = 0 if aliases is None else DECLARED
    out: dict[int, int] = {}
    for name in (*_title_variants(record.title), *(aliases or ())):
        hash_bytes, word_flags, _ = _split_words(name[: MAX_NAME_WORDS * 64])
        if 0 < len(word_flags) <= MAX_NAME_WORDS and len(out) < MAX_NAMES_PER_RECORD:
            stands_out = any(flags & (CAPITAL | CASELESS) for flags in word_flags)
            out.setdefault(_combine_hashes(hash_bytes), declared | (0 if stands_out else LOWERCASE))
    return [Name(hash_, flags) for hash_, flags in out.items()]


def join_words(words: Iterable[str]) -> str:
    """Join words with spaces, except in scripts that have none."""
    joined = " ".join(words)
    return joined if joined.isascii() else _between_unspaced().sub("", joined)


def as_signed(hashes: Hashes) -> NDArray[np.int64]:
    """Hashes as the signed integers that SQLite stores."""
    return hashes.view(np.int64)


def phrase_hashes(hashes: Hashes, longest: int = MAX_NAME_WORDS) -> Iterator[Hashes]:
    """For each length from one word on, the hash of the phrase that begins at each word."""
    current = hashes
    for length in range(1, min(longest, len(hashes)) + 1):
        if length > 1:
            current = current[:-1] * np.uint64(_PRIME) + hashes[length - 1 :]
        yield current


def _title_variants(title: str) -> Iterable[str]:
    """The title, and the title without its qualifier: `Jaws` for `Jaws (film)`, `Adolph of Cleves` for
    `Adolph of Cleves, Lord of Ravenstein`."""
    if not title:
        return
    yield title
    # Most titles do not end with a bracket and skip the regular expression.
    bare = _IN_BRACKETS.sub("", title) if title.rstrip()[-1:] in _CLOSING_BRACKETS else title
    if bare and bare != title:
        yield bare
    first, comma, _ = bare.partition(",")
    # A single word before a comma is often a family name or a heading, so it is not a variant.
    if comma and len(first.split()) > 1:
        yield first


def _combine_hashes(word_hashes: bytes) -> int:
    """The signed hash of a name from the hashes of its words, as `_split_words` returns them."""
    combined = 0
    for word in memoryview(word_hashes).cast("Q"):
        combined = (combined * _PRIME + word) & _MASK
    return combined - (1 << 64) if combined >> 63 else combined


def _split_words(text: str) -> tuple[bytes, bytes, list[str]]:
    """The hash of each word in eight bytes, its flags in one byte, and its spelling."""
    hashes = bytearray()
    flags = bytearray()
    surfaces: list[str] = []
    for sentence in text.translate(_SENTENCE_ENDS).split(". "):
        first = len(flags)
        for token_hashes, token_flags, pieces in map(_split_token, tokenize(sentence)):
            hashes += token_hashes
            flags += token_flags
            surfaces += pieces
        if first < len(flags):
            flags[first] |= SENTENCE_START
    return bytes(hashes), bytes(flags), surfaces


_TokenWords: TypeAlias = tuple[bytes, bytes, tuple[str, ...]]


@lru_cache(maxsize=50_000)
def _split_token(raw: str) -> _TokenWords:
    """The words of one token. A hyphen separates words. In a script without spaces, every character is a word."""
    if not raw.isascii() and _unspaced().match(raw):
        pieces = list(raw)
    else:
        split = _JOINERS.split(raw.replace("’", "'"))
        pieces = [bare for piece in split if (bare := _POSSESSIVE.sub("", piece))]
    folded = [fold(piece.replace("'", "")) for piece in pieces]
    return (
        b"".join(term_hash(word).to_bytes(8, sys.byteorder) for word in folded),
        bytes(map(_word_flags, pieces, folded)),
        tuple(pieces),
    )


def _word_flags(surface: str, folded: str) -> int:
    first = surface[0]
    flags = 0
    if first.isupper() and folded != "i":
        flags |= CAPITAL
        if len(surface) > 1 and surface.isupper():
            flags |= ALL_CAPS
    elif first.isalpha() and first.lower() == first.upper():
        flags |= CASELESS
    if is_stop_word(folded):
        flags |= STOP_WORD
    if folded.isdecimal():
        flags |= NUMBER
    if folded in COMMON_WORDS or len(folded) == 1:
        flags |= COMMON_WORD
    return flags
