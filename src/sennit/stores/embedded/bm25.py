"""BM25 over the segments of a keyword index; the formula is in docs/ranking-contract.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.stores.contract import BM25
from sennit.stores.embedded.keyword_index import FIELDS, Postings
from sennit.stores.embedded.segment_reader import SegmentReader, weighted_sum
from sennit.stores.embedded.selection import Rows, Selection

MIN_NORM: Final = 1e-9
"""Avoids 0 / 0 where k1 is 0 and a term occurs only in a field of weight 0."""

BOUND_SAMPLE_RECORDS: Final = 1024
"""Records sampled for a first lower bound; a larger sample would cost more than the bound saves."""

SELECTIVE_FILTER_SHARE: Final = 0.25
"""A filter that passes less than this share of the records is applied to the postings before they are scored."""

NO_SCORE: Final = np.float32(0.0)
"""The score of a record that holds no query term."""

Scores = NDArray[np.float32]
Counts = Sequence[NDArray[Any] | None]
WeightedPostings = tuple[float, int, Postings]
"""The weight of a term, the term, and its posting list."""


@dataclass(frozen=True, slots=True)
class CorpusStatistics:
    """The collection statistics that BM25 needs."""

    count: int
    lengths: tuple[float, ...]
    """The sum of document lengths per field."""


def collect_statistics(readers: Sequence[SegmentReader]) -> CorpusStatistics:
    """Count the live records. The sums are of whole numbers, so segmentation does not change them."""
    count = 0
    lengths = np.zeros(len(FIELDS), np.float64)
    for reader in readers:
        live, sums = reader.live_totals()
        count += live
        lengths += sums
    return CorpusStatistics(count, tuple(lengths.tolist()))


class Scorer:
    """Scores one query over all segments."""

    def __init__(
        self,
        readers: Sequence[SegmentReader],
        stats: CorpusStatistics,
        terms: Sequence[tuple[int, float]],
        bm25: BM25,
    ) -> None:
        self._readers = readers
        self._weights = bm25.field_weights
        self._slope, self._base = _length_norm(stats, bm25)
        self._constants = (self._weights, float(self._slope), float(self._base))
        found = []
        self.information = 0.0
        """The sum of the idf of all terms, each with its weight in the query. It includes terms that no record has."""
        for term, weight in terms:
            frequency, postings = _find_postings(readers, term)
            idf = math.log(1 + (stats.count - frequency + 0.5) / (frequency + 0.5))
            self.information += idf * weight
            if frequency:
                found.append((idf * weight * (bm25.k1 + 1), term, postings))
        self._k1 = bm25.k1
        # One order of summation everywhere makes a score identical to the last bit in any segment. The rarest terms
        # come first, because their records give the best lower bound for the top k.
        found.sort(key=lambda entry: (-entry[0], entry[1]))
        self._terms = found
        self._postings: dict[int, list[WeightedPostings]] = {}
        self._totals: dict[int, Scores] = {}
        """The scores of all records of a segment, once they have been computed."""
        self._filtered: set[int] = set()
        """Segments searched through a selective filter before; a second filter scores all their records."""

    def top_k(
        self, index: int, k: int, allowed: Selection | None, min_score: np.float32 = NO_SCORE
    ) -> tuple[Rows, Scores]:
        """The k best allowed records of a segment, and all that tie with the last; none below `min_score`."""
        reader = self._readers[index]
        term_postings = self._postings_in(index)
        if not term_postings:
            return reader.rows[:0], np.empty(0, np.float32)
        is_selective = allowed is not None and allowed.count < SELECTIVE_FILTER_SHARE * reader.count
        few = allowed if is_selective else None
        total = self._totals.get(index)
        if total is None and (few is None or index in self._filtered):
            total = self._totals[index] = self._sum_scores(reader, term_postings)
        bound = min_score
        if few is not None:
            if total is None:
                self._filtered.add(index)
                total = self._sum_scores(reader, term_postings, few)
            else:
                total = total.take(few.positions)
        else:
            assert total is not None
            # The k-th best of a sample is no better than the k-th best of all, so lower scores are out.
            long_enough = next(
                (postings.positions for _, _, postings in term_postings if len(postings.positions) >= k), None
            )
            if long_enough is not None:
                sample = long_enough[: k + BOUND_SAMPLE_RECORDS]
                sampled = total.take(sample)
                bound = max(
                    bound, _kth_best(sampled if allowed is None else sampled * allowed.mask.take(sample), k)
                )
        (chosen,) = (total >= bound if bound > 0 else total > 0).nonzero()
        if few is None and allowed is not None:
            chosen = chosen[allowed.mask[chosen]]
        scores = total[chosen]
        if len(chosen) > k:
            best = scores >= _kth_best(scores, k)
            chosen, scores = chosen[best], scores[best]
        return reader.rows[chosen if few is None else few.positions[chosen]], scores

    def _sum_scores(
        self, reader: SegmentReader, term_postings: Sequence[WeightedPostings], few: Selection | None = None
    ) -> Scores:
        """The scores of all records of a segment, or of the selected few in an array of just these."""
        total = np.zeros(reader.count if few is None else few.count, np.float32)
        for weight, term, postings in term_postings:
            # Convert the positions once; otherwise each of the operations below would convert them.
            positions = postings.positions.astype(np.intp)
            impact = self._saturate(reader, term, postings.counts, positions)
            if few is not None:
                (passing,) = few.mask.take(positions, mode="clip").nonzero()
                positions = few.ranks.take(positions.take(passing))
                impact = impact.take(passing)
            np.add.at(total, positions, impact * np.float32(weight))
        return total

    def score_at(self, index: int, positions: NDArray[np.intp]) -> Scores:
        """The scores at these positions of a segment."""
        total = self._totals.get(index)
        if total is not None:
            return total[positions]
        scores = np.zeros(len(positions), np.float32)
        targets = positions.astype(np.int32)
        for weight, term, postings in self._postings_in(index):
            found = np.searchsorted(postings.positions, targets)
            np.minimum(found, len(postings.positions) - 1, out=found)
            matches = np.flatnonzero(postings.positions[found] == targets)
            if len(matches):
                impact = self._saturate(self._readers[index], term, postings.counts, postings.positions)
                scores[matches] += impact[found[matches]] * np.float32(weight)
        return scores

    def information_at(self, index: int, positions: NDArray[np.intp]) -> list[float]:
        """The sum of the idf of the terms that each of these records of a segment has."""
        term_postings = self._postings_in(index)
        targets = positions.astype(np.int32)
        found = np.empty((len(term_postings), len(targets)), np.int32)
        for row, (_, _, postings) in zip(found, term_postings, strict=True):
            postings.positions.take(postings.positions.searchsorted(targets), mode="clip", out=row)
        matches = (found == targets).nonzero()
        out = [0.0] * len(targets)
        idf = [weight / (self._k1 + 1) for weight, _, _ in term_postings]
        # The terms come in order, so the sum of a record does not depend on the other records.
        for term, record in zip(*(axis.tolist() for axis in matches), strict=True):
            out[record] += idf[term]
        return out

    def _postings_in(self, index: int) -> list[WeightedPostings]:
        """The posting lists of a segment with term and weight, the rarest term first."""
        known = self._postings.get(index)
        if known is None:
            known = self._postings[index] = [
                (weight, term, found)
                for weight, term, postings in self._terms
                if (found := postings[index]) is not None
            ]
        return known

    def _saturate(self, reader: SegmentReader, term: int, counts: Counts, positions: NDArray[Any]) -> Scores:
        """The saturated, length-normalised term frequency of each posting, before the weight of the term.

        It is cached, because it takes more than half the time of a search and stays the same for every query until
        the statistics change.
        """
        impacts = reader.cache.get_impacts(self._constants, term)
        if impacts is None:
            impacts = weighted_sum(counts, self._weights)
            # All positions are valid. The mode "clip" only makes numpy skip its check of each of them.
            norm = reader.weighted_lengths(self._weights).take(positions, mode="clip")
            norm *= self._slope
            norm += self._base
            norm += impacts
            impacts /= norm
            reader.cache.put_impacts(self._constants, term, impacts)
        return impacts


@lru_cache(maxsize=256)
def _length_norm(stats: CorpusStatistics, bm25: BM25) -> tuple[np.float32, np.float32]:
    """The factor and the summand that turn a document length into BM25's length normalisation."""
    lengths = zip(bm25.field_weights, stats.lengths, strict=True)
    average = sum(weight * total for weight, total in lengths) / max(stats.count, 1)
    slope = bm25.k1 * bm25.b / average if average else 0.0
    return np.float32(slope), np.float32(max(bm25.k1 * (1 - bm25.b), MIN_NORM))


def document_frequency(readers: Sequence[SegmentReader], term: int) -> int:
    """How many live records hold a term."""
    return _find_postings(readers, term)[0]


def _find_postings(readers: Sequence[SegmentReader], term: int) -> tuple[int, list[Postings | None]]:
    """The document frequency of a term among live records, and its posting list in each segment."""
    frequency = 0
    found = []
    for reader in readers:
        postings = reader.postings(term)
        found.append(postings)
        if postings is not None:
            frequency += _count_live(postings, reader)
    return frequency, found


def _count_live(postings: Postings, reader: SegmentReader) -> int:
    if reader.live is None:
        return len(postings.positions)
    return int(np.count_nonzero(reader.live[postings.positions]))


def _kth_best(scores: Scores, k: int) -> np.float32:
    return np.float32(np.partition(scores, len(scores) - k)[len(scores) - k])
