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
from sennit.ranking.relevance import BEST_OF, Evidence, match, size_allowance
from sennit.ranking.stages import CandidateList
from sennit.sources.base import SearchContext
from sennit.stores.contract import KeywordQuery, KeywordRole, VectorRole

Keys = NDArray[np.int64]
Floats = NDArray[np.float64]

LINKING_SOURCES: Final = frozenset(("links",))
"""Sources that find a record because another relevant one mentions it: it need not share a word with the query."""


COSINE_SOURCES: Final = frozenset(("vector",))
"""Sources whose scores are the cosines of the query and the records."""


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
        self._linked: set[int] = set()
        self._cosines: list[CandidateList] = []
        sources = {config.name: config.source for config in plan.sources}
        for one in lists:
            if sources[one.name] in LINKING_SOURCES:
                self._linked.update(one.keys.tolist())
            elif sources[one.name] in COSINE_SOURCES and len(one.keys):
                self._cosines.append(one)

    def read(self, ranked: Keys) -> Evidence:
        """Return the evidence for records and ephemeral passages, in the order of the ranking from its first."""
        count = len(ranked)
        coverage, lift = self._coverage(ranked), self._lift(ranked)
        linked = np.zeros(count)
        if self._linked:
            linked[[key in self._linked for key in ranked.tolist()]] = 1.0
        best = float(match(coverage[:BEST_OF], lift[:BEST_OF]).max()) if count else 0.0
        return Evidence(coverage, lift, np.arange(count, dtype=np.float64), linked, np.full(count, best))

    def _coverage(self, keys: Keys) -> Floats:
        """Return the share of the query's information that each text has; nan for a query without terms."""
        if not self._query.terms:
            return np.full(len(keys), np.nan)
        coverage = self._keyword.coverage(self._context.snapshot, self._query, keys)
        # A key below 0 is a passage that is not in the index. The sum is nan if any value is.
        if math.isnan(coverage.sum()) or keys.min(initial=0) < 0:
            unknown = np.isnan(coverage) | (keys < 0)
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
        context = self._context
        if context.known_vector is None:
            return np.full(len(keys), np.nan)
        known: dict[int, float] = {}
        for one in self._cosines:
            known.update(zip(one.keys.tolist(), one.scores.tolist(), strict=True))
        ranked = keys.tolist()
        missing = [key for key in ranked if key not in known]
        if missing:
            found = self._vector.scores(context.snapshot, context.known_vector, np.array(missing, np.int64))
            known.update(zip(missing, found.tolist(), strict=True))
        cosines = np.array([known[key] for key in ranked])
        return context.background.lift(cosines) + size_allowance(context.snapshot.count())
