"""Reads what the relevance of a record is estimated from: its words and its vector beside those of the query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import count_terms
from sennit.pipeline.source_runner import SearchPlan
from sennit.ranking.relevance import BEST_OF, Evidence, match
from sennit.ranking.stages import CandidateList
from sennit.sources.base import SearchContext
from sennit.stores.contract import KeywordQuery, KeywordRole, VectorRole

Keys = NDArray[np.int64]
Floats = NDArray[np.float64]

LINKING_SOURCES: Final = frozenset(("links",))
"""Sources that find a record because another relevant one mentions it: it need not share a word with the query."""


class EvidenceReader:
    """Reads the evidence for the records of one search, whichever source found them."""

    def __init__(
        self,
        context: SearchContext,
        keyword: KeywordRole,
        vector: VectorRole,
        plan: SearchPlan,
        lists: Sequence[CandidateList],
    ) -> None:
        self._context = context
        self._keyword = keyword
        self._vector = vector
        self._query = KeywordQuery(context.weighted_terms, plan.bm25, context.text)
        linking = {config.name for config in plan.sources if config.source in LINKING_SOURCES}
        self._linked = {key for one in lists if one.name in linking for key in one.keys.tolist()}

    def read(self, ranked: Keys) -> Evidence:
        """Return the evidence for records and ephemeral passages, in the order of the ranking from its first."""
        count = len(ranked)
        coverage, lift = self._coverage(ranked), self._lift(ranked)
        linked = np.array([key in self._linked for key in ranked.tolist()], np.float64)
        best = float(match(coverage[:BEST_OF], lift[:BEST_OF]).max()) if count else 0.0
        return Evidence(coverage, lift, np.arange(count, dtype=np.float64), linked, np.full(count, best))

    def _coverage(self, keys: Keys) -> Floats:
        """Return the share of the query's information that each text has; nan for a query without terms."""
        if not self._query.terms:
            return np.full(len(keys), np.nan)
        coverage = self._keyword.coverage(self._context.snapshot, self._query, keys)
        coverage[keys < 0] = np.nan  # a passage that is not in the index
        unknown = np.isnan(coverage)
        if unknown.any():
            coverage[unknown] = self._coverage_of_texts(keys[unknown].tolist())
        return coverage

    def _coverage_of_texts(self, keys: Sequence[int]) -> list[float]:
        """Return the coverage of texts that the index cannot tell about."""
        records = self._context.records(keys)
        total = sum(self._information.values())
        out = []
        for key in keys:
            found, _ = count_terms(records[key].embedding_text) if key in records else ({}, 0)
            out.append(sum(value for term, value in self._information.items() if term in found) / total)
        return out

    @cached_property
    def _information(self) -> dict[int, float]:
        """The idf of each term, with its weight in the query."""
        snapshot = self._context.snapshot
        count = snapshot.count()
        out = {}
        for term, weight in self._query.terms:
            frequency = self._keyword.document_share(snapshot, term) * count
            out[term] = weight * math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))
        return out

    def _lift(self, keys: Keys) -> Floats:
        """Return how far the cosine of each record is above the background; nan without a vector."""
        vector = self._context.known_vector
        if vector is None:
            return np.full(len(keys), np.nan)
        return self._context.background.lift(self._vector.scores(self._context.snapshot, vector, keys))
