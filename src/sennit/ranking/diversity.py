"""Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998): the next best is also unlike those before it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray

from sennit.ranking.fusion import order
from sennit.ranking.stages import Floats, Ranked, Staged, stage

_WORD: Final = re.compile(r"\w+")
_PLAIN_WORDS: Final = "".join(
    chr(code).lower() if chr(code).isalnum() or chr(code) == "_" else " " for code in range(128)
)
"""What each ASCII character is to `_WORD` in a folded text: itself, or between words."""


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
        scores = ranked.scores[: self.over]
        chosen, margins = select(scores, alike, order(head, scores, ranked.ids), self.weight)
        reasons = {
            int(head[at]): f"{margin:.3f}, chosen as number {place} instead of {at + 1}"
            for place, (at, margin) in enumerate(zip(chosen, margins, strict=True), 1)
            if ranked.explain and place != at + 1
        }
        places = [*chosen, *range(len(head), len(ranked.keys))]
        return Staged(ranked.keys[places], ranked.scores[places], {}, reasons)


def select(
    scores: Floats, alike: Floats, first: NDArray[np.intp], weight: float
) -> tuple[list[int], list[float]]:
    """The order in which candidates are chosen, and the margin at which each was.

    `first` is the order of those with equal margins.
    """
    best = float(scores.max(initial=0.0))
    relevance = weight * (scores[first] / best if best > 0 else np.zeros(len(scores)))
    alike = alike[first][:, first]
    nearest = np.zeros(len(scores))
    chosen: list[int] = []
    margins: list[float] = []
    for _ in range(len(scores)):
        margin = relevance - (1 - weight) * nearest
        at = int(margin.argmax())
        margins.append(float(margin[at]))
        chosen.append(at)
        relevance[at] = -np.inf
        np.maximum(nearest, alike[at], out=nearest)
    return first[chosen].tolist(), margins


def jaccard(texts: Sequence[str]) -> Floats:
    """The share of words that two texts have in common, for all pairs; two texts without words have none."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    words = [list(map(numbers.__getitem__, _words(text))) for text in texts]
    holds = np.zeros((len(texts), len(numbers)), np.float32)
    for row, here in zip(holds, words, strict=True):
        row[here] = 1.0
    # Whole numbers, exact in single precision up to 16 million words.
    both = (holds @ holds.T).astype(np.float64)
    sizes = both.diagonal()
    either = sizes[:, None] + sizes - both
    out: Floats = np.divide(both, either, out=np.zeros_like(both), where=both > 0)
    np.fill_diagonal(out, 0.0)
    return out


def _words(text: str) -> set[str]:
    # Most texts are ASCII, where a table does what the pattern does in a tenth of the time.
    return set(text.translate(_PLAIN_WORDS).split() if text.isascii() else _WORD.findall(text.casefold()))


def cosine(vectors: NDArray[np.float32]) -> Floats:
    """The cosine of all pairs of unit vectors, 0 where it is negative."""
    return np.maximum(vectors.astype(np.float64) @ vectors.astype(np.float64).T, 0.0)
