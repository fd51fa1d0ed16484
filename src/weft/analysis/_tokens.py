"""From text to raw tokens, and from one raw token to its terms."""

from __future__ import annotations

import re
import sys
import threading
import unicodedata
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

import Stemmer
import xxhash

from weft.analysis import _tables as tables

MAX_TERM: Final = 128
"""Characters in a term. A longer unbroken run is a blob nobody types; it is kept as a prefix and a hash."""

_BLOB_PREFIX: Final = 32
_LONG_TOKEN: Final = 64
"""From here on a token may hold enough marks in a row for Unicode's canonical sort (quadratic) to matter."""

# A token is a run of letters and digits, held together by single joiners that have a letter on each side.
# Thousands come first, so that "1,000" is one number; the repeat is bounded so that a megabyte of
# "1,000,000,…" is not scanned again from every group. "c++" and "c#" are names of languages.
_THOUSANDS: Final = r"\d{1,3}(?:,\d{3}){1,6}(?![\w,])(?:\.\d+)?"
_LANGUAGE: Final = r"[A-Za-z](?:\+\+|#)(?!\w)"
_ASCII_TOKEN: Final = re.compile(rf"{_THOUSANDS}|{_LANGUAGE}|\w+(?:[-.@&']\w+)*", re.ASCII)

_INVISIBLE: Final = re.compile(f"[{tables.INVISIBLE}]+")
_ACCENTS: Final = re.compile(f"[{tables.ACCENTS}]+")
_UNSPACED: Final = re.compile(f"[{tables.UNSPACED}]")
_SYMBOL: Final = re.compile(f"[{tables.SYMBOLS}{tables.REGIONAL}]")
_LONE_HAN: Final = re.compile(f"(?<![{tables.HAN}])[{tables.HAN}](?![{tables.HAN}])")

_CONTRACTION: Final = re.compile(r"'(?:s|re|ve|ll|d|m)$", re.IGNORECASE)
"""What English hangs on a word without changing what it is about: the possessive and short verbs."""

_VERSION: Final = re.compile(r"v?(\d+(?:\.\d+){2,})")
_DECIMAL: Final = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")

# One letter per character: A upper case, s the letter s, a any other. Digits stay with what is before them,
# capitals before a capitalised word are a word (HTTPServer), and a plural s stays with its capitals (APIs).
_CAMEL: Final = re.compile(r"0*(?:AA+s(?![as])|A+(?![as])|A?[as]+)[0]*(?:[as0]+)?|0+")


class Terms(NamedTuple):
    """The terms of one token: what the index holds, what a query asks for, how long the token counts."""

    index: list[str]
    query: list[str]
    length: int


class _PerThread(threading.local):
    """Stemmers keep state while they run, so every thread has its own; the memo is their cache."""

    def __init__(self) -> None:
        self.stem: Callable[[str], str] = Stemmer.Stemmer("english", 0).stemWord


_per_thread: Final = _PerThread()


@cache
def _marks() -> tuple[str, str]:
    """Every combining mark as two character classes: the basic plane, and the planes above it."""
    ranges: list[tuple[int, int]] = []
    for code in (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)):
        if unicodedata.category(chr(code))[0] == "M":
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1] = (ranges[-1][0], code)
            else:
                ranges.append((code, code))
    basic = "".join(f"{chr(a)}-{chr(b)}" for a, b in ranges if b < 0x10000)
    above = "".join(f"{chr(a)}-{chr(b)}" for a, b in ranges if a >= 0x10000)
    return basic, above


@cache
def _unicode_token() -> re.Pattern[str]:
    """The token pattern for any script; built on first need, since listing the marks takes milliseconds."""
    basic, above = _marks()
    letter = rf"[^\W{tables.UNSPACED}]"
    # The look-ahead spares every word end the walk through the long list of marks above the basic plane.
    mark = rf"(?:[{basic}]|(?=[\U00010000-\U{sys.maxunicode:08x}])[{above}])"
    word = rf"{letter}+(?:{mark}+{letter}*)*"
    return re.compile(
        rf"{_THOUSANDS}|{_LANGUAGE}|{word}(?:[-.@&'’‐‑]{word})*"
        rf"|[{tables.UNSPACED}]+|[{tables.REGIONAL}]{{2}}|[{tables.SYMBOLS}{tables.REGIONAL}]"
    )


@cache
def _mark_runs() -> re.Pattern[str]:
    basic, above = _marks()
    return re.compile(rf"([{basic}{above}]{{8}})[{basic}{above}]+")


@cache
def _clusters() -> re.Pattern[str]:
    basic, above = _marks()
    return re.compile(rf".[{basic}{above}]*", re.DOTALL)


