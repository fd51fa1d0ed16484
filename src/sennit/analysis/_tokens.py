"""From text to raw tokens, and from one raw token to its terms."""

from __future__ import annotations

import re
import string
import sys
import threading
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import Final, NamedTuple, cast

import Stemmer
import xxhash

from sennit.analysis import _tables as tables

MAX_TERM: Final = 128
"""Characters in a term. A longer unbroken run is a blob nobody types; it is kept as a prefix and a hash."""

_PIECES: Final = 16_384
"""Pieces of names whose terms are remembered, about 5 MB: most new names are made of known words."""

_BLOB_PREFIX: Final = 32
"""Enough of a blob to recognise it in an explanation."""


def _language(letter: str) -> str:
    """A pattern: what makes a name of a single letter, as in c++ and c#."""
    return rf"(?:\+\+|#)(?!{letter})"


def _joined(word: str, letter: str, joiners: str) -> str:
    """A pattern: further words, each behind a single joiner, or behind a comma before thousands.

    Its repeats are possessive, so that no part of a text is scanned twice.
    """
    thousands = rf",(?<=[0-9],)(?=[0-9]{{3}}(?!{letter}))"
    return rf"(?:(?:[{joiners}]|{thousands}){word})*+"


_ASCII: Final = "[0-9A-Za-z_]"
# One class in front, for which a text is searched faster than for one of two patterns.
_ASCII_TOKEN: Final = re.compile(
    rf"{_ASCII}(?:(?<=[A-Za-z]){_language(_ASCII)}|{_ASCII}*+" + _joined(f"{_ASCII}++", _ASCII, "-.@&'") + ")"
)

_PLAIN_JOINERS: Final = str.maketrans({"’": "'", "‐": "-", "‑": "-"})
_WITHOUT_JOINERS: Final = str.maketrans("", "", "-'_")
_CONTRACTION: Final = re.compile(r"'(?:s|re|ve|ll|d|m)$", re.IGNORECASE)
"""What English hangs on a word without changing what it is about: the possessive and short verbs."""

_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_NATIONAL_DIGIT: Final = re.compile(r"[^\D0-9]")
_VERSION: Final = re.compile(r"v?(\d+(?:\.\d+){2,})")
_NUMBERED: Final = re.compile(r"([^\W\d_]{2,})\d+")
"""A name with its number (utf8, python3, il6). The name alone is a term too: + .9 points on scifact."""

_PLURAL_CAPITALS: Final = re.compile(r"\w*[A-Z]{2}s", re.ASCII)
"""APIs, userIDs, mRNAs: the stemmer does not know that these are plurals."""

_ASCII_SHAPE: Final = str.maketrans(
    string.ascii_uppercase + string.ascii_lowercase + string.digits, "A" * 26 + "a" * 26 + "0" * 10
)
# Works on the shape of a word: A for upper case, 0 for a digit, a for any other. Digits
# stay with what is before them, and capitals before a capitalised word are a word of their own (HTTPServer).
_CAMEL: Final = re.compile(r"0*(?:A+(?!a)|A?a+)[a0]*|0+")


class Terms(NamedTuple):
    """The terms of one token: those held by the index, those asked for by a query, and the token's length."""

    held: list[str]
    asked: list[str]
    length: int


class _PerThread(threading.local):
    """A stemmer keeps state while it runs, so every thread has its own. It caches nothing: the memo does."""

    def __init__(self) -> None:
        self.stem = cast("Callable[[str], str]", Stemmer.Stemmer("english", 0).stemWord)


class _Patterns:
    """The patterns for text beyond ASCII, built on first need: it takes some 20 milliseconds."""

    def __init__(self) -> None:
        ranges: list[tuple[int, int]] = []
        for code in chain.from_iterable(tables.MARK_BLOCKS):
            if unicodedata.category(chr(code))[0] == "M":
                first = ranges.pop()[0] if ranges and ranges[-1][1] == code - 1 else code
                ranges.append((first, code))
        basic = "".join(f"{chr(a)}-{chr(b)}" for a, b in ranges if a < 0x10000)
        above = "".join(f"{chr(a)}-{chr(b)}" for a, b in ranges if a >= 0x10000)
        # Most characters of most texts are ASCII, so those are tried first, and `other` spares them the walk
        # through long classes.
        other = r"(?=[^\x00-\x7f])"
        letter = rf"[^\W{tables.UNSPACED}]"
        mark = rf"(?:[{basic}]|(?=[\U00010000-{chr(sys.maxunicode)}])[{above}])"
        word = rf"(?:{_ASCII}++|{other}{letter}++)(?:{other}(?:{letter}++|{mark}++){_ASCII}*+)*+"
        joiners = "-.@&'’‐‑"
        symbol = f"[{tables.REGIONAL}]{{2}}|[{tables.SYMBOLS}{tables.REGIONAL}]"
        token = rf"[A-Za-z]{_language(letter)}|{word}{_joined(word, letter, joiners)}"
        self.token = re.compile(rf"{token}|{other}(?:[{tables.UNSPACED}]++|{symbol})")
        self.invisible = re.compile(f"[{tables.INVISIBLE}]+")
        self.accents = re.compile(f"[{tables.ACCENTS}]+")
        self.excess_marks = re.compile(f"([{basic}{above}]{{8}})[{basic}{above}]+")
        self.unspaced = re.compile(f"[{tables.UNSPACED}]")
        self.settled = re.compile(f"[{tables.SETTLED}]+")
        self.character = re.compile(f".[{basic}{above}]*", re.DOTALL)
        self.lone_han = re.compile(f"(?<![{tables.HAN}])[{tables.HAN}](?![{tables.HAN}])")


