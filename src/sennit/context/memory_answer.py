"""An answer from memories without a language model: who said what and when, and the facts that are known.

A turn is short and leans on its neighbours, so it is quoted whole, in the order of the search, which knows those
neighbours. What a question asks for ("who", "when", "where", "how many") decides between turns that are close.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from sennit.context.extractive_answer import (
    MAX_STATEMENT_CHARACTERS,
    NOTHING_FITS,
    ExtractiveAnswer,
    Statement,
    format_answer,
)
from sennit.context.prompt import PromptPassage
from sennit.context.sanitize import one_line, truncate
from sennit.facts import is_fact
from sennit.period_words import ENGLISH_MONTHS, ENGLISH_WEEKDAYS
from sennit.periods import Period, QueryTime, read_time
from sennit.ranking.answer_form import NUMBER_WORDS, asked_forms
from sennit.ranking.evidence import QUESTION_MARKS
from sennit.records import Record

MAX_TURNS: Final = 2
MIN_GAIN_SHARE: Final = 0.75
"""A further turn must gain at least this share of what the first gained."""

FORM_FACTOR: Final = 1.25
"""For a turn that has what the question asks for; its inverse for one that has not."""

NEARLY_EQUAL: Final = 0.98
"""A fact with this share of the first one's score has as much of what the question asks for."""

QUESTION_FACTOR: Final = 0.5
"""For a turn that is itself a question."""

_MONTH: Final = "|".join(ENGLISH_MONTHS)
_WEEKDAY: Final = "|".join(ENGLISH_WEEKDAYS)
_RELATIVE: Final = re.compile(
    rf"\b(?:(?:the )?day before yesterday|yesterday|last night|tomorrow|(?:\d{{1,3}}|an?|{NUMBER_WORDS}) (?:day|week|month|year)s? ago"
    rf"|last (?:week|weekend|month|year|spring|summer|autumn|fall|winter|{_MONTH}|{_WEEKDAY}))\b",
    re.I,
)
"""Times that a text counts from the day on which it was said."""


def is_memory(record: Record) -> bool:
    """Whether a record is a turn, a fact, or something that an assistant was told to remember."""
    return is_fact(record) or record.collection in ("memory", "history")


def answer_from_memories(
    query: str, passages: Sequence[PromptPassage], time: QueryTime, *, fits: bool
) -> ExtractiveAnswer:
    """Answer a question from passages that are memories, best first; `fits` says whether any fits it."""
    if not time.has_topic:
        listed = sorted(passages, key=_when)
        return format_answer([Statement(_show(one), one, 0) for one in listed])
    if not fits:
        nearest = format_answer([Statement(_show(passages[0]), passages[0], 0)])
        return ExtractiveAnswer(f"{NOTHING_FITS} The nearest: {nearest.text}", nearest.citations)
    return format_answer([Statement(_show(one), one, 0) for one in _select(query, passages)])


def _select(query: str, passages: Sequence[PromptPassage]) -> list[PromptPassage]:
    first = passages[0].record
    if is_fact(first):
        # The search puts a fact first only if it has what the question asks for, as others may: "Which kids?"
        return [one for one in passages if is_fact(one.record) and _answers_too(one, passages[0])]
    asked = [given for _, given in asked_forms(query)]

    def gain(passage: PromptPassage) -> float:
        text, value = passage.record.text, max(0.0, passage.score)
        for given in asked:
            value *= FORM_FACTOR if given.search(text) else 1 / FORM_FACTOR
        return value * QUESTION_FACTOR if text.rstrip().endswith(QUESTION_MARKS) else value

    gains = {passage.number: gain(passage) for passage in passages}
    best = sorted(passages, key=lambda passage: -gains[passage.number])[:MAX_TURNS]
    return [one for one in best if gains[one.number] >= MIN_GAIN_SHARE * gains[best[0].number]]


def _answers_too(fact: PromptPassage, first: PromptPassage) -> bool:
    """Whether a fact answers as the first one does: as well, or by the same relation."""
    same = all(fact.record.metadata[name] == first.record.metadata[name] for name in ("subject", "relation"))
    return same or fact.score >= NEARLY_EQUAL * first.score


def _show(passage: PromptPassage) -> str:
    """A memory as a line: who said it and when, and the dates that it means."""
    record = passage.record
    when = record.timestamp
    text = truncate(one_line(record.text), MAX_STATEMENT_CHARACTERS)
    day = "" if when is None else show_day(when)
    if is_fact(record):
        return f"{text} (since {day})" if day else text
    speaker = record.metadata.get("speaker")
    named = ", ".join(part for part in (speaker if isinstance(speaker, str) else "", day) if part)
    return f"{named}: {with_dates(text, when)}" if named else text


def with_dates(text: str, when: datetime | None) -> str:
    """A text with the days that its relative times mean: "yesterday (2 May 2026)"."""
    if when is None:
        return text

    def add_date(found: re.Match[str]) -> str:
        if found[0].casefold() == "tomorrow":
            return f"{found[0]} ({show_day(when + timedelta(days=1))})"
        period = read_time(found[0], when).period
        return found[0] if period is None else f"{found[0]} ({_show_period(period)})"

    return _RELATIVE.sub(add_date, text)


def show_day(when: datetime) -> str:
    """A day in words: "2 May 2026"."""
    return f"{when.day} {when:%B %Y}"


def _show_period(period: Period) -> str:
    start, end = period.start, period.end
    if start is None or end is None:
        return str(period)
    last = end - timedelta(microseconds=1)
    if (last - start).days < 1:
        return show_day(last)
    if start.day == 1 and end.day == 1:
        return (
            f"{start:%B %Y}"
            if (start.year, start.month) == (last.year, last.month)
            else (f"{start.year}" if start.month == 1 and last.month == 12 else f"{start:%B} to {last:%B %Y}")
        )
    return f"{show_day(start)} to {show_day(last)}"


def _when(passage: PromptPassage) -> tuple[bool, float]:
    """Facts first, then what was said, in the order of time."""
    when = passage.record.timestamp
    return not is_fact(passage.record), 0.0 if when is None else when.timestamp()
