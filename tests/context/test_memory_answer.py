"""Answers from turns and facts, without a language model."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import sennit
from sennit import Fact, Turn
from sennit.context.memory_answer import with_dates

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


def said(text: str, day: str, speaker: str = "Nadia", session: str = "") -> Turn:
    return Turn(
        text=text,
        session=session or day,
        speaker=speaker,
        timestamp=datetime.fromisoformat(f"{day}T12:00:00+00:00"),
    )


CHAT = [
    said("The dentist moved my appointment, I am done with phone queues.", "2026-02-02"),
    said("I found a map of Madeira for Clara in a tiny shop.", "2026-04-28"),
    said("How much did you pay for the map?", "2026-04-28", "Ada"),
    said("It cost 85 euros, more than I wanted.", "2026-04-28"),
    said("I live in Lisbon now, near the river.", "2026-01-06"),
    said("I moved to Porto yesterday. Boxes everywhere.", "2026-05-16"),
    said("Do you like the new place?", "2026-05-16", "Ada"),
    said("The lift is broken, but the balcony looks at the bridge.", "2026-05-16"),
    said("The gardener planted two lemon trees behind the kitchen.", "2026-06-20"),
    said("My pottery bowl survived the oven!", "2026-11-15"),
    said("That sounds like a good end of the week.", "2026-11-15", "Ada"),
    said("I repaired the bicycle with a spoon.", "2026-11-16"),
]


def ask(query: str, *, extract: bool = True) -> str:
    with sennit.open(":memory:") as db:
        db.add_turns(CHAT)
        if extract:
            db.memory.extract_facts([turn.to_record() for turn in CHAT])
        return db.ask(query, recipe="memory", now=NOW).text


def test_an_answer_says_who_said_it_and_when() -> None:
    text = ask("Who planted the lemon trees?")
    assert text.startswith(
        "Nadia, 20 June 2026: The gardener planted two lemon trees behind the kitchen. [1]"
    )


def test_a_question_for_an_amount_is_answered_by_the_turn_with_the_number() -> None:
    assert ask("How much did the map cost?").startswith("Nadia, 28 April 2026: It cost 85 euros")


def test_the_current_fact_answers_and_not_what_it_superseded() -> None:
    text = ask("Where is my home now?")
    assert text == "Nadia -> Porto: lives in Porto (since 16 May 2026) [1]"


def test_all_facts_that_the_question_asks_for_are_in_the_answer() -> None:
    with sennit.open(":memory:") as db:
        db.add_facts([Fact(subject="Nadia", relation="child", object=name) for name in ("Samir", "Lina")])
        db.add_turns(CHAT)
        text = db.ask("What is Nadia's child called?", recipe="memory", now=NOW).text
    assert {"Samir", "Lina"} <= set(text.replace(":", " ").split())


@pytest.mark.parametrize(
    "query", ["How tall is the Eiffel tower?", "What is the boiling point of mercury?", "Who wrote Macbeth?"]
)
def test_a_question_that_nothing_fits_is_told_so_with_the_nearest(query: str) -> None:
    assert ask(query).startswith("Nothing ")


def test_a_question_without_a_topic_lists_what_was_said_in_the_order_of_time() -> None:
    lines = ask("What did I say this week?", extract=False).split("\n")
    assert lines[-1].startswith("Nadia, 16 November 2026: I repaired the bicycle with a spoon.")
    assert any(line.startswith("Nadia, 15 November 2026: My pottery bowl") for line in lines[:-1])


@pytest.mark.parametrize(
    ("text", "dated"),
    [
        ("I moved yesterday.", "I moved yesterday (2 May 2026)."),
        ("the exam is tomorrow", "the exam is tomorrow (4 May 2026)"),
        ("We met last week", "We met last week (20 April 2026 to 26 April 2026)"),
        ("We met two days ago", "We met two days ago (1 May 2026)"),
        ("Last month was wet", "Last month (April 2026) was wet"),
        ("Last year was wet", "Last year (2025) was wet"),
        ("We sang last spring", "We sang last spring (March to May 2025)"),
        ("We met last Tuesday", "We met last Tuesday (28 April 2026)"),
        ("I am here today, on 4 May 1999", "I am here today, on 4 May 1999"),
    ],
)
def test_a_relative_time_is_shown_with_the_day_that_it_means(text: str, dated: str) -> None:
    assert with_dates(text, datetime(2026, 5, 3, 18, tzinfo=UTC)) == dated
    assert with_dates(text, None) == text