_per_thread: Final = _PerThread()
_patterns: Final = cache(_Patterns)


def tokens(text: str) -> list[str]:
    """The raw tokens of a text, in order, in time linear in the text."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    patterns = _patterns()
    return patterns.token.findall(patterns.invisible.sub("", text))


def analyse(raw: str) -> Terms:
    """The terms of one raw token."""
    if raw.isascii():
        return _word(raw)
    patterns = _patterns()
    if patterns.settled.fullmatch(raw):
        return _pairs(raw, list(raw))
    # Unicode sorts the marks on one letter in quadratic time; no language puts more than a few there.
    text = unicodedata.normalize("NFKC", patterns.excess_marks.sub(r"\1", raw))
    # Compatibility forms may open into several tokens: ½ is 1 and 2, ⑴ is (1).
    found = [_unspaced(t) if patterns.unspaced.match(t) else _word(t) for t in tokens(text)]
    if len(found) == 1:
        return found[0]
    return Terms(
        [term for part in found for term in part.held],
        [term for part in found for term in part.asked],
        sum(part.length for part in found),
    )


def fold(text: str) -> str:
    """Without case, accents or national digits: Straße is STRASSE, Łódź is lodz, ٣ is 3."""
    if text.isascii():
        return text.lower()
    text = _patterns().accents.sub("", unicodedata.normalize("NFD", text.casefold()))
    text = unicodedata.normalize("NFKC", text.translate(tables.FOLDED_LETTERS))
    return _NATIONAL_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


def _unspaced(run: str) -> Terms:
    run = fold(run)
    return _pairs(run, _patterns().character.findall(run))


def _pairs(run: str, characters: list[str]) -> Terms:
    """Pairs of characters, which rank well, and single ones, so that one character can be searched."""
    if len(characters) == 1:
        return Terms(characters, characters, 1)
    pairs = [a + b for a, b in pairwise(characters)]
    # A single ideograph between kana is a word: 猫 in 猫が好き must also find 黒い猫.
    single = frozenset(characters)
    lone = [c for c in _patterns().lone_han.findall(run) if c in single]
    return Terms(pairs + characters, pairs + lone, len(pairs))


def _word(token: str) -> Terms:
    found: list[str] = []
    if token.isalpha() and token[1:].islower():
        # The short way for most words: no joiners to take off.
        length = _add_word(token, found)
    elif _unjoined(token):
        length = _snake(token, found)
    else:
        length = _address(token if token.isascii() else token.translate(_PLAIN_JOINERS), found)
    return Terms(found, found, length)


def _unjoined(token: str) -> bool:
    """Whether a token has no joiner but _ in it: the functions for the others would only look for theirs."""
    return token.isidentifier() or token.isalnum()


# Below, each function takes off one kind of joiner, adds the terms of its level to `found` and hands the
# pieces down. It returns the length: pieces count, unless they are stop words; names kept whole do not.


def _address(token: str, found: list[str]) -> int:
    """joe@example.org, AT&T, c++"""
    if token[-1] in "+#":
        _add_whole(token, found)
        return _add_word(token[0], found)
    pieces = token.replace("&", "@").split("@")
    if len(pieces) > 1:
        _add_whole(token, found)
    return sum([_dotted(piece, found) for piece in pieces])


def _dotted(token: str, found: list[str]) -> int:
    """os.path.join, 1.2.3, 3.14, 1,000, U.S.A"""
    # Here and below a look at one character spares most tokens a pattern.
    if "'" in token:
        token = _CONTRACTION.sub("", token)
    if "." not in token and "," not in token:
        return _hyphenated(token, found)
    numeric = token[:1].isdecimal()
    if numeric and _NUMBER.fullmatch(token):
        return _add_word(token.replace(",", ""), found)
    if "," in token:
        return sum(_dotted(piece, found) for piece in token.split(","))
    pieces = token.split(".")
    if len(token) == 2 * len(pieces) - 1 and all(len(piece) == 1 and piece.isalpha() for piece in pieces):
        return _add_word("".join(pieces), found)
    if (numeric or token[:1] == "v") and (version := _VERSION.fullmatch(token)):
        pieces = version[1].split(".")
        _add_whole(version[1], found)
        # A reader who asks for 3.11 means 3.11.4 too.
        _add_whole(".".join(pieces[:2]), found)
        return sum(_add_word(piece, found) for piece in pieces)
    _add_whole(token, found)
    return sum([_hyphenated(piece, found) for piece in pieces])


def _hyphenated(token: str, found: list[str]) -> int:
    """e-mail, well-known, utf-8, kebab-case, 2024-01-15"""
    if _unjoined(token):
        return _snake(token, found)
    pieces = token.split("-")
    if len(pieces) > 1:
        if all(piece.isdecimal() for piece in pieces):
            _add_whole(token, found)
        else:
            _add_joined(token, found)
    return sum(_apostrophe(piece, found) for piece in pieces)


def _apostrophe(token: str, found: list[str]) -> int:
    """don't, O'Brien, l'homme"""
    if "'" not in token:
        return _snake(token, found)
    token = _CONTRACTION.sub("", token)
    pieces = token.split("'")
    if len(pieces) == 1:
        return _snake(token, found)
    if token[-3:].lower() == "n't":
        return _add_word("".join(pieces), found)
    _add_joined(token, found)
    return sum(_snake(piece, found) for piece in pieces)


