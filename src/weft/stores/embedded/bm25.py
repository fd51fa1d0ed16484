"""BM25 over the parts of a keyword index; the formula is in docs/ranking-contract.md."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from weft.stores.contract import BM25
from weft.stores.embedded.keyword import FIELDS, Part, Postings, weighted
from weft.stores.embedded.layers import Mask, Rows

TINY: Final = 1e-9
"""Keeps 0 / 0 from happening where k1 is 0 and a term occurs only in a field of weight 0."""

SAMPLE: Final = 4096
"""Records looked at for a first lower bound; more would cost more than the bound saves."""


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
        if part.live is None:
            count += part.count
            lengths += part.lengths.sum(axis=1, dtype=np.float64)
        else:
            count += int(np.count_nonzero(part.live))
            lengths += part.lengths[:, part.live].sum(axis=1, dtype=np.float64)
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
        self._totals: dict[int, NDArray[np.float32]] = {}

    def best(self, index: int, k: int, allowed: Mask | None) -> tuple[Rows, NDArray[np.float32]]:
        """The k best allowed records of a part, and all that tie with the last of them."""
        part, total = self._parts[index], self._total(index)
        if allowed is not None:
            total = total * allowed
        # The k-th best of some records is no better than the k-th best of all: what is below it is out.
        sample = next((p.positions for p in self._postings(index) if len(p.positions) >= k), None)
        bound = _kth(total[sample[: k + SAMPLE]], k) if sample is not None else np.float32(0.0)
        chosen = np.flatnonzero(total >= bound if bound > 0 else total > 0)
        scores = total[chosen]
        if len(chosen) > k:
            kept = scores >= _kth(scores, k)
            chosen, scores = chosen[kept], scores[kept]
        return part.rows[chosen], scores

    def score_at(self, index: int, positions: NDArray[np.intp]) -> NDArray[np.float32]:
        """The scores at these positions of a part."""
        return self._total(index)[positions]

    def _total(self, index: int) -> NDArray[np.float32]:
        """The score of every record of a part."""
        total = self._totals.get(index)
        if total is None:
            part = self._parts[index]
            total = np.zeros(part.count, np.float32)
            lengths = part.weighted_lengths(self._weights)
            for weight, _, postings in self._found:
                hits = postings[index]
                if hits is not None:
                    np.add.at(total, hits.positions, self._impact(hits, lengths, weight))
            self._totals[index] = total
        return total

    def _postings(self, index: int) -> Iterator[Postings]:
        return (hits for _, _, postings in self._found if (hits := postings[index]) is not None)

    def _impact(self, hits: Postings, lengths: NDArray[np.float32], weight: float) -> NDArray[np.float32]:
        frequency = weighted(hits.counts, self._weights)
        norm = lengths.take(hits.positions)
        norm *= self._slope
        norm += self._base
        norm += frequency
        frequency /= norm
        frequency *= np.float32(weight)
        return frequency


def _alive(postings: Postings, part: Part) -> int:
    if part.live is None:
        return len(postings.positions)
    return int(np.count_nonzero(part.live[postings.positions]))


def _kth(scores: NDArray[np.float32], k: int) -> np.float32:
    return np.float32(np.partition(scores, len(scores) - k)[len(scores) - k])
