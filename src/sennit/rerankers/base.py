"""The protocol of rerankers, their configuration, and how one is made from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from sennit.errors import SourceError

Provider = Literal["none", "onnx", "cohere", "jina", "tei"]


class Reranker(Protocol):
    """Scores texts for a query. Any thread may call it. Every failure is a SourceError that says what to do."""

    @property
    def name(self) -> str:
        """Provider and model."""
        ...

    def score(self, query: str, texts: Sequence[str], *, seconds: float) -> list[float]:
        """Return a finite score for each text, higher for a better answer; `seconds` is all the time there is."""
        ...

    def close(self) -> None:
        """Release the model or close the connections."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankSpec:
    """The configuration of a reranker."""

    provider: Provider = "none"
    model: str = ""
    base_url: str | None = None
    api_key_env: str | None = None
    """The *name* of the environment variable that holds the key."""


def check_scores(name: str, scores: Sequence[object], count: int) -> list[float]:
    """Return the scores of an answer; raise SourceError unless there is a finite number for each text."""
    if len(scores) != count:
        raise SourceError(f"{name} gave {len(scores)} scores for {count} texts; its answer was dropped.")
    out = []
    for score in scores:
        if isinstance(score, bool) or not isinstance(score, (int, float)) or not math.isfinite(score):
            raise SourceError(f"{name} gave a score that is not a finite number; its answer was dropped.")
        out.append(float(score))
    return out
