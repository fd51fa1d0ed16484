"""Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998): each choice is relevant and unlike those before."""

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
from sennit.ranking.stages import Floats, Ranking, StageContext, StageOutput, stage

_WORD: Final = re.compile(r"\w+")
_ASCII_WORDS: Final = "".join(
    chr(code).lower() if chr(code).isalnum() or chr(code) == "_" else " " for code in range(128)
)
"""A translation table that does for ASCII text what casefold and `_WORD` do: lower-case letters, or a space."""


@stage
@dataclass(frozen=True, slots=True)
class MMR:
    """Chooses greedily by λ · relevance - (1 - λ) · similarity to the most similar of those already chosen.

    Relevance is the score divided by the best score. λ is `relevance_weight`. Only the first `depth` are reordered.
    """

    name: ClassVar[str] = "mmr"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"

    relevance_weight: float = 0.7
    depth: int = 20
    similarity: Literal["jaccard", "cosine"] = "jaccard"

    def __post_init__(self) -> None:
        if not 0 <= self.relevance_weight <= 1:
            raise ValueError(f"relevance_weight must be from 0 to 1, not {self.relevance_weight!r}")
        if type(self.depth) is not int or self.depth < 1:
            raise ValueError(f"depth must be a whole number of at least 1, not {self.depth!r}")
        if self.similarity not in ("jaccard", "cosine"):
            raise ValueError(f"similarity must be jaccard or cosine, not {self.similarity!r}")

    def apply(self, ranking: Ranking, context: StageContext) -> StageOutput:
        head = ranking.keys[: self.depth]
        records = context.read(head)
        if self.similarity == "cosine":
            similarity = cosine(context.vectors(head))
        else:
            similarity = jaccard([record.text for record in records])
        scores = ranking.scores[: self.depth]
        chosen, margins = select(scores, similarity, order(head, scores, context.ids), self.relevance_weight)
        reasons = {
            int(head[at]): f"{margin:.3f}, chosen at rank {rank} instead of {at + 1}"
            for rank, (at, margin) in enumerate(zip(chosen, margins, strict=True), 1)
            if context.explain and rank != at + 1
        }
        order_after = [*chosen, *range(len(head), len(ranking.keys))]
        return StageOutput(ranking.keys[order_after], ranking.scores[order_after], {}, reasons)


def select(
    scores: Floats, similarity: Floats, tie_order: NDArray[np.intp], relevance_weight: float
) -> tuple[list[int], list[float]]:
    """Return the indexes in the order of choice, and the margin of each; `tie_order` decides between equal margins."""
    best = float(scores.max(initial=0.0))
    relevance = relevance_weight * (scores[tie_order] / best if best > 0 else np.zeros(len(scores)))
    similarity = similarity[tie_order][:, tie_order]
    nearest = np.zeros(len(scores))
    chosen: list[int] = []
    margins: list[float] = []
    for _ in range(len(scores)):
        margin = relevance - (1 - relevance_weight) * nearest
        at = int(margin.argmax())
        margins.append(float(margin[at]))
        chosen.append(at)
        relevance[at] = -np.inf
        np.maximum(nearest, similarity[at], out=nearest)
    return tie_order[chosen].tolist(), margins


def jaccard(texts: Sequence[str]) -> Floats:
    """Return the Jaccard similarity of the words of all pairs of texts; 0 for two texts without words."""
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    words = [list(map(numbers.__getitem__, _words(text))) for text in texts]
    has_word = np.zeros((len(texts), len(numbers)), np.float32)
    for row, columns in zip(has_word, words, strict=True):
        row[columns] = 1.0
    # Counts are exact in single precision up to 16 million words.
    both = (has_word @ has_word.T).astype(np.float64)
    sizes = both.diagonal()
    either = sizes[:, None] + sizes - both
    out: Floats = np.divide(both, either, out=np.zeros_like(both), where=both > 0)
    np.fill_diagonal(out, 0.0)
    return out


def _words(text: str) -> set[str]:
    # Most texts are ASCII, where the table takes a tenth of the time of the pattern.
    return set(text.translate(_ASCII_WORDS).split() if text.isascii() else _WORD.findall(text.casefold()))


def cosine(vectors: NDArray[np.float32]) -> Floats:
    """Return the cosine of all pairs of unit vectors, 0 where it is negative."""
    return np.maximum(vectors.astype(np.float64) @ vectors.astype(np.float64).T, 0.0)
