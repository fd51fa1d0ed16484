"""Reads what the relevance of a record is estimated from: its words and its vector beside those of the query."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
        coverage = self._keyword.coverage(self._context.snapshot, self._query, keys)
        if self._query.terms:
            # The index has no passage of a file, and the index of a server may not know how much a term says.
            for at in np.flatnonzero(np.isnan(coverage) | (keys < 0)).tolist():
                coverage[at] = self._coverage_of_text(int(keys[at]))
        return coverage

    def _coverage_of_text(self, key: int) -> float:
        """Return the coverage of a record or passage by its text."""
        context, snapshot = self._context, self._context.snapshot
        found, _ = count_terms(context.records([key])[key].embedding_text)
        count = snapshot.count()
        covered = total = 0.0
        for term, weight in context.weighted_terms:
            frequency = self._keyword.document_share(snapshot, term) * count
            information = weight * math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))
            total += information
            covered += information if term in found else 0.0
        return covered / total if total else math.nan

    def _lift(self, keys: Keys) -> Floats:
        """Return how far the cosine of each record is above the background; nan without a vector."""
        vector = self._context.known_vector
        if vector is None:
            return np.full(len(keys), np.nan)
        return self._context.background.lift(self._vector.scores(self._context.snapshot, vector, keys))
