"""BM25 as a product of two sparse vectors, for servers that multiply such vectors and know nothing of words.

The vector of a document holds what depends on the document: the saturated, length-normalised frequency of each term. The
vector of a query holds the weights of its terms. The inverse document frequency depends on the collection, so the server
multiplies it in. The average length is that of the first batch of the index and stays the same, because another would
change the vectors of all documents.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from sennit.analysis import count_terms
from sennit.records import Record
from sennit.stores.contract import BM25

WEIGHTS: Final = BM25()
"""The parameters that document vectors are made with. Those of a query cannot change them."""

TERM_BITS: Final = 32
"""Servers number the dimensions of a sparse vector with so many bits; our term hashes have twice as many."""


class CountedTerms(NamedTuple):
    """The terms of a document."""

    frequencies: Mapping[int, float]
    """How often each term occurs, with the weights of the fields, by dimension."""
    length: float
    """The number of words, with the weights of the fields."""

    def weight(self, at: int, average: float) -> float:
        """The saturated, length-normalised frequency of a term that the document has."""
        frequency = self.frequencies[at]
        norm = WEIGHTS.k1 * (1 - WEIGHTS.b + WEIGHTS.b * self.length / average)
        return (WEIGHTS.k1 + 1) * frequency / (frequency + norm)


def dimension(term: int) -> int:
    """The dimension of a term, given by its hash. One word in four thousand shares its own with one of a million others."""
    return term & ((1 << TERM_BITS) - 1)


def count_record(record: Record) -> CountedTerms:
    """Count the terms of a record."""
    frequencies: dict[int, float] = {}
    length = 0.0
    for text, weight in zip((record.text, record.title), WEIGHTS.field_weights, strict=True):
        if text:
            counts, words = count_terms(text)
            length += weight * words
            for term, count in counts.items():
                at = dimension(term)
                frequencies[at] = frequencies.get(at, 0.0) + weight * count
    return CountedTerms(frequencies, length)


def average_length(documents: Sequence[CountedTerms]) -> float:
    """The mean length of documents, at least 1."""
    return max(1.0, sum(one.length for one in documents) / max(1, len(documents)))


def query_weights(terms: Iterable[tuple[int, float]]) -> dict[int, float]:
    """The weight of each term of a query, by dimension."""
    out: dict[int, float] = {}
    for term, weight in terms:
        out[dimension(term)] = out.get(dimension(term), 0.0) + weight
    return out


def inverse_frequency(records: float, holding: float) -> float:
    """The weight of a term that `holding` of the records have."""
    return math.log(1 + (records - holding + 0.5) / (holding + 0.5))


def records_holding(records: float, inverse: float) -> float:
    """How many of the records have a term with this inverse document frequency."""
    return min(records, max(0.0, (records + 1) / math.exp(inverse) - 0.5))


def score_document(
    query: Mapping[int, float], inverse: Mapping[int, float], document: CountedTerms, average: float
) -> float:
    """The score of a document; nan where it has no term of the query."""
    found = [at for at in query if at in document.frequencies]
    if not found:
        return math.nan
    return sum(query[at] * inverse[at] * document.weight(at, average) for at in found)
