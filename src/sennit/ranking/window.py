"""The window: if a question names a period, what was said in it stands before what was said at other times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from sennit.facts import is_fact
from sennit.ranking.fusion import order
from sennit.ranking.stages import Ranking, StageContext, StageOutput, stage
from sennit.records import Record

if TYPE_CHECKING:
    # Not imported at runtime: a new process that searches once needs none of it.
    from sennit.periods import Period


@stage
@dataclass(frozen=True, slots=True)
class Window:
    """Multiplies the score of what lies outside the period of the question by `outside`.

    Facts, records without a time, and texts that name the period themselves count as inside.
    """

    name: ClassVar[str] = "window"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"

    outside: float = 0.3

    def __post_init__(self) -> None:
        if not 0 <= self.outside <= 1:
            raise ValueError(f"outside must be from 0 to 1, not {self.outside!r}")

    def apply(self, ranking: Ranking, context: StageContext) -> StageOutput:
        period = context.time.period
        if period is None:
            return StageOutput(ranking.keys, ranking.scores)
        multipliers = np.ones(len(ranking.keys))
        reasons = {}
        for at, (key, record) in enumerate(
            zip(ranking.keys.tolist(), context.read(ranking.keys), strict=True)
        ):
            inside, reason = judge(period, record)
            if not inside:
                multipliers[at] = self.outside
                reason = f"× {self.outside:g}, {reason}"
            if context.explain:
                reasons[key] = reason
        scores = ranking.scores * multipliers
        best = order(ranking.keys, scores, context.ids)
        return StageOutput(ranking.keys[best], scores[best], {}, reasons)


def judge(period: Period, record: Record) -> tuple[bool, str]:
    """Return whether a record counts as inside a period, and why."""
    if is_fact(record):
        return True, "a fact, which is valid now"
    if record.timestamp is None:
        return True, f"it has no time, so {period.words!r} does not exclude it"
    day = record.timestamp.date().isoformat()
    if period.contains(record.timestamp):
        return True, f"of {day}, in {period}"
    if period.is_named_in(record.text):
        return True, f"of {day}, and it names {period.words!r} itself"
    return False, f"of {day}, outside of {period}"
