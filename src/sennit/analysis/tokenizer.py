"""Splits a text into raw tokens, and turns a raw token into terms."""

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

from sennit.analysis import tables as tables

MAX_TERM_CHARS: Final = 128
"""A longer token is data that nobody types. Its term is a prefix and a hash."""

_MAX_CACHED_PIECES: Final = 16_384
"""About 5 MB of cached pieces of names. Most new names consist of known words."""

_LONG_TERM_PREFIX_CHARS: Final = 32
"""Enough to recognise a long term in an explanation."""


def _language_suffix_pattern(letter: str) -> str:
    """Match the suffix that turns a single letter into a name, as in c++ and c#."""
    return rf"(?:\+\+|#)(?!{letter})"


def _joined_words_pattern(word: str, letter: str, joiners: str) -> str:
    """Match further words, each after a single joiner, or after a comma before thousands.

    Whatever follows can be empty, so that no part of a text is scanned twice. Only single characters are repeated
    possessively: before Python 3.11.5, a group that is fails to give back what its last, incomplete repeat consumed.
    """
    thousands = rf",(?<=[0-9],)(?=[0-9]{{3}}(?!{letter}))"
    return rf"(?:(?:[{joiners}]|{thousands}){word})*"


_ASCII: Final = "[0-9A-Za-z_]"
# A pattern that starts with one character class is searched faster than an alternation.
_ASCII_TOKEN: Final = re.compile(
    rf"{_ASCII}(?:(?<=[A-Za-z]){_language_suffix_pattern(_ASCII)}|{_ASCII}*+"
    + _joined_words_pattern(f"{_ASCII}++", _ASCII, "-.@&'")
    + ")"
)

_PLAIN_JOINERS: Final = str.maketrans({"’": "'", "‐": "-", "‑": "-"})
_WITHOUT_JOINERS: Final = str.maketrans("", "", "-'_")
_CONTRACTION: Final = re.compile(r"'(?:s|re|ve|ll|d|m)$", re.IGNORECASE)
"""English suffixes that do not change the topic: the possessive and short verbs."""

_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_NATIONAL_DIGIT: Final = re.compile(r"[^\D0-9]")
_VERSION: Final = re.compile(r"v?(\d+(?:\.\d+){2,})")
_NUMBERED: Final = re.compile(r"([^\W\d_]{2,})\d+")
"""A name with a number (utf8, python3, il6). The name alone is also a term: +.9 points on scifact."""

_PLURAL_CAPITALS: Final = re.compile(r"\w*[A-Z]{2}s", re.ASCII)
"""APIs, userIDs, mRNAs: plurals that the stemmer does not recognise."""

_ASCII_SHAPE: Final = str.maketrans(
    string.ascii_uppercase + string.ascii_lowercase + string.digits, "A" * 26 + "a" * 26 + "0" * 10
)
# Matches the shape of a word: A for upper case, 0 for a digit, a for any other. Digits belong to the part
# before them, and capitals before a capitalised word are a word of their own (HTTPServer).
_CAMEL: Final = re.compile(r"0*(?:A+(?!a)|A?a+)[a0]*|0+")


class TokenTerms(NamedTuple):
    """The terms of one token for the index and for a query, and the token's length."""

    for_index: list[str]
    for_query: list[str]
    length: int


class _ThreadState(threading.local):
    """One stemmer per thread, because a stemmer is not thread-safe. It has no cache: the token cache suffices."""

    def __init__(self) -> None:
        self.stem = cast("Callable[[str], str]", Stemmer.Stemmer("english", 0).stemWord)


class _Patterns:
    """The patterns for text beyond ASCII. They are built on first use, which takes some 20 milliseconds."""

    def __init__(self) -> None:
        ranges: list[tuple[int, int]] = []
        for code in chain.from_iterable(tables.COMBINING_MARK_BLOCKS):
            if unicodedata.category(chr(code))[0] == "M":
                first = ranges.pop()[0] if ranges and ranges[-1][1] == code - 1 else code
                ranges.append((first, code))
        basic = "".join(f"{chr(a)}-{chr(b)}" for a, b in ranges if a < 0x10000)
        above = "".join(f"{chr(a)}-{chr(b)}" for a, b in ranges if a >= 0x10000)
        # Most characters of most texts are ASCII, so ASCII is tried first, and `other` keeps ASCII characters
        # from being compared with long classes.
        other = r"(?=[^\x00-\x7f])"
        letter = rf"[^\W{tables.UNSPACED}]"
        mark = rf"(?:[{basic}]|(?=[\U00010000-{chr(sys.maxunicode)}])[{above}])"
        word = rf"(?:{_ASCII}++|{other}{letter}++)(?:{other}(?:{letter}++|{mark}++){_ASCII}*+)*"
        joiners = "-.@&'’‐‑"
        regional = tables.REGIONAL_INDICATORS
        symbol = f"[{regional}]{{2}}|[{tables.SYMBOLS}{regional}]"
        token = rf"[A-Za-z]{_language_suffix_pattern(letter)}|{word}{_joined_words_pattern(word, letter, joiners)}"
        self.token = re.compile(rf"{token}|{other}(?:[{tables.UNSPACED}]++|{symbol})")
        self.invisible = re.compile(f"[{tables.INVISIBLE}]+")
        self.accents = re.compile(f"[{tables.ACCENTS}]+")
        self.excess_marks = re.compile(f"([{basic}{above}]{{8}})[{basic}{above}]+")
        self.unspaced = re.compile(f"[{tables.UNSPACED}]")
        self.fold_invariant = re.compile(f"[{tables.FOLD_INVARIANT}]+")
        self.character = re.compile(f".[{basic}{above}]*", re.DOTALL)
        self.lone_han = re.compile(f"(?<![{tables.HAN}])[{tables.HAN}](?![{tables.HAN}])")


