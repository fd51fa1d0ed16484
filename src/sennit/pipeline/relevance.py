"""Reads what the relevance of a record is estimated from: its words and its vector beside those of the query."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import count_terms
from sennit.ranking.relevance import estimate_relevance
from sennit.sources.base import SearchContext
from sennit.stores.contract import BM25, KeywordQuery, KeywordRole, VectorRole

Keys = NDArray[np.int64]
Floats = NDArray[np.float64]


class RelevanceEstimator:
    """Estimates the relevance of records for one search, whichever source found them."""

    def __init__(self, context: SearchContext, keyword: KeywordRole, vector: VectorRole, bm25: BM25) -> None:
        self._context = context
        self._keyword = keyword
        self._vector = vector
        # Without saturation and length normalisation, BM25 is the sum of the idf of the terms that a record has.
        self._presence = replace(bm25, k1=0.0, b=0.0)

    def estimate(self, keys: Keys) -> Floats:
        """Return the relevance of each record or ephemeral passage, from 0 to 1."""
        return estimate_relevance(self._coverage(keys), self._similarity(keys))

    @cached_property
    def _idf(self) -> dict[int, float]:
        """The information of each term of the query."""
        snapshot = self._context.snapshot
        count = snapshot.count()
        out = {}
        for term in self._context.terms:
            frequency = self._keyword.document_share(snapshot, term.hash) * count
            out[term.hash] = term.count * math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))
        return out

    def _coverage(self, keys: Keys) -> Floats:
        """Return the share of the query's information that each text has; nan for a query without terms."""
        total = sum(self._idf.values())
        if not total:
            return np.full(len(keys), np.nan)
        terms = [(term.hash, float(term.count)) for term in self._context.terms]
        covered = self._keyword.scores(self._context.snapshot, KeywordQuery(terms, self._presence), keys)
        for at in np.flatnonzero(keys < 0).tolist():
            (record,) = self._context.records([int(keys[at])]).values()
            found, _ = count_terms(record.embedding_text)
            covered[at] = sum(idf for term, idf in self._idf.items() if term in found)
        return np.minimum(covered / total, 1.0)

    def _similarity(self, keys: Keys) -> Floats:
        """Return the cosine of each record with the query; nan without vectors."""
        vector = self._context.known_vector
        if vector is None:
            return np.full(len(keys), np.nan)
        return self._vector.scores(self._context.snapshot, vector, keys)
