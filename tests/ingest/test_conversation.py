"""Conversations: turns from JSON Lines and transcripts, in order, each stored once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sennit
from sennit import Turn
from sennit.errors import InvalidInput
from sennit.ingest.conversation import read_conversation


def test_a_transcript_gives_its_turns_with_speakers_and_times() -> None:
    text = (
        "[2026-03-01 09:30] Rajesh: We should plan that Goa trip\n"
        "and soon.\n\n"
        "2026-03-01T09:31:00Z Priya Sharma: I need to check dates\n"
        "Rajesh (2026-03-01 09:32): Note this: March is best\n"
    )
    turns = list(read_conversation(text, "goa"))
    assert [(turn.speaker, turn.text, turn.position) for turn in turns] == [
        ("Rajesh", "We should plan that Goa trip\nand soon.", 0),
        ("Priya Sharma", "I need to check dates", 1),
        ("Rajesh", "Note this: March is best", 2),
    ]
    assert [turn.timestamp for turn in turns] == [
        datetime(2026, 3, 1, 9, minute, tzinfo=UTC) for minute in (30, 31, 32)
    ]
    assert {turn.session for turn in turns} == {"goa"}


def test_date_line_sets_the_date_of_the_times_below() -> None:
    turns = list(read_conversation("== 2026-03-01 ==\n09:30 Rajesh: hello\n10:00:05 Priya: hi\n", "s"))
    assert [turn.timestamp for turn in turns] == [
        datetime(2026, 3, 1, 9, 30, tzinfo=UTC),
        datetime(2026, 3, 1, 10, 0, 5, tzinfo=UTC),
    ]
    assert [turn.timestamp for turn in read_conversation("09:30 Rajesh: hello", "s")] == [None]


def test_sentence_with_a_colon_continues_the_turn() -> None:
    (turn,) = read_conversation("Rajesh: three things\nthe first of which is this: salt", "s")
    assert turn.text == "three things\nthe first of which is this: salt"


@pytest.mark.parametrize(
    "line",
    [
        '{"text": "hi", "speaker": "Rajesh", "session": "s1", "timestamp": "2026-03-01T09:30:00Z"}',
        '{"content": "hi", "role": "Rajesh", "conversation_id": "s1", "created_at": 1772357400}',
        '{"message": "hi", "author": "Rajesh", "thread": "s1", "ts": "2026-03-01T09:30:00+00:00"}',
    ],
)
def test_field_names_of_common_exports_are_read(line: str) -> None:
    (turn,) = read_conversation(line, "other")
    assert (turn.text, turn.speaker, turn.session) == ("hi", "Rajesh", "s1")
    assert turn.timestamp == datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def test_other_fields_become_metadata() -> None:
    (turn,) = read_conversation(
        '{"text": "hi", "mood": "glad", "metadata": {"a": 1}, "entities": ["Goa"]}', "s"
    )
    assert turn.metadata == {"mood": "glad", "a": 1}
    assert turn.to_record().metadata == {"mood": "glad", "a": 1, "session": "s", "entities": ["Goa"]}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nothing of the kind", "not a transcript"),
        ('{"text": "a"}\n{"text": 5}', "Line 2: it has no text"),
        ('{"text": "a"}\n[1]', "Line 2: it is not a JSON object"),
        ('{"text": "a"}\n{"tex', "Line 2"),
        ('{"text": "a", "timestamp": "yesterday-ish"}', "Line 1: Not a valid time"),
        ("== 2026-03-01 ==\n99:99 Rajesh: hello", "not a time of day"),
    ],
)
def test_invalid_line_is_reported_with_its_number(text: str, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        list(read_conversation(text, "s"))


@given(st.text(max_size=200))
def test_any_text_is_parsed_or_rejected(text: str) -> None:
    try:
        turns = list(read_conversation(text, "s"))
    except InvalidInput:
        return
    assert all(turn.text.strip() for turn in turns)


def test_new_turns_follow_the_stored_turns() -> None:
    with sennit.open(":memory:") as db:
        db.add_turns(
            [
                Turn(text="one", session="s"),
                Turn(text="two", session="s"),
                Turn(text="x", session="t"),
            ]
        )
        db.add_turns([Turn(text="three", session="s")])
        places = {record.text: (record.parent, record.position) for record in db}
        assert places == {"one": ("s", 0), "two": ("s", 1), "three": ("s", 2), "x": ("t", 0)}


def test_the_same_turns_again_change_nothing() -> None:
    turns = [Turn(text=f"turn {n}", session="s", speaker="Rajesh") for n in range(5)]
    with sennit.open(":memory:") as db:
        db.add_turns(turns)
        again = db.add_turns(turns)
        assert (again.added, again.updated, again.unchanged) == (0, 0, 5)


def test_a_turn_is_found_by_its_words_at_once_and_with_its_speaker() -> None:
    with sennit.open(":memory:") as db:
        db.add_turns(
            [Turn(text="the lighthouse at dusk", session="s", speaker="Priya", entities=["lighthouse"])]
        )
        (hit,) = db.search("lighthouse", recipe="memory")
        assert hit.metadata == {"session": "s", "speaker": "Priya", "entities": ["lighthouse"]}
        assert hit.collection == "history"


def test_sessions_of_tenants_are_separate() -> None:
    with sennit.open(":memory:", privacy__open=True) as db:
        db.add_turns([Turn(text="a", session="s", tenant="acme"), Turn(text="b", session="s")])
        places = {record.text: record.position for record in db.store.iter_records()}
        assert places == {"a": 0, "b": 0}


def test_invalid_turns_are_rejected() -> None:
    with pytest.raises(InvalidInput, match="entities"):
        Turn(text="x", session="s", entities="Goa")
    with pytest.raises(InvalidInput, match="text"):
        Turn(text=5, session="s")  # type: ignore[arg-type]
    with sennit.open(":memory:") as db, pytest.raises(InvalidInput, match=r"sennit\.Turn"):
        db.add_turns(["hello"])  # type: ignore[list-item]
