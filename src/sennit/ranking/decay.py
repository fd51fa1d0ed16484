"""Time decay: score · max(floor, 2^(-age / half-life))."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Final, Literal

import numpy as np

from sennit.facts import FACT_FIELDS
from sennit.ranking.fusion import order
from sennit.ranking.stages import Ranking, StageContext, StageOutput, stage

SECONDS_PER_DAY: Final = 86_400.0
EVERGREEN_KINDS: Final = ("person", "place", "relationship")
"""Kinds of record that stay true."""


@stage
@dataclass(frozen=True, slots=True)
class Decay:
    """Halves a score after each half-life. Evergreen kinds never fall below the floor."""

    name: ClassVar[str] = "decay"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"

    half_life_days: float = 30.0
    floor: float = 0.3
    evergreen: Sequence[str] = EVERGREEN_KINDS

    def __post_init__(self) -> None:
        if not (np.isfinite(self.half_life_days) and self.half_life_days > 0):
            raise ValueError(f"half_life_days must be above 0, not {self.half_life_days!r}")
        if not 0 <= self.floor <= 1:
            raise ValueError(f"floor must be from 0 to 1, not {self.floor!r}")
        object.__setattr__(self, "evergreen", tuple(self.evergreen))

    def factor(self, kind: str, timestamp: datetime | None, now: datetime) -> float:
        """Return the factor for a score. A record without a timestamp, or with one in the future, has age 0."""
        if timestamp is None:
            return 1.0
        days = max(0.0, (now - timestamp).total_seconds() / SECONDS_PER_DAY)
        factor = float(np.exp2(-days / self.half_life_days))
        return max(self.floor, factor) if kind in self.evergreen else factor

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
        scores = ranking.scores * factors
        best = order(ranking.keys, scores, context.ids)
        reasons = {
            key: f"× {factor:.3f} by age"
            for key, factor in zip(ranking.keys.tolist(), factors.tolist(), strict=True)
            if context.explain and factor != 1.0
        }
        return StageOutput(ranking.keys[best], scores[best], {}, reasons)
