"""BM25 over the parts of a keyword index; the formula is in docs/ranking-contract.md."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from weft.stores.contract import BM25
from weft.stores.embedded.keyword import FIELDS, Postings
from weft.stores.embedded.parts import Part, weighted
from weft.stores.embedded.selection import Rows, Selection

TINY: Final = 1e-9
"""Keeps 0 / 0 from happening where k1 is 0 and a term occurs only in a field of weight 0."""

SAMPLE: Final = 1024
"""Records looked at for a first lower bound; more would cost more than the bound saves."""

FEW: Final = 0.25
"""Where a filter lets fewer than this share pass, the postings that do not pass are left out before scoring."""

Scores = NDArray[np.float32]


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
        average = sum(w * total for w, total in zip(self._weights, stats.lengths, strict=True)) / max(
            stats.count, 1
        )
        self._slope = np.float32(bm25.k1 * bm25.b / average if average else 0.0)
        self._base = np.float32(max(bm25.k1 * (1 - bm25.b), TINY))
        found = []
        for term, weight in terms:
            postings = [part.postings(term) for part in parts]
            frequency = sum(_alive(p, part) for p, part in zip(postings, parts, strict=True) if p is not None)
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

    def best(self, index: int, k: int, allowed: Selection | None) -> tuple[Rows, Scores]:
        """The k best allowed records of a part, and all that tie with the last of them."""
        part = self._parts[index]
        hits = self._hits(index)
        if not hits:
            return part.rows[:0], np.empty(0, np.float32)
        few = allowed if allowed is not None and allowed.count < FEW * part.count else None
        total = self._totals.get(index)
        if total is None and (few is None or index in self._narrowed):
            total = self._totals[index] = self._summed(part, hits)
        bound = np.float32(0.0)
        if few is not None:
            if total is None:
                self._narrowed.add(index)
                total = self._summed(part, hits, few)
            else:
                total = total.take(few.positions)
        else:
            assert total is not None
            if allowed is not None:
                total = total * allowed.mask
            # The k-th best of some records is no better than the k-th best of all: what is below it is out.
            long_enough = next((hit.positions for _, hit in hits if len(hit.positions) >= k), None)
            if long_enough is not None:
                bound = _kth(total[long_enough[: k + SAMPLE]], k)
        chosen = np.flatnonzero(total >= bound if bound > 0 else total > 0)
        scores = total[chosen]
        if len(chosen) > k:
            best = scores >= _kth(scores, k)
            chosen, scores = chosen[best], scores[best]
        return part.rows[chosen if few is None else few.positions[chosen]], scores

    def _summed(
        self, part: Part, hits: Sequence[tuple[float, Postings]], few: Selection | None = None
    ) -> Scores:
        """The scores of all records of a part, or of these few alone, in an array that holds nothing else."""
        positions, counts, weights = _joined(hits)
        if few is not None:
            kept = np.flatnonzero(few.mask.take(positions))
            positions, weights = positions.take(kept), weights.take(kept)
            counts = [None if values is None else values.take(kept) for values in counts]
        impact = self._impact(counts, part, positions, weights)
        total = np.zeros(part.count if few is None else few.count, np.float32)
        np.add.at(total, positions if few is None else few.ranks.take(positions), impact)
        return total

    def score_at(self, index: int, positions: NDArray[np.intp]) -> Scores:
        """The scores at these positions of a part."""
        total = self._totals.get(index)
        if total is not None:
            return total[positions]
        scores = np.zeros(len(positions), np.float32)
        wanted = positions.astype(np.int32)
        for weight, postings in self._hits(index):
            places = np.searchsorted(postings.positions, wanted)
            np.minimum(places, len(postings.positions) - 1, out=places)
            here = np.flatnonzero(postings.positions[places] == wanted)
            if len(here):
                counts = postings.at(places[here]).counts
                scores[here] += self._impact(counts, self._parts[index], positions[here], np.float32(weight))
        return scores

    def _hits(self, index: int) -> list[tuple[float, Postings]]:
        """The postings of a part with the weight of their term, the rarest term first."""
        return [
            (weight, hits) for weight, _, postings in self._found if (hits := postings[index]) is not None
        ]

    def _impact(
        self,
        counts: Sequence[NDArray[Any] | None],
        part: Part,
        positions: NDArray[np.intp],
        weights: Scores | np.float32,
    ) -> Scores:
        """What terms with these counts give to the records at these positions."""
        frequency = weighted(counts, self._weights)
        norm = part.weighted_lengths(self._weights).take(positions)
        norm *= self._slope
        norm += self._base
        norm += frequency
        frequency /= norm
        frequency *= weights
        return frequency


def document_frequency(parts: Sequence[Part], term: int) -> int:
    """How many live records hold a term."""
    found = ((part.postings(term), part) for part in parts)
    return sum(_alive(postings, part) for postings, part in found if postings is not None)


def _alive(postings: Postings, part: Part) -> int:
    if part.live is None:
        return len(postings.positions)
    return int(np.count_nonzero(part.live[postings.positions]))


def _joined(
    hits: Sequence[tuple[float, Postings]],
) -> tuple[NDArray[np.intp], list[NDArray[Any] | None], Scores]:
    """The postings of all terms one after the other: positions, counts by field, and the weight of the term."""
    found = [postings for _, postings in hits]
    weights = np.array([weight for weight, _ in hits], np.float32)
    # Widened on the way: both what takes and what adds would do it by itself.
    positions = np.concatenate([postings.positions for postings in found], dtype=np.intp)
    counts = [
        None if columns[0] is None else np.concatenate(columns)
        for columns in zip(*(postings.counts for postings in found), strict=True)
    ]
    sizes = [len(postings.positions) for postings in found]
    return positions, counts, weights.repeat(sizes)


def _kth(scores: Scores, k: int) -> np.float32:
    return np.float32(np.partition(scores, len(scores) - k)[len(scores) - k])