_thread_state: Final = _ThreadState()
_patterns: Final = cache(_Patterns)


def tokenize(text: str) -> list[str]:
    """Return the raw tokens of a text, in order. Takes linear time."""
    if text.isascii():
        return _ASCII_TOKEN.findall(text)
    patterns = _patterns()
    return patterns.token.findall(patterns.invisible.sub("", text))


def analyse_token(raw: str) -> TokenTerms:
    """Return the terms of one raw token."""
    if raw.isascii():
        return _analyse_word(raw)
    patterns = _patterns()
    if patterns.fold_invariant.fullmatch(raw):
        return _analyse_pairs(raw, list(raw))
    # Normalisation sorts the marks on one letter in quadratic time. No language puts more than a few there.
    text = unicodedata.normalize("NFKC", patterns.excess_marks.sub(r"\1", raw))
    # A compatibility form may expand to several tokens: ½ is 1 and 2, ⑴ is (1).
    found = [_analyse_unspaced(t) if patterns.unspaced.match(t) else _analyse_word(t) for t in tokenize(text)]
    if len(found) == 1:
        return found[0]
    return TokenTerms(
        [term for part in found for term in part.for_index],
        [term for part in found for term in part.for_query],
        sum(part.length for part in found),
    )


def fold(text: str) -> str:
    """Remove case, accents and national digits: Straße is strasse, Łódź is lodz, ٣ is 3."""
    if text.isascii():
        return text.lower()
    text = _patterns().accents.sub("", unicodedata.normalize("NFD", text.casefold()))
    text = unicodedata.normalize("NFKC", text.translate(tables.FOLDED_LETTERS))
    return _NATIONAL_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), text)


def _analyse_unspaced(run: str) -> TokenTerms:
    run = fold(run)
    return _analyse_pairs(run, _patterns().character.findall(run))


def _analyse_pairs(run: str, characters: list[str]) -> TokenTerms:
    """Return pairs of characters, which rank well, and single characters, so that one can be searched."""
    if len(characters) == 1:
        return TokenTerms(characters, characters, 1)
    pairs = [a + b for a, b in pairwise(characters)]
    # A single ideograph between kana is a word: 猫 in 猫が好き must also find 黒い猫.
    single = frozenset(characters)
    lone = [c for c in _patterns().lone_han.findall(run) if c in single]
    return TokenTerms(pairs + characters, pairs + lone, len(pairs))


def _analyse_word(token: str) -> TokenTerms:
    found: list[str] = []
    if token.isalpha() and token[1:].islower():
        # The fast path for most words, which have no joiners.
        length = _add_word(token, found)
    elif _has_no_joiner(token):
        length = _add_snake_case(token, found)
    else:
        length = _add_address(token if token.isascii() else token.translate(_PLAIN_JOINERS), found)
    return TokenTerms(found, found, length)


def _has_no_joiner(token: str) -> bool:
    """Return whether a token has no joiner but _, so that the functions for other joiners can be skipped."""
    return token.isidentifier() or token.isalnum()


# Each function below splits a token at one kind of joiner, adds the terms of its level to `found`, and passes the
# pieces to the next function. It returns the length: pieces count, except stop words; whole names do not count.


def _add_address(token: str, found: list[str]) -> int:
    """joe@example.org, AT&T, c++"""
    if token[-1] in "+#":
        _add_whole(token, found)
        return _add_word(token[0], found)
    pieces = token.replace("&", "@").split("@")
    if len(pieces) > 1:
        _add_whole(token, found)
    return sum([_add_dotted(piece, found) for piece in pieces])


def _add_dotted(token: str, found: list[str]) -> int:
    """os.path.join, 1.2.3, 3.14, 1,000, U.S.A"""
    # Here and below, a test for one character saves most tokens a regular expression.
    if "'" in token:
        token = _CONTRACTION.sub("", token)
    if "." not in token and "," not in token:
        return _add_hyphenated(token, found)
    numeric = token[:1].isdecimal()
    if numeric and _NUMBER.fullmatch(token):
        return _add_word(token.replace(",", ""), found)
    if "," in token:
        return sum(_add_dotted(piece, found) for piece in token.split(","))
    pieces = token.split(".")
    if len(token) == 2 * len(pieces) - 1 and all(len(piece) == 1 and piece.isalpha() for piece in pieces):
        return _add_word("".join(pieces), found)
    if (numeric or token[:1] == "v") and (version := _VERSION.fullmatch(token)):
        pieces = version[1].split(".")
        _add_whole(version[1], found)
        # A query for 3.11 also means 3.11.4.
        _add_whole(".".join(pieces[:2]), found)
        return sum(_add_word(piece, found) for piece in pieces)
    _add_whole(token, found)
    return sum([_add_hyphenated(piece, found) for piece in pieces])


