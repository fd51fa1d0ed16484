"""The clock of an evaluation: times from the metadata, and when the queries ask."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.errors import InvalidInput
from sennit.evaluation.clock import find_time, parse_clock, set_clock
from sennit.evaluation.datasets import Collection, Query
from sennit.evaluation.run import EvaluationOptions, System, evaluate
from sennit.ranking.decay import Decay
from sennit.recipes import Recipe
from sennit.records import Record
from sennit.settings import Settings
from sennit.settings.sections import MemorySettings

NOW = datetime(2026, 11, 17, 12, tzinfo=UTC)


def talks(*days: tuple[str, str]) -> Collection:
    """A collection with a document for each conversation and day, and a query for each conversation."""
    documents = tuple(
        Record(id=f"{n}", text=f"harbour {n}", metadata={"conversation": name, "date_time": day})
        for n, (name, day) in enumerate(days)
    )
    names = dict.fromkeys(name for name, _ in days)
    queries = tuple(Query(name, "harbour lately", {"conversation": name}) for name in names)
    return Collection("talks", documents, queries, {name: {"0": 1} for name in names})


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"date_time": "1:56 pm on 8 May, 2023"}, datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ({"timestamp": "2023-05-08T13:56:00Z"}, datetime(2023, 5, 8, 13, 56, tzinfo=UTC)),
        ({"timestamp": 0}, datetime(1970, 1, 1, tzinfo=UTC)),
        ({"date": "8 May 2023"}, datetime(2023, 5, 8, tzinfo=UTC)),
        ({"timestamp": "some day", "date": "2023-05-08"}, datetime(2023, 5, 8, tzinfo=UTC)),
        ({"date_time": None}, None),
        ({"date_time": "soon"}, None),
        ({}, None),
    ],
)
def test_the_time_of_a_document_is_in_its_metadata(
    metadata: dict[str, str | int | None], expected: datetime | None
) -> None:
    assert find_time(metadata) == expected


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.dates(date(1950, 1, 1), date(2050, 1, 1)).map(str)),
        min_size=1,
        max_size=8,
    )
)
def test_with_end_each_conversation_ended_yesterday_and_keeps_its_distances(
    days: list[tuple[str, str]],
) -> None:
    collection = talks(*days)
    clocked = set_clock(collection, "end", "conversation", NOW)
    for name in {name for name, _ in days}:
        moved = [
            record.timestamp
            for record in clocked.collection.documents
            if record.metadata["conversation"] == name
        ]
        given_times = [
            datetime.fromisoformat(day).replace(tzinfo=UTC) for other, day in days if other == name
        ]
        assert max(time for time in moved if time) == NOW - timedelta(days=1)
        assert len({time - before for time, before in zip(moved, given_times, strict=True) if time}) == 1
    assert all(clocked.time_of(query) == NOW for query in collection.queries)


def test_with_last_each_query_asks_the_day_after_its_conversation() -> None:
    clocked = set_clock(
        talks(("a", "2023-05-01"), ("a", "2023-05-08"), ("b", "2024-01-01")), "last", "conversation", NOW
    )
    assert [clocked.time_of(query) for query in clocked.collection.queries] == [
        datetime(2023, 5, 9, tzinfo=UTC),
        datetime(2024, 1, 2, tzinfo=UTC),
    ]


def test_an_instant_leaves_the_times_as_they_are() -> None:
    clock = parse_clock("2024-06-01")
    clocked = set_clock(talks(("a", "2023-05-01")), clock, None, NOW)
    assert clocked.collection.documents[0].timestamp == datetime(2023, 5, 1, tzinfo=UTC)
    assert clocked.time_of(clocked.collection.queries[0]) == datetime(2024, 6, 1, tzinfo=UTC)


def test_a_wrong_clock_and_documents_without_a_time_are_errors() -> None:
    with pytest.raises(InvalidInput, match="an instant such as 2026-03-01T12:00, end or last"):
        parse_clock("tomorrow")
    with pytest.raises(InvalidInput, match="date_time"):
        set_clock(talks(("a", "some day")), "end", None, NOW)


def test_an_evaluation_with_a_clock_sees_ages() -> None:
    collection = talks(("a", "2023-05-01"), ("a", "2023-09-01"))

    def best(now: str | None) -> str:
        options = EvaluationOptions(
            models=["none"], recipes=["memory"], now=None if now is None else parse_clock(now)
        )
        (measured,) = evaluate(
            [collection], options, Settings(), systems=lambda recipe: [System("memory", recipe)]
        )
        return measured.query_results[0].ranking[0]

    assert best(None) == "0"
    assert best("end") == best("last") == best("2023-09-02") == "1"


def test_an_evaluation_uses_the_settings_of_a_recipe() -> None:
    collection = talks(("a", "2023-05-01"), ("a", "2023-09-01"))
    settings = Settings(memory=MemorySettings(recency=0))
    recipes: list[Recipe] = []

    def only(recipe: Recipe) -> list[System]:
        recipes.append(recipe)
        return [System("memory", recipe)]

    evaluate([collection], EvaluationOptions(models=["none"], recipes=["memory"]), settings, systems=only)
    assert recipes[0].stages[-2] == Decay(recency=0.0)
