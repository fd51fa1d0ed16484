"""Text analysis: the terms of a text for the index, for a query and for comparing two texts."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final, TypeAlias

import Stemmer
import xxhash

from sennit.analysis import tables as tables
from sennit.analysis.tokenizer import analyse_token, tokenize

__all__ = [
    "ANALYSIS_ID",
    "MAX_QUERY_TERMS",
    "QueryTerm",
    "count_terms",
    "is_stop_word",
    "query_terms",
    "term_hash",
    "terms",
    "terms_in",
    "token_entry",
    "words",
]

_REVISION: Final = 1
"""Increase it with every change of code that changes a term. The tables are part of the hash anyway."""

MAX_QUERY_TERMS: Final = 256
"""Limits the cost of a query that is a whole pasted page."""

_MAX_CACHED_TOKENS: Final = 50_000
"""In each of two generations of 21 MB. Over five collections in a row, 8.7% of the lookups missed the cache;
without a limit it is 8.5%."""

_MAX_CACHED_TOKEN_CHARS: Final = 48
_MAX_CACHED_TOKEN_TERMS: Final = 8
"""Longer tokens, and runs of Chinese with dozens of terms, rarely repeat and would only fill the cache."""


def _compute_analysis_id() -> str:
    """Return an id that is equal for two builds that give the same terms for every text."""
    parts = (
        _REVISION,
        sorted(tables.STOP_WORDS),
        sorted(tables.FOLDED_LETTERS.items()),
        (
            *(tables.ACCENTS, tables.INVISIBLE, tables.UNSPACED, tables.HAN),
            *(tables.SYMBOLS, tables.REGIONAL_INDICATORS),
        ),
        tables.COMBINING_MARK_BLOCKS,
        Stemmer.version(),
        unicodedata.unidata_version,
    )
    return f"sennit-{_REVISION}-{xxhash.xxh3_64_hexdigest(repr(parts).encode())}"


ANALYSIS_ID: Final = _compute_analysis_id()
"""Identifies this analysis. An index that was built with another id must be rebuilt."""


@dataclass(frozen=True, slots=True)
class QueryTerm:
    """One distinct term of a query, and its number of occurrences in the query."""

    term: str
    hash: int
    count: int


TokenEntry: TypeAlias = tuple[tuple[int, ...], int, tuple[str, ...], tuple[str, ...]]
"""Hashes of the index terms, length, index terms, query terms: a plain tuple, because it unpacks fastest."""


class _TokenCache(dict[str, TokenEntry]):
    """The entries of raw tokens, in two generations: a full young generation becomes the old one.

    Threads share it without a lock: a race costs a second analysis of a token, but never gives a wrong entry.
    """

    def __init__(self) -> None:
        super().__init__()
        self._old: dict[str, TokenEntry] = {}

    def __missing__(self, raw: str) -> TokenEntry:
        entry = self._old.get(raw) or _make_entry(raw)
        if len(raw) <= _MAX_CACHED_TOKEN_CHARS and len(entry[2]) <= _MAX_CACHED_TOKEN_TERMS:
            if len(self) >= _MAX_CACHED_TOKENS:
                self._old = self.copy()
                self.clear()
            self[raw] = entry
        return entry


def _make_entry(raw: str) -> TokenEntry:
    found = analyse_token(raw)
    for_index = tuple(found.for_index)
    for_query = for_index if found.for_query is found.for_index else tuple(found.for_query)
    return tuple(map(term_hash, for_index)), found.length, for_index, for_query


def term_hash(term: str) -> int:
    """Return the 64-bit hash by which the index identifies a term."""
    return xxhash.xxh3_64_intdigest(term.encode())


_cache: Final = _TokenCache()


def token_entry(raw: str) -> TokenEntry:
    """Return the cached analysis of a raw token."""
    return _cache[raw]


def is_stop_word(term: str) -> bool:
    """Return whether a term is a stop word: indexed, but searched only if a query has no other terms."""
    return term in tables.STOP_WORDS


def index_terms(text: str) -> list[str]:
    """Return the index terms of a text in order, including repeats and stop words."""
    return [term for raw in tokenize(text) for term in _cache[raw][2]]


def count_terms(text: str) -> tuple[dict[int, int], int]:
    """Return the frequency of each term hash, including stop words, and the length of the text.

    The length counts words, parts of identifiers, and pairs of characters in scripts without spaces. Stop
    words, whole identifiers, and single characters that also occur in pairs have no length.
    """
    counts: dict[int, int] = {}
    known = counts.get
    length = 0
    for raw, times in Counter(tokenize(text)).items():
        hashes, weight, _, _ = _cache[raw]
        length += weight * times
        for key in hashes:
            counts[key] = known(key, 0) + times
    return counts, length


def terms_in(texts: Iterable[str], terms: AbstractSet[int]) -> list[set[int]]:
    """Return those of the term hashes that each text has: faster than counting all terms of the texts."""
    tokens = [set(tokenize(text)) for text in texts]
    wanted = frozenset(terms)
    known = _cache
    matching: dict[str, frozenset[int]] = {}
    for raw in set().union(*tokens):
        hashes = known[raw][0]
        if not wanted.isdisjoint(hashes):
            matching[raw] = wanted.intersection(hashes)
    return [set().union(*[matching[raw] for raw in matching.keys() & one]) for one in tokens]


def query_terms(text: str) -> list[QueryTerm]:
    """Return the distinct terms to search for, in order of first appearance.

    Stop words are left out unless the query has no other terms. If there are more than `MAX_QUERY_TERMS` terms, the
    most frequent are kept, and of equally frequent ones the earlier.
    """
    counts = _count_content_terms(text)
    if len(counts) > MAX_QUERY_TERMS:
        # The sort is stable: of two equal counts the earlier comes first.
        kept = frozenset(sorted(counts, key=counts.__getitem__, reverse=True)[:MAX_QUERY_TERMS])
        counts = {term: count for term, count in counts.items() if term in kept}
    return [QueryTerm(term, term_hash(term), count) for term, count in counts.items()]


def content_terms(text: str) -> frozenset[str]:
    """Return the set of terms for comparing two texts, without stop words unless there are no other terms."""
    return frozenset(_count_content_terms(text))


def _count_content_terms(text: str) -> dict[str, int]:
    """Count the query terms of a text, in order of first appearance, without stop words unless all are."""
    counts: dict[str, int] = {}
    for raw in tokenize(text):
        for term in _cache[raw][3]:
            counts[term] = counts.get(term, 0) + 1
    return {term: count for term, count in counts.items() if term not in tables.STOP_WORDS} or counts
