"""What a question says about time: periods, and whether it asks for what is recent."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.periods import NO_TIME, QueryTime, read_time

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)  # a Tuesday
DAYS = st.dates(date(1950, 1, 1), date(2049, 12, 31))
INSTANTS = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))


def span(query: str, now: datetime = NOW) -> tuple[str, str] | None:
    """The first day of the period of a query and the day after its last; empty where it is open."""
    period = read_time(query, now).period
    if period is None:
        return None
    start, end = ("" if one is None else one.date().isoformat() for one in (period.start, period.end))
    return start, end


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What did I say in March?", ("2026-03-01", "2026-04-01")),
        ("What did I say half a year ago?", ("2026-04-04", "2026-07-04")),
        ("What was I doing this time last year?", ("2025-10-31", "2025-12-05")),
        ("What did I tell you the other day?", ("2026-11-03", "2026-11-17")),
        ("What did I mention a few days ago?", ("2026-11-10", "2026-11-17")),
        ("Who called a few weeks ago?", ("2026-09-29", "2026-11-14")),
        ("what happened in the last few months", ("2026-04-21", "2026-11-18")),
        ("Where did I live before Christmas?", ("", "2025-12-24")),
        ("What did we eat at Easter?", ("2026-04-03", "2026-04-07")),
        ("What did we cook last Christmas?", ("2025-12-24", "2025-12-27")),
        ("Where were we at Easter 2024?", ("2024-03-29", "2024-04-02")),
        ("What happened over the summer?", ("2026-06-01", "2026-09-01")),
        ("What did I buy at the weekend?", ("2026-11-14", "2026-11-16")),
        ("Who came the week before last?", ("2026-11-02", "2026-11-09")),
        ("What did I say earlier this year?", ("2026-01-01", "2027-01-01")),
        ("What did I say at the end of May?", ("2026-05-01", "2026-06-01")),
        ("What did I say in the first week of May?", ("2026-05-01", "2026-06-01")),
        ("what did we do in march", ("2026-03-01", "2026-04-01")),
        ("What did she plant in December?", ("2025-12-01", "2026-01-01")),
        ("What happened in May 2024?", ("2024-05-01", "2024-06-01")),
        ("last November", ("2025-11-01", "2025-12-01")),
        ("in mid-August 2023", ("2023-08-01", "2023-09-01")),
        ("What did I tell you on 4 May 2026?", ("2026-05-04", "2026-05-05")),
        ("the talk of May 4th, 2026", ("2026-05-04", "2026-05-05")),
        ("on the 3rd of June", ("2026-06-03", "2026-06-04")),
        ("notes of 2026-03-10", ("2026-03-10", "2026-03-11")),
        ("What did we decide yesterday?", ("2026-11-16", "2026-11-17")),
        ("the day before yesterday", ("2026-11-15", "2026-11-16")),
        ("what did I eat today", ("2026-11-17", "2026-11-18")),
        ("what did we say last Monday?", ("2026-11-16", "2026-11-17")),
        ("What did he do on Tuesday?", ("2026-11-10", "2026-11-11")),
        ("last week", ("2026-11-09", "2026-11-16")),
        ("last weekend", ("2026-11-14", "2026-11-16")),
        ("last month", ("2026-10-01", "2026-11-01")),
        ("last year", ("2025-01-01", "2026-01-01")),
        ("What did we talk about last spring?", ("2026-03-01", "2026-06-01")),
        ("in the winter", ("2025-12-01", "2026-03-01")),
        ("in summer 2024", ("2024-06-01", "2024-09-01")),
        ("What did Tom say two weeks ago?", ("2026-10-31", "2026-11-07")),
        ("3 days ago", ("2026-11-14", "2026-11-15")),
        ("over the last three weeks", ("2026-10-27", "2026-11-18")),
        ("news since Monday", ("2026-11-16", "")),
        ("since October", ("2026-10-01", "")),
        ("before 2026-02-01", ("", "2026-02-01")),
        ("in 2025", ("2025-01-01", "2026-01-01")),
        ("between August 11 and August 15 2023", ("2023-08-11", "2023-08-16")),
        ("from 3 March to 8 March", ("2026-03-03", "2026-03-09")),
    ],
)
def test_a_stated_period_is_found(query: str, expected: tuple[str, str]) -> None:
    assert span(query) == expected


@pytest.mark.parametrize(
    "query",
    [
        "May I ask something?",
        "Who looks after the Christmas tree?",
        "The other book",
        "How do I get over the weekend blues?",
        "What may I eat?",
        "Did April call?",
        "Who is June?",
        "What does August think of the plan?",
        "the march to the sea",
        "When did we pick March?",
        "the second meeting",
        "I will be there in March",
        "What is planned for next March?",
        "What is planned in March?",
        "Sunday roast recipe",
        "the spring in the mattress",
        "a fall from the roof",
        "the week before August 3, 2023",
        "31 February 2026",
        "2026-13-45",
        "version 2.10.2024 of the manual",
        "from Porto to Braga",
        "What did I say in March and in June 2024?",
        "Is 12 march ok",
        "room 2025",
        "",
    ],
)
def test_what_only_looks_like_a_period_is_none(query: str) -> None:
    assert read_time(query, NOW).period is None


@pytest.mark.parametrize(
    "query",
    [
        "What have we done lately?",
        "recent conversations",
        "the latest about the dog",
        "What's new?",
        "this week",
    ],
)
def test_a_question_for_recent_things_is_recognised(query: str) -> None:
    assert read_time(query, NOW).recent


def test_a_question_without_a_word_about_time_says_nothing() -> None:
    assert read_time("Where did Priya work?", NOW) == NO_TIME


@pytest.mark.parametrize(
    ("query", "present"),
    [
        ("Where does Mira live?", True),
        ("What's the code of the hut?", True),
        ("which coach are we in", True),
        ("wifi password", True),
        ("Where did Mira live?", False),
        ("What is the old wifi password?", False),
        ("What was the code?", False),
        ("How much money was spent on the trip", False),
    ],
)
def test_a_question_for_what_holds_now_is_recognised(query: str, present: bool) -> None:
    assert read_time(query, NOW).asks_for_present is present


def test_a_question_without_a_topic_keeps_the_names() -> None:
    assert read_time("What did Lena and Max talk about lately?", NOW) == QueryTime(
        recent="lately", has_topic=False, names=("Lena", "Max")
    )
    assert read_time("What did Lena say about the boat lately?", NOW).has_topic
    assert read_time("What did Lena say yesterday?", NOW).lists_recent


def test_a_question_for_facts_is_recognised() -> None:
    assert read_time("recent conversations and key facts", NOW).asks_for_facts
    assert read_time("key facts", NOW).asks_for_facts
    assert not read_time("What facts do you know about Goa?", NOW).asks_for_facts


@given(DAYS, INSTANTS, st.sampled_from(["{0.day} {1} {0.year}", "on {1} {0.day}, {0.year}", "{0:%Y-%m-%d}"]))
def test_a_full_date_is_that_day(day: date, now: datetime, form: str) -> None:
    query = "What happened " + form.format(day, f"{day:%B}") + "?"
    period = read_time(query, now).period
    assert period is not None
    assert period.start == datetime(day.year, day.month, day.day, tzinfo=UTC)
    assert period.end == period.start + timedelta(days=1)


@given(INSTANTS, st.integers(1, 999), st.sampled_from(["day", "week", "month"]))
def test_a_time_ago_is_inside_its_period_and_in_the_past(now: datetime, count: int, unit: str) -> None:
    period = read_time(f"what did I say {count} {unit}s ago", now).period
    if period is None:  # before the year 1
        return
    assert period.start is not None
    assert period.start < now
    assert period.contains(now - timedelta(days=count * {"day": 1, "week": 7, "month": 30}[unit]))


@given(INSTANTS, st.sampled_from(["in {:%B}", "last {:%B}", "since {:%B}"]), st.integers(0, 700))
def test_a_month_without_a_year_has_begun(now: datetime, form: str, days: int) -> None:
    period = read_time(f"What did I say {form.format(now - timedelta(days=days))}?", now).period
    assert period is not None
    assert period.start is not None
    assert period.start <= now


@given(
    st.text(st.sampled_from("0123456789 -/.,abcMayinonlast wekdsurz'")),
    st.lists(
        st.sampled_from("in on since last May March 31 2026 two weeks ago Monday summer before the".split())
    ),
    INSTANTS,
)
def test_any_text_can_be_read(text: str, words: list[str], now: datetime) -> None:
    for query in (text, " ".join(words)):
        period = read_time(query, now).period
        assert period is None or period.start is None or period.end is None or period.start < period.end
