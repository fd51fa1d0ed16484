"""Time decay: score · (1 - recency · (1 - factor)), with factor = max(floor, 2^(-age / half-life))."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final, Literal

import numpy as np

from sennit.facts import FACT_FIELDS
from sennit.ranking.fusion import order
from sennit.ranking.stages import Ranking, StageContext, StageOutput, stage

if TYPE_CHECKING:
    # Not imported at runtime: a new process that searches once needs none of it.
    from sennit.periods import QueryTime

SECONDS_PER_DAY: Final = 86_400.0
EVERGREEN_KINDS: Final = ("person", "place", "relationship")
"""Kinds of record that stay true."""

USUAL_RECENCY: Final = 0.1
"""Age decides between texts that say the same. At 1, a turn of last spring can never beat any turn of today."""

ASKED_RECENCY: Final = 1.0
"""For a question that asks for what is recent."""


@stage
@dataclass(frozen=True, slots=True)
class Decay:
    """Lowers a score by age. The factor halves after each half-life; that of evergreen kinds stays above the floor.

    `recency` says how much of the factor counts, from 0 to 1. `auto` takes a little, and all of it if the question
    asks for what is recent.
    """

    name: ClassVar[str] = "decay"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"

    half_life_days: float = 30.0
    floor: float = 0.3
    evergreen: Sequence[str] = EVERGREEN_KINDS
    recency: float | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        if not (np.isfinite(self.half_life_days) and self.half_life_days > 0):
            raise ValueError(f"half_life_days must be above 0, not {self.half_life_days!r}")
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor must be from 0 to 1, not {self.floor!r}")
        if self.recency != "auto" and not (isinstance(self.recency, (int, float)) and 0 <= self.recency <= 1):
            raise ValueError(f"recency must be from 0 to 1, or auto, not {self.recency!r}")
        object.__setattr__(self, "evergreen", tuple(self.evergreen))

    def factor(self, kind: str, timestamp: datetime | None, now: datetime) -> float:
        """Return the factor for a score. A record without a timestamp, or with one in the future, has age 0."""
        if timestamp is None:
            return 1.0
        days = max(0.0, (now - timestamp).total_seconds() / SECONDS_PER_DAY)
        factor = float(np.exp2(-days / self.half_life_days))
        return max(self.floor, factor) if kind in self.evergreen else factor

    def recency_for(self, time: QueryTime) -> float:
        """Return how much age counts for a question."""
        if self.recency == "auto":
            return ASKED_RECENCY if time.recent else USUAL_RECENCY
        return self.recency

    def apply(self, ranking: Ranking, context: StageContext) -> StageOutput:
        # A fact has age 0: it is valid until it is superseded.
        factors = np.array(
            [
                1.0 if all(fact) else self.factor(kind, timestamp, context.now)
                for kind, timestamp, *fact in context.values(
                    ranking.keys, "kind", "timestamp", *FACT_FIELDS[:3]
                )
            ]
        )
        recency = self.recency_for(context.time)
        multipliers = 1.0 - recency * (1.0 - factors)
        scores = ranking.scores * multipliers
        best = order(ranking.keys, scores, context.ids)
        asked = f", because you said {context.time.recent!r}" if context.time.recent else ""
        reasons = {
            key: f"× {multiplier:.3f} by age (factor {factor:.3f}, recency {recency:g}{asked})"
            for key, factor, multiplier in zip(
                ranking.keys.tolist(), factors.tolist(), multipliers.tolist(), strict=True
            )
            if context.explain and factor != 1.0
        }
        return StageOutput(ranking.keys[best], scores[best], {}, reasons)
