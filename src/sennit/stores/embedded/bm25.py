"""BM25 over the parts of a keyword index; the formula is in docs/ranking-contract.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.stores.contract import BM25
from sennit.stores.embedded.keyword import FIELDS, Postings
from sennit.stores.embedded.parts import Part, weighted
from sennit.stores.embedded.selection import Rows, Selection

TINY: Final = 1e-9
"""Keeps 0 / 0 from happening where k1 is 0 and a term occurs only in a field of weight 0."""

SAMPLE: Final = 1024
"""Records looked at for a first lower bound; more would cost more than the bound saves."""

FEW: Final = 0.25
"""Where a filter lets fewer than this share pass, the postings that do not pass are left out before scoring."""

NOTHING: Final = np.float32(0.0)
"""What a record scores that holds no term."""

Scores = NDArray[np.float32]
Counts = Sequence[NDArray[Any] | None]
Hit = tuple[float, int, Postings]
"""The weight of a term, the term, and where it occurs."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What BM25 needs to know of the whole body of records."""

    count: int
    lengths: tuple[float, ...]
    """The sum of lengths per field."""


def statistics(parts: Sequence[Part]) -> Statistics:
    """Counted over the live records; sums of whole numbers, so the same in any arrangement of parts."""
    count = 0
    lengths = np.zeros(len(FIELDS), np.float64)
    for part in parts:
        live, sums = part.totals()
        count += live
        lengths += sums
    return Statistics(count, tuple(lengths.tolist()))