def _snake(token: str, found: list[str]) -> int:
    """snake_case, which is also found as snakecase and snakeCase"""
    if "_" not in token:
        return _add_piece(token, found)
    pieces = [piece for piece in token.split("_") if piece]
    if len(pieces) > 1:
        _add_whole("_".join(pieces), found)
        _add_joined(token, found)
    return sum([_add_piece(piece, found) for piece in pieces])


def _add_piece(piece: str, found: list[str]) -> int:
    terms, length = _camel(piece)
    found += terms
    return length


@lru_cache(_PIECES)
def _camel(word: str) -> tuple[list[str], int]:
    """camelCase, PascalCase, HTTPServer, Base64Encoder; remembered, because names are made of few words."""
    found: list[str] = []
    return found, _add_camel(word, found)


def _add_camel(word: str, found: list[str]) -> int:
    if word[-1:] == "s" and _PLURAL_CAPITALS.fullmatch(word):
        word = word[:-1]
    rest = word[1:]
    if len(word) > MAX_TERM or word.isupper() or not rest or rest.islower() or rest.isdecimal():
        return _add_word(word, found)
    if word.isascii():
        shape = word.translate(_ASCII_SHAPE)
    else:
        shape = "".join("0" if c.isdecimal() else "A" if c.isupper() else "a" for c in word)
    parts = [word[part.start() : part.end()] for part in _CAMEL.finditer(shape)]
    if len(parts) == 1:
        return _add_word(word, found)
    _add_whole(word, found)
    # Written in lower case the same name is a plain word, so it has a stem: YouTube, youtube.
    if (joined := _term(fold(word))) != found[-1]:
        found.append(joined)
    return sum([_add_word(part, found) for part in parts])


def _add_word(word: str, found: list[str]) -> int:
    """Adds one word, and returns its length: 1, or 0 for a stop word."""
    word = fold(word)
    if not word:
        return 0
    found.append(_term(word))
    if word[-1].isdecimal() and len(word) <= MAX_TERM and (numbered := _NUMBERED.fullmatch(word)):
        found.append(_term(numbered[1]))
    return int(word not in tables.STOP_WORDS)


def _add_whole(token: str, found: list[str]) -> None:
    """Keeps a name in one piece, so that the exact name ranks first: not stemmed, and without length."""
    if len(token) <= MAX_TERM and (folded := fold(token)):
        found.append(_bounded(folded))


def _add_joined(token: str, found: list[str]) -> None:
    """Adds what the word would be without its joiners: e-mail is email, utf-8 is utf8, O'Brien is obrien."""
    if len(token) <= MAX_TERM and (folded := fold(token.translate(_WITHOUT_JOINERS))):
        found.append(_term(folded))


def _term(word: str) -> str:
    """The term of one folded word: its stem if it is made of ASCII letters."""
    if word in tables.STOP_WORDS or len(word) > MAX_TERM or not (word.isascii() and word.isalpha()):
        return _bounded(word)
    stem = _per_thread.stem(word)
    # "willing" is not the stop word "will".
    return word if stem in tables.STOP_WORDS else stem


def _bounded(term: str) -> str:
    if len(term) <= MAX_TERM:
        return term
    return f"{term[:_BLOB_PREFIX]}~{xxhash.xxh3_128_hexdigest(term.encode())}"
