"""Text analysis, in one place: what a word is, for the index, for a query and for comparing texts."""

from __future__ import annotations

import hashlib
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import Final

import Stemmer
import xxhash

from weft.analysis import _tables as tables
from weft.analysis._tokens import analyse, tokens

_MEMO_LIMIT: Final = 100_000
_MEMO_TOKEN: Final = 48


@dataclass(frozen=True, slots=True)
class QueryTerm:
    term: str
    hash: int
    count: int


def term_hash(term: str) -> int:
    """The 64-bit number under which the index knows a term."""
    return xxhash.xxh3_64_intdigest(term.encode("utf-8", "surrogatepass"))


class _Memo(dict[str, tuple[tuple[int, ...], int, tuple[str, ...], tuple[str, ...]]]):
    def __missing__(self, raw):
        found = analyse(raw)
        entry = (tuple(map(term_hash, found.index)), found.length, tuple(found.index), tuple(found.query))
        if len(raw) <= _MEMO_TOKEN:
            if len(self) >= _MEMO_LIMIT:
                self.clear()
            self[raw] = entry
        return entry


_memo = _Memo()


def count_terms(text: str) -> tuple[dict[int, int], int]:
    counts: dict[int, int] = {}
    length = 0
    memo = _memo
    for raw, times in Counter(tokens(text)).items():
        hashes, weight, _, _ = memo[raw]
        length += weight * times
        for key in hashes:
            counts[key] = counts.get(key, 0) + times
    return counts, length
