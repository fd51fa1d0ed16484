"""The terms of a record as a `tsvector`, and the rank that Postgres gives it, computed in this process.

The lexemes are the hashes of our own terms. So word parts, stems, and pairs of characters in scripts without spaces are
those of every other index, and a query finds the same records here and there. `ts_rank` and `ts_rank_cd` weigh how often
a term occurs; neither knows how rare a term is.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from sennit.analysis import index_terms, term_hash
from sennit.records import Record
from sennit.stores.contract import BM25, KeywordQuery

RankFunction: TypeAlias = Literal["ts_rank", "ts_rank_cd"]

LENGTH_NORMALISATION: Final = 1
"""Divide a rank by the logarithm of the document's length; without it, a long text outranks a short one."""

LOWEST_RANK: Final = np.float32(1e-20)
"""Of a record whose matching terms did not fit into its tsvector."""

MAX_POSITION: Final = (1 << 14) - 1
MAX_POSITIONS: Final = 255
"""The limits of a tsvector: the last position, and the positions of one lexeme."""

MAX_VECTOR_BYTES: Final = 1 << 19
"""Lexemes and positions of one tsvector; Postgres takes twice as much."""

LEXEME_BYTES: Final = 11
"""64 bits in base 64."""

TITLE: Final = 3 << 14
"""The weight A of a position in the title, in the upper two bits. The weight D of the text is 0."""

MAX_CACHED_DOCUMENTS: Final = 4096
"""Those of the buffer are scored in every search."""

_PI_SQUARED_SIXTH: Final = 1.64493406685
"""As in tsrank.c: the sum of 1/n² for all n."""


class TextVector(NamedTuple):
    """The terms of one record."""

    positions: Mapping[int, Sequence[int]]
    """By the hash of each term, its positions in ascending order, with the weight in the upper bits."""
    more: frozenset[int]
    """The hashes of terms that do not fit."""
    length: int
    """The number of all positions."""


@lru_cache(MAX_CACHED_DOCUMENTS)
def text_vector(title: str, text: str) -> TextVector:
    """The terms of a title and a text."""
    found: dict[int, list[int]] = {}
    at = 0
    for weight, terms in ((TITLE, index_terms(title)), (0, index_terms(text))):
        for term in terms:
            at = min(at + 1, MAX_POSITION)
            positions = found.setdefault(term_hash(term), [])
            if len(positions) < MAX_POSITIONS and (not positions or at > positions[-1] & MAX_POSITION):
                positions.append(at | weight)
    more: frozenset[int] = frozenset()
    if len(found) * (LEXEME_BYTES + 6) > MAX_VECTOR_BYTES:
        kept, size = {}, 0
        for term_, positions in found.items():
            size += LEXEME_BYTES + 4 + 2 * len(positions)
            if size <= MAX_VECTOR_BYTES:
                kept[term_] = positions
        more, found = frozenset(found.keys() - kept.keys()), kept
    return TextVector(found, more, sum(map(len, found.values())))


def encode_vector(vector: TextVector) -> bytes:
    """The binary form of a tsvector."""
    parts = [struct.pack(">i", len(vector.positions))]
    for lexeme, positions in sorted((lexeme_of(term), at) for term, at in vector.positions.items()):
        parts.append(struct.pack(f">{LEXEME_BYTES}sxH{len(positions)}H", lexeme, len(positions), *positions))
    return b"".join(parts)


@lru_cache(65536)
def lexeme_of(term: int) -> bytes:
    """The lexeme for the hash of a term."""
    return base64.urlsafe_b64encode(term.to_bytes(8, "big"))[:LEXEME_BYTES]


def signed(term: int) -> int:
    """The hash of a term as a bigint."""
    return term - (1 << 64) if term >= 1 << 63 else term


def text_query(query: KeywordQuery, operator: Literal["|", "&"]) -> str:
    """The tsquery for terms, connected by or or by and; a field with the weight 0 is not searched."""
    text, title = query.bm25.field_weights
    label = ":A" if not text else ":D" if not title else ""
    return f" {operator} ".join(f"'{lexeme_of(term).decode()}'{label}" for term, _ in query.terms)


def field_weights(bm25: BM25) -> list[float]:
    """The weights of D, C, B and A, of which the largest is 1."""
    text, title = bm25.field_weights
    highest = max(text, title)
    return [text / highest, 0.0, 0.0, title / highest]


def rank(query: KeywordQuery, record: Record, function: RankFunction, *, all_first: bool) -> float:
    """The rank that Postgres gives a record, nan for one without any of the terms."""
    vector = text_vector(record.title, record.text)
    weights = np.array(field_weights(query.bm25), np.float32)
    searched = [bool(weights[0]), False, False, bool(weights[3])]
    terms = dict.fromkeys(term for term, _ in query.terms)
    found, matched, fits = [], 0, 0
    for term in sorted(terms, key=lambda one: (LEXEME_BYTES, lexeme_of(one))):
        positions = vector.positions.get(term, ())
        if any(searched[at >> 14] for at in positions):
            matched += 1
        fits += term in vector.more
        if positions:
            found.append(positions)
    if not matched and not fits:
        return math.nan
    ranked = _rank(found, len(terms), vector.length, weights, function)
    score = max(ranked, LOWEST_RANK)
    if all_first and matched == len(terms):
        score = np.float32(score + np.float32(1))
    return float(score)


def _rank(
    found: Sequence[Sequence[int]], terms: int, length: int, weights: np.ndarray, function: RankFunction
) -> np.float32:
    """`calc_rank_or` and `calc_rank_cd` of tsrank.c, in the same precision and order, for terms connected by or."""
    if function == "ts_rank_cd":
        distinct = {at & MAX_POSITION: at for positions in found for at in positions}
        density = sum(float(weights[at >> 14]) for _, at in sorted(distinct.items()))
        return np.float32(density / math.log(length + 1) if length else 0.0)
    total = np.float32(0)
    for positions in found:
        summed, highest, highest_at = np.float32(0), np.float32(-1), 0
        for at, position in enumerate(positions):
            weight = weights[position >> 14]
            summed = np.float32(summed + np.float32(weight / np.float32((at + 1) * (at + 1))))
            if weight > highest:
                highest, highest_at = weight, at
        own = np.float32(highest / np.float32((highest_at + 1) * (highest_at + 1)))
        best_first = np.float32(np.float32(highest + summed) - own)
        total = np.float32(float(total) + float(best_first) / _PI_SQUARED_SIXTH)
    total = np.float32(total / np.float32(terms)) if terms else total
    return np.float32(float(total) / (math.log(length + 1) / math.log(2.0))) if length else total
