"""Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998): the next best is also unlike those before it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from weft.ranking.stages import Floats, Ranked, Staged, stage

_WORD: Final = re.compile(r"\w+")


@stage
@dataclass(frozen=True, slots=True)
class MMR:
    """Greedy: λ · relevance - (1 - λ) · the likeness to the most alike of those already chosen.

    Relevance is the score as a share of the best score. What is beyond the first `over` keeps its order.
    """

    name: ClassVar[str] = "mmr"

    weight: float = 0.7
    over: int = 20
    similarity: Literal["jaccard", "cosine"] = "jaccard"

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 1:
            raise ValueError(f"weight must be from 0 to 1, not {self.weight!r}")
        if type(self.over) is not int or self.over < 1:
            raise ValueError(f"over must be a whole number of at least 1, not {self.over!r}")
        if self.similarity not in ("jaccard", "cosine"):
            raise ValueError(f"similarity must be jaccard or cosine, not {self.similarity!r}")

    def apply(self, ranked: Ranked) -> Staged:
        head = ranked.keys[: self.over]
        records = ranked.read(head)
        if self.similarity == "cosine":
            alike = cosine(ranked.vectors(head))
        else:
            alike = jaccard([record.text for record in records])
        chosen, margins = select(ranked.scores[: self.over], alike, ranked.ids(head), self.weight)
        reasons = {
            int(head[at]): f"{margin:.3f}, chosen as number {place} instead of {at + 1}"
            for place, (at, margin) in enumerate(zip(chosen, margins, strict=True), 1)
            if place != at + 1
        }
        order = [*chosen, *range(len(head), len(ranked.keys))]
        return Staged(ranked.keys[order], ranked.scores[order], {}, reasons)


def select(
    scores: Floats, alike: Floats, ids: Sequence[str] | Sequence[bytes], weight: float
) -> tuple[list[int], list[float]]:
    """The order in which candidates are chosen, and the margin at which each was; equal margins by score, then id."""
    best = float(scores.max(initial=0.0))
    relevance = scores / best if best > 0 else np.zeros(len(scores))
    left = sorted(range(len(scores)), key=lambda at: (-scores[at], ids[at]))
    nearest = np.zeros(len(scores))
    chosen: list[int] = []
    margins: list[float] = []
    while left:
        margin = weight * relevance[left] - (1 - weight) * nearest[left]
        at = int(np.argmax(margin))
        margins.append(float(margin[at]))
        chosen.append(left.pop(at))
        nearest = np.maximum(nearest, alike[chosen[-1]])
    return chosen, margins


def jaccard(texts: list[str]) -> Floats:
    """The share of words that two texts have in common, for all pairs; two texts without words have none."""
    words = [frozenset(_WORD.findall(text.casefold())) for text in texts]
    out = np.zeros((len(texts), len(texts)))
    for a, left in enumerate(words):
        for b, right in enumerate(words[:a]):
            both = len(left & right)
            if both:
                out[a, b] = out[b, a] = both / (len(left) + len(right) - both)
    return out


def cosine(vectors: NDArray[np.float32]) -> Floats:
    """The cosine of all pairs of unit vectors, 0 where it is negative."""
    return np.maximum(vectors.astype(np.float64) @ vectors.astype(np.float64).T, 0.0)