def tokens(text: str) -> list[str]:
    """The raw tokens of a text, in order. Takes time linear in the text."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    return _unicode_token().findall(_INVISIBLE.sub("", text))


def analyse(raw: str) -> Terms:
    """The terms of one raw token."""
    out = Terms([], [], 0)
    if raw.isascii():
        return _word(raw)
    text = _mark_runs().sub(r"\1", raw) if len(raw) > _LONG_TOKEN else raw
    text = unicodedata.normalize("NFKC", text)
    index: list[str] = []
    query: list[str] = []
    length = 0
    # Compatibility forms may open into several tokens: ㎏/㎡, ⑴, ﷺ.
    for token in tokens(text):
        out = _unspaced(token) if _UNSPACED.match(token) else _word(token)
        index += out.index
        query += out.query
        length += out.length
    return Terms(index, query, length)


def fold(text: str) -> str:
    """Without case, accents or national digits: Straße and STRASSE, Łódź and lodz, ٣ and 3."""
    if text.isascii():
        return text.lower()
    text = _ACCENTS.sub("", unicodedata.normalize("NFD", text.casefold()))
    text = unicodedata.normalize("NFKC", text.translate(tables.FOLDED_LETTERS))
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in text)


def _bounded(term: str) -> str:
    if len(term) <= MAX_TERM:
        return term
    return f"{term[:_BLOB_PREFIX]}~{xxhash.xxh3_128_hexdigest(term.encode('utf-8', 'surrogatepass'))}"


def _plain(word: str) -> str:
    """The term of one folded word: its stem if it is made of ASCII letters."""
    if word in tables.STOP_WORDS or len(word) > MAX_TERM or not (word.isascii() and word.isalpha()):
        return _bounded(word)
    stem = _per_thread.stem(word)
    # "willing" is not the stop word "will".
    return word if stem in tables.STOP_WORDS else stem


def _unspaced(run: str) -> Terms:
    """Pairs of characters, which rank well, and single ones, so that one character can be searched."""
    run = fold(run)
    units: list[str] = _clusters().findall(run)
    units = [_bounded(unit) for unit in units]
    if len(units) == 1:
        return Terms(units, units, 1)
    pairs = [a + b for a, b in zip(units, units[1:], strict=False)]
    # A single ideograph between kana is a word by itself: 猫 in 猫が好き.
    return Terms(pairs + units, pairs + _LONE_HAN.findall(run), len(pairs))


def _word(token: str) -> Terms:
    found: list[str] = []
    length = _at_sign(token.replace("’", "'").replace("‐", "-").replace("‑", "-"), found)
    return Terms(found, found, length)


def _add(word: str, found: list[str]) -> int:
    """Adds one folded word as a term that counts, unless it is a stop word; the length it adds."""
    if not word:
        return 0
    term = _plain(word)
    found.append(term)
    return term not in tables.STOP_WORDS


def _whole(text: str, found: list[str]) -> None:
    """Keeps a name in one piece, unstemmed. It ranks the exact name first and adds nothing to the length."""
    if len(text) <= MAX_TERM:
        found.append(text)


def _at_sign(token: str, found: list[str]) -> int:
    """joe@example.org, AT&T, c++"""
    if token[-1] in "+#":
        _whole(token.lower(), found)
        return _add(token[0].lower(), found)
    pieces = re.split("[@&]", token)
    if len(pieces) > 1:
        _whole(fold(token), found)
    return sum(_dotted(piece, found) for piece in pieces)


def _dotted(token: str, found: list[str]) -> int:
    """os.path.join, 1.2.3, 3.14, U.S.A"""
    token = _CONTRACTION.sub("", token)
    if "." not in token and "," not in token:
        return _hyphenated(token, found)
    if _DECIMAL.fullmatch(token):
        return _add(fold(token).replace(",", ""), found)
    pieces = token.split(".")
    if all(len(piece) == 1 and piece.isalpha() for piece in pieces):
        return _add(fold(token).replace(".", ""), found)
    if version := _VERSION.fullmatch(token):
        _whole(version[1], found)
        _whole(".".join(version[1].split(".")[:2]), found)
        return sum(_add(piece, found) for piece in version[1].split("."))
    _whole(fold(token), found)
    return sum(_hyphenated(piece, found) for piece in pieces)


def _hyphenated(token: str, found: list[str]) -> int:
    """well-known, e-mail, utf-8, 2024-01-15"""
    if "-" not in token:
        return _apostrophe(token, found)
    pieces = token.split("-")
    length = sum(_apostrophe(piece, found) for piece in pieces)
    if all(piece.isdecimal() for piece in pieces):
        _whole(fold(token), found)
    elif len(token) <= MAX_TERM:
        joined = fold(token.replace("-", "").replace("'", "").replace("_", ""))
        found.append(_plain(joined))
    return length


def _apostrophe(token: str, found: list[str]) -> int:
    """don't, O'Brien, l'homme"""
    token = _CONTRACTION.sub("", token)
    if "'" not in token:
        return _identifier(token, found)
    joined = fold(token.replace("'", ""))
    if token.lower().endswith("n't"):
        return _add(joined, found)
    found.append(_plain(joined))
    return sum(_identifier(piece, found) for piece in token.split("'"))


def _identifier(token: str, found: list[str]) -> int:
    """snake_case and camelCase"""
    pieces = [piece for piece in token.split("_") if piece]
    if len(pieces) > 1:
        _whole(fold("_".join(pieces)), found)
    return sum(_camel(piece, found) for piece in pieces)


def _camel(word: str, found: list[str]) -> int:
    folded = fold(word)
    if len(word) > MAX_TERM or word.islower() or word.isupper() or word[1:].islower() or word[1:].isdecimal():
        return _add(folded, found)
    shape = "".join("0" if c.isdecimal() else "A" if c.isupper() else "s" if c == "s" else "a" for c in word)
    parts = [word[m.start() : m.end()] for m in _CAMEL.finditer(shape)]
    if len(parts) == 1:
        return _add(folded, found)
    _whole(folded, found)
    stem = _plain(folded)
    if stem != folded:
        # The same name written in lower case is a plain word, so it is stemmed: YouTube, youtube.
        found.append(stem)
    return sum(_add(fold(part), found) for part in parts)
