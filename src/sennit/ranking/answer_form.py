"""What a question asks for ("how much", "when", "where", "who") decides between records that are close."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import ClassVar, Final, Literal

import numpy as np

from sennit.facts import FACT_FIELDS
from sennit.ranking.fusion import order
from sennit.ranking.stages import Ranking, StageContext, StageOutput, stage
from sennit.records import Record

DEPTH: Final = 20
"""Only the texts of so many of the best are read."""

NUMBER_WORDS: Final = (
    r"two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|seventy|eighty"
    r"|ninety|half|dozen|hundred|thousand"
)


@cache
def _forms() -> tuple[tuple[str, re.Pattern[str], re.Pattern[str]], ...]:
    """What questions ask for, and how texts look that have it."""
    # Not imported with this module: a new process that searches once in another recipe needs none of it.
    from sennit.period_words import ENGLISH_MONTHS, ENGLISH_WEEKDAYS

    number = rf"\d|\b(?i:{NUMBER_WORDS})\b"
    days = "|".join((*ENGLISH_MONTHS, *ENGLISH_WEEKDAYS))
    return tuple(
        (name, re.compile(asked, re.I), re.compile(given))
        for name, asked, given in (
            (
                "number",
                r"\bhow (?:many|much|long|often|large|big|far|old|fast|high|tall|heavy)\b"
                r"|\bwhat (?:does|do|did|will|would)\b.*\b(?:cost|weigh)\b|\b(?:price|size|age|number|code)\b",
                number,
            ),
            (
                "time",
                r"\bwhen\b|\bwhat (?:time|day|date)\b|\bwhich (?:days?|date|month|evenings?|nights?)\b",
                rf"{number}|\b(?i:(?:{days})s?|yesterday|today|tomorrow|tonight|last|next|ago)\b",
            ),
            (
                "place",
                r"\bwhere\b|\bwhich (?:city|town|place)\b",
                r"\b(?i:in|at|to|on|from|near|behind|by) (?:the )?\w",
            ),
            ("name", r"\bwho(?:se|m)?\b", r"(?<=\w )[A-ZÀ-Þ]\w+|\b[Mm]y \w+|\b[Hh]is \w+|\b[Hh]er \w+"),
        )
    )


def asked_forms(question: str) -> list[tuple[str, re.Pattern[str]]]:
    """Return what a question asks for, each with the pattern of texts that have it."""
    return [(name, given) for name, asked, given in _forms() if asked.search(question)]


def _said(record: Record) -> str:
    """A text, or a fact as a sentence: "Nadia lives in Porto"."""
    names = [record.metadata.get(name) for name in FACT_FIELDS[:3]]
    return record.text if not all(names) else f"{' '.join(map(str, names))}: {record.text}"


@stage
@dataclass(frozen=True, slots=True)
class AnswerForm:
    """Multiplies the score of a record by `missing` for each thing that the question asks for and its text lacks."""

    name: ClassVar[str] = "answer_form"
    runs: ClassVar[Literal["after_fusion"]] = "after_fusion"

    missing: float = 0.8

    def __post_init__(self) -> None:
        if not 0 < self.missing <= 1:
            raise ValueError(f"missing must be above 0 and at most 1, not {self.missing!r}")

    def apply(self, ranking: Ranking, context: StageContext) -> StageOutput:
        asked = asked_forms(context.query)
        if not asked:
            return StageOutput(ranking.keys, ranking.scores)
        first = ranking.keys[:DEPTH]
        # A record beyond the depth may not pass one within it that was not read to be better.
        multipliers = np.full(len(ranking.keys), self.missing ** len(asked))
        reasons = {}
        for at, (key, record) in enumerate(zip(first.tolist(), context.read(first), strict=True)):
            text = _said(record)
            lacks = [name for name, given in asked if not given.search(text)]
            multipliers[at] = self.missing ** len(lacks)
            if lacks and context.explain:
                reasons[key] = f"× {multipliers[at]:.3f}, the question asks for a {' and a '.join(lacks)}"
        scores = ranking.scores * multipliers
        best = order(ranking.keys, scores, context.ids)
        return StageOutput(ranking.keys[best], scores[best], {}, reasons)