class Scorer:
    """Scores one query over all parts."""

    def __init__(
        self, parts: Sequence[Part], stats: Statistics, terms: Sequence[tuple[int, float]], bm25: BM25
    ) -> None:
        self._parts = parts
        self._weights = bm25.field_weights
        self._slope, self._base = _norm(stats, bm25)
        self._constants = (self._weights, float(self._slope), float(self._base))
        found = []
        for term, weight in terms:
            frequency, postings = _occurrence(parts, term)
            if frequency:
                idf = math.log(1 + (stats.count - frequency + 0.5) / (frequency + 0.5))
                found.append((idf * weight * (bm25.k1 + 1), term, postings))
        # One order of summation everywhere, so that a score is the same to the last bit in any part; the
        # rarest terms come first, because their records bound the score that the best must reach.
        found.sort(key=lambda entry: (-entry[0], entry[1]))
        self._found = found
        self._totals: dict[int, Scores] = {}
        """By part: the scores of all its records, once they have been added up."""
        self._narrowed: set[int] = set()
        """Parts that have been searched through a narrow filter; for another one, all their records are scored."""

    def best(
        self, index: int, k: int, allowed: Selection | None, least: np.float32 = NOTHING
    ) -> tuple[Rows, Scores]:
        """The k best allowed records of a part, and all that tie with the last of them; none that score below `least`."""
        part = self._parts[index]
        hits = self._hits(index)
        if not hits:
            return part.rows[:0], np.empty(0, np.float32)
        few = allowed if allowed is not None and allowed.count < FEW * part.count else None
        total = self._totals.get(index)
        if total is None and (few is None or index in self._narrowed):
            total = self._totals[index] = self._summed(part, hits)
        bound = least
        if few is not None:
            if total is None:
                self._narrowed.add(index)
                total = self._summed(part, hits, few)
            else:
                total = total.take(few.positions)
        else:
            assert total is not None
            # The k-th best of some records is no better than the k-th best of all: what is below it is out.
            long_enough = next((hit.positions for _, _, hit in hits if len(hit.positions) >= k), None)
            if long_enough is not None:
                some = long_enough[: k + SAMPLE]
                seen = total.take(some)
                bound = max(bound, _kth(seen if allowed is None else seen * allowed.mask.take(some), k))
        (chosen,) = (total >= bound if bound > 0 else total > 0).nonzero()
        if few is None and allowed is not None:
            chosen = chosen[allowed.mask[chosen]]
        scores = total[chosen]
        if len(chosen) > k:
            best = scores >= _kth(scores, k)
            chosen, scores = chosen[best], scores[best]
        return part.rows[chosen if few is None else few.positions[chosen]], scores

    def _summed(self, part: Part, hits: Sequence[Hit], few: Selection | None = None) -> Scores:
        """The scores of all records of a part, or of these few alone, in an array that holds nothing else."""
        total = np.zeros(part.count if few is None else few.count, np.float32)
        for weight, term, postings in hits:
            # Widened once: all that takes or adds at positions would do it by itself.
            positions = postings.positions.astype(np.intp)
            impact = self._saturated(part, term, postings.counts, positions)
            if few is not None:
                (kept,) = few.mask.take(positions, mode="clip").nonzero()
                positions = few.ranks.take(positions.take(kept))
                impact = impact.take(kept)
            np.add.at(total, positions, impact * np.float32(weight))
        return total

    def score_at(self, index: int, positions: NDArray[np.intp]) -> Scores:
        """The scores at these positions of a part."""
        total = self._totals.get(index)
        if total is not None:
            return total[positions]
        scores = np.zeros(len(positions), np.float32)
        wanted = positions.astype(np.int32)
        for weight, term, postings in self._hits(index):
            places = np.searchsorted(postings.positions, wanted)
            np.minimum(places, len(postings.positions) - 1, out=places)
            here = np.flatnonzero(postings.positions[places] == wanted)
            if len(here):
                impact = self._saturated(self._parts[index], term, postings.counts, postings.positions)
                scores[here] += impact[places[here]] * np.float32(weight)
        return scores

    def _hits(self, index: int) -> list[Hit]:
        """The postings of a part with their term and its weight, the rarest term first."""
        return [
            (weight, term, hits)
            for weight, term, postings in self._found
            if (hits := postings[index]) is not None
        ]

    def _saturated(self, part: Part, term: int, counts: Counts, positions: NDArray[Any]) -> Scores:
        """What a term gives to each of its records, before its weight: the more often it occurs there, the nearer to 1.

        Kept, because it takes more than half the time of a search and is the same for every question, until
        the statistics change.
        """
        found = part.kept.saturated(self._constants, term)
        if found is None:
            found = weighted(counts, self._weights)
            # All places are within: asked to clip, numpy takes without looking at each of them before.
            norm = part.weighted_lengths(self._weights).take(positions, mode="clip")
            norm *= self._slope
            norm += self._base
            norm += found
            found /= norm
            part.kept.keep(self._constants, term, found)
        return found


@lru_cache(maxsize=256)
def _norm(stats: Statistics, bm25: BM25) -> tuple[np.float32, np.float32]:
    """What a record's length is multiplied by, and what is added to it; the same for every question until a write."""
    lengths = zip(bm25.field_weights, stats.lengths, strict=True)
    average = sum(weight * total for weight, total in lengths) / max(stats.count, 1)
    slope = bm25.k1 * bm25.b / average if average else 0.0
    return np.float32(slope), np.float32(max(bm25.k1 * (1 - bm25.b), TINY))


def document_frequency(parts: Sequence[Part], term: int) -> int:
    """How many live records hold a term."""
    return _occurrence(parts, term)[0]


def _occurrence(parts: Sequence[Part], term: int) -> tuple[int, list[Postings | None]]:
    """How many live records hold a term, and where it occurs in each part."""
    frequency = 0
    found = []
    for part in parts:
        postings = part.postings(term)
        found.append(postings)
        if postings is not None:
            frequency += _alive(postings, part)
    return frequency, found


def _alive(postings: Postings, part: Part) -> int:
    if part.live is None:
        return len(postings.positions)
    return int(np.count_nonzero(part.live[postings.positions]))


def _kth(scores: Scores, k: int) -> np.float32:
    return np.float32(np.partition(scores, len(scores) - k)[len(scores) - k])
