"""Reads what the relevance of a record is estimated from: its words and its vector beside those of the query."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import terms_in
from sennit.analysis.verb_forms import other_forms
from sennit.facts import is_fact
from sennit.pipeline.source_runner import SearchPlan
from sennit.ranking.relevance import BEST_OF, Evidence, best_match, size_allowance
from sennit.sources.base import SearchContext
from sennit.sources.fact_entry import fact_coverage
from sennit.stores.contract import KeywordQuery, KeywordRole, VectorRole

Keys = NDArray[np.int64]

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
    ) -> None:
        self._context = context
        self._keyword = keyword
        self._vector = vector
        self._query = KeywordQuery(context.weighted_terms, plan.bm25, context.text)
        self._kinds = {config.name: config.source for config in plan.sources}
        self._is_talk = any(config.knows_speakers for config in plan.sources)

    def read(self, keys: Keys, lists: Mapping[str, Sequence[float]]) -> Evidence:
        """Return the evidence for records and ephemeral passages, in the order of the ranking from its first.

        `lists` has the score of each of them in each list, by the name of the list; nan where a list lacks it.
        """
        linked: Sequence[bool] = ()
        cosines: list[Sequence[float]] = []
        for name, scores in lists.items():
            kind = self._kinds[name]
            if kind in COSINE_SOURCES:
                cosines.append(scores)
            elif kind in LINKING_SOURCES:
                found = [score == score for score in scores]  # nan differs from itself
                linked = [one or other for one, other in zip(linked, found, strict=True)] if linked else found
        ranked = keys.tolist()
        coverage = self._coverage_of_talk(ranked) if self._is_talk else self._coverage(keys, ranked)
        lift = self._lift(ranked, cosines)
        if self._is_talk and self._says_nothing(coverage):
            # Only the names are the same, and they alone make the vectors alike.
            lift = [math.nan] * len(lift)
        return Evidence(coverage, lift, linked, best_match(coverage[:BEST_OF], lift[:BEST_OF]))

    def _coverage(self, keys: Keys, ranked: Sequence[int]) -> list[float]:
        """Return the share of the query's information that each text has; nan for a query without terms."""
        if not self._query.terms:
            return [math.nan] * len(ranked)
        coverage: list[float] = self._keyword.coverage(self._context.snapshot, self._query, keys).tolist()
        # A key below 0 is a passage that is not in the index. The sum is nan if any value is.
        if min(ranked, default=0) < 0 or math.isnan(sum(coverage)):
            unknown = [at for at, key in enumerate(ranked) if key < 0 or math.isnan(coverage[at])]
            found = self._coverage_of_texts([ranked[at] for at in unknown])
            for at, value in zip(unknown, found, strict=True):
                coverage[at] = value
        return coverage

    def _coverage_of_talk(self, ranked: Sequence[int]) -> list[float]:
        """Return the share of what a question about a conversation asks for that each text has.

        A question that asks for whatever was said is answered by everything, and a fact also has the words by which
        questions ask for it.
        """
        context = self._context
        if not context.time.has_topic:
            return [1.0] * len(ranked)
        if not context.asked_terms:
            return [math.nan] * len(ranked)
        forms = {term: (term, *other_forms(term)) for term, _ in context.asked_terms}
        weights = {
            term: weight * max(0.0, min(self._idf(form) for form in forms[term]))
            for term, weight in context.asked_terms
        }
        total = sum(weights.values()) or 1.0
        records = context.records(ranked)
        texts = [records[key].embedding_text if key in records else "" for key in ranked]
        found = terms_in(texts, {form for one in forms.values() for form in one})
        return [
            max(
                fact_coverage(context.information, records[key])
                if key in records and is_fact(records[key])
                else 0.0,
                sum(weight for term, weight in weights.items() if not one.isdisjoint(forms[term])) / total,
            )
            for key, one in zip(ranked, found, strict=True)
        ]

    def _says_nothing(self, coverage: Sequence[float]) -> bool:
        """Whether a question has nothing but the one name in it in common with the best records."""
        context = self._context
        return (
            len(context.names) == 1
            and len(context.asked_terms) < len(context.weighted_terms)
            and not any(coverage[:BEST_OF])
        )

    def _coverage_of_texts(self, keys: Sequence[int]) -> list[float]:
        """Return the coverage of texts that the index cannot tell about."""
        records = self._context.records(keys)
        information = self._information
        total = sum(information.values())
        texts = [records[key].embedding_text if key in records else "" for key in keys]
        found = terms_in(texts, information.keys())
        return [sum([value for term, value in information.items() if term in one]) / total for one in found]

    @cached_property
    def _information(self) -> dict[int, float]:
        """The idf of each term, with its weight in the query."""
        return {term: weight * self._idf(term) for term, weight in self._query.terms}

    def _idf(self, term: int) -> float:
        snapshot = self._context.snapshot
        count = snapshot.count()
        frequency = self._keyword.document_share(snapshot, term) * count
        return math.log(1 + (count - frequency + 0.5) / (frequency + 0.5))

    def _lift(self, ranked: Sequence[int], lists: Sequence[Sequence[float]]) -> list[float]:
        """Return how far the cosine of each record is above the background; nan without a vector."""
        context = self._context
        vector = context.known_vector
        if vector is None:
            return [math.nan] * len(ranked)
        cosines = list(lists[0]) if lists else [math.nan] * len(ranked)
        # The sum is nan if any cosine is unknown.
        if math.isnan(sum(cosines)):
            self._complete_cosines(cosines, ranked, lists, vector)
        mean, allowance = context.background.mean, size_allowance(context.snapshot.count())
        return [(cosine - mean) / (1.0 - mean) + allowance for cosine in cosines]

    def _complete_cosines(
        self,
        cosines: list[float],
        ranked: Sequence[int],
        lists: Sequence[Sequence[float]],
        vector: NDArray[np.float32],
    ) -> None:
        """Fill in the cosines that the first list lacks, computed where no other list has them."""
        for other in lists[1:]:
            cosines[:] = [
                found if math.isnan(cosine) else cosine for cosine, found in zip(cosines, other, strict=True)
            ]
        missing = [at for at, cosine in enumerate(cosines) if math.isnan(cosine)]
        if missing:
            keys = np.array([ranked[at] for at in missing], np.int64)
            found = self._vector.scores(self._context.snapshot, vector, keys)
            for at, cosine in zip(missing, found.tolist(), strict=True):
                cosines[at] = cosine