def _add_hyphenated(token: str, found: list[str]) -> int:
    """e-mail, well-known, utf-8, kebab-case, 2024-01-15"""
    if _has_no_joiner(token):
        return _add_snake_case(token, found)
    pieces = token.split("-")
    if len(pieces) > 1:
        if all(piece.isdecimal() for piece in pieces):
            _add_whole(token, found)
        else:
            _add_without_joiners(token, found)
    return sum(_add_with_apostrophe(piece, found) for piece in pieces)


def _add_with_apostrophe(token: str, found: list[str]) -> int:
    """don't, O'Brien, l'homme"""
    if "'" not in token:
        return _add_snake_case(token, found)
    token = _CONTRACTION.sub("", token)
    pieces = token.split("'")
    if len(pieces) == 1:
        return _add_snake_case(token, found)
    if token[-3:].lower() == "n't":
        return _add_word("".join(pieces), found)
    _add_without_joiners(token, found)
    return sum(_add_snake_case(piece, found) for piece in pieces)


def _add_snake_case(token: str, found: list[str]) -> int:
    """snake_case, which snakecase and snakeCase also find"""
    if "_" not in token:
        return _add_piece(token, found)
    pieces = [piece for piece in token.split("_") if piece]
    if len(pieces) > 1:
        _add_whole("_".join(pieces), found)
        _add_without_joiners(token, found)
    return sum([_add_piece(piece, found) for piece in pieces])


def _add_piece(piece: str, found: list[str]) -> int:
    terms, length = _analyse_piece(piece)
    found += terms
    return length


@lru_cache(_MAX_CACHED_PIECES)
def _analyse_piece(word: str) -> tuple[list[str], int]:
    """camelCase, PascalCase, HTTPServer, Base64Encoder. Cached, because names consist of few words."""
    found: list[str] = []
    return found, _add_camel_case(word, found)


def _add_camel_case(word: str, found: list[str]) -> int:
    if word[-1:] == "s" and _PLURAL_CAPITALS.fullmatch(word):
        word = word[:-1]
    rest = word[1:]
    if len(word) > MAX_TERM_CHARS or word.isupper() or not rest or rest.islower() or rest.isdecimal():
        return _add_word(word, found)
    if word.isascii():
        shape = word.translate(_ASCII_SHAPE)
    else:
        shape = "".join("0" if c.isdecimal() else "A" if c.isupper() else "a" for c in word)
    parts = [word[part.start() : part.end()] for part in _CAMEL.finditer(shape)]
    if len(parts) == 1:
        return _add_word(word, found)
    _add_whole(word, found)
    # In lower case the same name is a plain word, so it is stemmed: YouTube, youtube.
    if (joined := _to_term(fold(word))) != found[-1]:
        found.append(joined)
    return sum([_add_word(part, found) for part in parts])


def _add_word(word: str, found: list[str]) -> int:
    """Add one word and return its length: 1, or 0 for a stop word."""
    word = fold(word)
    if not word:
        return 0
    found.append(_to_term(word))
    if word[-1].isdecimal() and len(word) <= MAX_TERM_CHARS and (numbered := _NUMBERED.fullmatch(word)):
        found.append(_to_term(numbered[1]))
    return int(word not in tables.STOP_WORDS)


def _add_whole(token: str, found: list[str]) -> None:
    """Add a whole name, so that the exact name ranks first. It is not stemmed and has no length."""
    if len(token) <= MAX_TERM_CHARS and (folded := fold(token)):
        found.append(_shorten(folded))


def _add_without_joiners(token: str, found: list[str]) -> None:
    """Add the word without its joiners: e-mail is email, utf-8 is utf8, O'Brien is obrien."""
    if len(token) <= MAX_TERM_CHARS and (folded := fold(token.translate(_WITHOUT_JOINERS))):
        found.append(_to_term(folded))


def _to_term(word: str) -> str:
    """Return the term of a folded word: its stem if it consists of ASCII letters."""
    if word in tables.STOP_WORDS or len(word) > MAX_TERM_CHARS or not (word.isascii() and word.isalpha()):
        return _shorten(word)
    stem = _thread_state.stem(word)
    # "willing" is not the stop word "will".
    return word if stem in tables.STOP_WORDS else stem


def _shorten(term: str) -> str:
    if len(term) <= MAX_TERM_CHARS:
        return term
    return f"{term[:_LONG_TERM_PREFIX_CHARS]}~{xxhash.xxh3_128_hexdigest(term.encode())}"
