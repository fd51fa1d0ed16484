"""Text analysis, in one place: what a term is for the index, for a query and for comparing two texts."""

from __future__ import annotations

import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import Final, TypeAlias

import Stemmer
import xxhash

from sennit.analysis import _tables as tables
from sennit.analysis._tokens import analyse, tokens

__all__ = [
    "ANALYSIS_ID",
    "MAX_QUERY_TERMS",
    "QueryTerm",
    "count_terms",
    "is_stop",
    "query_terms",
    "raw_entry",
    "term_hash",
    "terms",
    "words",
]

_REVISION: Final = 1
"""Raise it with every change of code that changes a term; the tables are hashed by themselves."""

MAX_QUERY_TERMS: Final = 256
"""A pasted page is a query too, but its cost has a limit."""

_MEMO_ENTRIES: Final = 50_000
"""In each of two generations, 21 MB each. Over five collections in a row, 8.7 of 100 lookups had to analyse
the token; without a limit it is 8.5."""

_MEMO_TOKEN: Final = 48
_MEMO_TERMS: Final = 8
"""Longer tokens, and runs of Chinese with dozens of terms each, rarely come again: they would only fill it."""


def _identity() -> str:
    """Equal for two programs that give the same terms for every text."""
    parts = (
        _REVISION,
        sorted(tables.STOP_WORDS),
        sorted(tables.FOLDED_LETTERS.items()),
        (tables.ACCENTS, tables.INVISIBLE, tables.UNSPACED, tables.HAN, tables.SYMBOLS, tables.REGIONAL),
        tables.MARK_BLOCKS,
        Stemmer.version(),
        unicodedata.unidata_version,
    )
    return f"sennit-{_REVISION}-{xxhash.xxh3_64_hexdigest(repr(parts).encode())}"


ANALYSIS_ID: Final = _identity()
"""The identity of this analysis: an index built under another one has to be built again."""


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """One distinct term of a query, and how often the query says it."""

    term: str
    hash: int
    count: int


Entry: TypeAlias = tuple[tuple[int, ...], int, tuple[str, ...], tuple[str, ...]]
"""Hashes of the held terms, length, held terms, asked terms: a plain tuple, because it unpacks fastest."""


class _Memo(dict[str, Entry]):
    """What is known of raw tokens, in two generations: the full young one becomes the old one.

    Threads share it without a lock: a race costs a second analysis of a token, never a wrong one.
    """

    def __init__(self) -> None:
        super().__init__()
        self._old: dict[str, Entry] = {}

    def __missing__(self, raw: str) -> Entry:
        entry = self._old.get(raw) or _entry(raw)
        if len(raw) <= _MEMO_TOKEN and len(entry[2]) <= _MEMO_TERMS:
            if len(self) >= _MEMO_ENTRIES:
                self._old = self.copy()
                self.clear()
            self[raw] = entry
        return entry


def _entry(raw: str) -> Entry:
    found = analyse(raw)
    held = tuple(found.held)
    asked = held if found.asked is found.held else tuple(found.asked)
    return tuple(map(term_hash, held)), found.length, held, asked


def term_hash(term: str) -> int:
    """The 64-bit number under which the index knows a term."""
    return xxhash.xxh3_64_intdigest(term.encode())


_memo: Final = _Memo()


def raw_entry(raw: str) -> Entry:
    """What is known of a raw token."""
    return _memo[raw]


def is_stop(term: str) -> bool:
    """Whether a term is a stop word: indexed, but asked for only when a query has nothing else."""
    return term in tables.STOP_WORDS


def terms(text: str) -> list[str]:
    """Every index term of a text in order, repeats and stop words included."""
    return [term for raw in tokens(text) for term in _memo[raw][2]]


def count_terms(text: str) -> tuple[dict[int, int], int]:
    """How often each term (by hash, stop words included) occurs, and the text's length.

    The length counts words and parts of identifiers, and pairs of characters in unspaced scripts. Stop
    words, whole identifiers and single characters beside their pairs are terms without length.
    """
    counts: dict[int, int] = {}
    known = counts.get
    length = 0
    for raw, times in Counter(tokens(text)).items():
        hashes, weight, _, _ = _memo[raw]
        length += weight * times
        for key in hashes:
            counts[key] = known(key, 0) + times
    return counts, length


def query_terms(text: str) -> list[QueryTerm]:
    """The distinct terms to search for, in order of first appearance; no stop words unless all are.

    Of more than `MAX_QUERY_TERMS` the most frequent are kept, the earlier of two that are equal.
    """
    counts = _content(text)
    if len(counts) > MAX_QUERY_TERMS:
        # Sorting is stable: of two equal counts the earlier comes first.
        kept = frozenset(sorted(counts, key=counts.__getitem__, reverse=True)[:MAX_QUERY_TERMS])
        counts = {term: count for term, count in counts.items() if term in kept}
    return [QueryTerm(term, term_hash(term), count) for term, count in counts.items()]


def words(text: str) -> frozenset[str]:
    """The set of terms by which two texts are compared; no stop words unless all are."""
    return frozenset(_content(text))


def _content(text: str) -> dict[str, int]:
    """The terms a query asks for, with counts, in order of first appearance; no stop words unless all are."""
    counts: dict[str, int] = {}
    for raw in tokens(text):
        for term in _memo[raw][3]:
            counts[term] = counts.get(term, 0) + 1
    return {term: count for term, count in counts.items() if term not in tables.STOP_WORDS} or counts
