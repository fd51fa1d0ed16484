"""What was said last stands before what was said about the same thing earlier, if the question asks for what holds now."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Final, Literal

import numpy as np

from sennit.facts import is_fact
from sennit.ranking.evidence import QUESTION_MARKS
from sennit.ranking.fusion import order
from sennit.ranking.stages import Ranking, StageContext, StageOutput, stage

DEPTH: Final = 20
"""Only so many of the best are compared."""

WORDS: Final = "keyword"
"""The list whose scores say how many words of the question a text has."""

MIN_TIME_BETWEEN: Final = timedelta(hours=6)
"""What was said closer together belongs to one conversation."""

_CHANGED: Final = re.compile(
    r"\b(?:now|new|moved?|changed?|instead|again|any ?more|no longer|actually|after all|from (?:today|tomorrow|now)|already"
    r"|finally|cancell?ed|switched|until further)\b|\bnot \w+ but\b",
    re.I,
)
"""Words with which a text says that something is no longer as it was."""


@stage
@dataclass(frozen=True, slots=True)
class Latest:
    """Multiplies the score of what was said by `outdated` if something later says nearly as much about the question.

    "Nearly" is `min_share` of the earlier one's score, and of its score in the list `keyword` where there is one;
    `changed_share` for a text that says itself that something has changed. Questions tell nothing.
    """

    name: ClassVar[str] = "latest"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"

    outdated: float = 0.85
    min_share: float = 0.9
    changed_share: float = 0.6

    def __post_init__(self) -> None:
        for name in ("outdated", "min_share", "changed_share"):
            value = getattr(self, name)
            if not (np.isfinite(value) and 0 < value <= 1):
                raise ValueError(f"{name} must be above 0 and at most 1, not {value!r}")

    def apply(self, ranking: Ranking, context: StageContext) -> StageOutput:
        if not context.time.asks_for_present:
            return StageOutput(ranking.keys, ranking.scores)
        first = ranking.keys[:DEPTH]
        has_words = any(one.name == WORDS and len(one.keys) for one in ranking.lists)
        words = (
            np.nan_to_num(context.list_scores(WORDS, first), nan=0.0) if has_words else np.ones(len(first))
        )
        said = [
            (at, record.timestamp, record)
            for at, record in enumerate(context.read(first))
            if record.timestamp is not None and not is_fact(record)
        ]
        multipliers = np.ones(len(ranking.keys))
        reasons = {}
        for other, later, record in said:
            if words[other] <= 0 or record.text.rstrip().endswith(QUESTION_MARKS):
                continue
            share = self.changed_share if _CHANGED.search(record.text) else self.min_share
            for at, when, _ in said:
                if (
                    later - when >= MIN_TIME_BETWEEN
                    and words[other] >= share * words[at]
                    and ranking.scores[other] >= share * ranking.scores[at]
                ):
                    multipliers[at] = self.outdated
                    if context.explain:
                        reasons[int(first[at])] = f"× {self.outdated:g}, {record.id!r} was said later"
        scores = ranking.scores * multipliers
        best = order(ranking.keys, scores, context.ids)
        return StageOutput(ranking.keys[best], scores[best], {}, reasons)
