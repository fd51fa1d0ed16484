"""Facts and entities as values, and the records that store them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.errors import InvalidInput
from sennit.facts import Entity, Fact, aliases_of, end_superseded_facts, ended_at, fact_id, is_fact, weight_of
from sennit.records import Record

NOW = datetime(2026, 3, 1, tzinfo=UTC)
GOA = Fact(
    subject="Rajesh",
    relation="planning",
    object="Priya",
    text="planning vacation to Goa in March",
    timestamp=NOW,
    sources=("turn-1",),
    metadata={"confidence": 0.9},
)


def lives(place: str, since: datetime | None = None, **fields: object) -> Fact:
    return Fact(subject="Priya", relation="lives in", object=place, timestamp=since, **fields)  # type: ignore[arg-type]


def ends(records: list[Record]) -> dict[str, datetime | None]:
    return {str(record.metadata["object"]): ended_at(record) for record in records}


def test_the_line_of_a_fact() -> None:
    assert GOA.line == "Rajesh -> Priya: planning vacation to Goa in March"
    assert Fact(subject="Priya", relation="likes", object="mango").line == "Priya -> mango: likes"


def test_the_record_of_a_fact_has_its_fields_in_the_metadata() -> None:
    record = GOA.to_record()
    assert record.kind == "fact"
    assert record.collection == "facts"
    assert record.text == GOA.line
    assert record.metadata == {
        "confidence": 0.9,
        "subject": "Rajesh",
        "relation": "planning",
        "object": "Priya",
        "weight": 1.0,
        "sources": ["turn-1"],
    }


words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20).filter(str.strip)
times = st.datetimes(timezones=st.just(UTC), min_value=datetime(1990, 1, 1), max_value=datetime(2090, 1, 1))


@given(
    words,
    words,
    words,
    words | st.just(""),
    st.floats(0, 100),
    st.none() | times,
    st.lists(words, max_size=3),
    st.sampled_from(["fact", "relationship"]),
)
def test_a_fact_round_trips_through_its_record(
    subject: str,
    relation: str,
    object_: str,
    text: str,
    weight: float,
    since: datetime | None,
    sources: list[str],
    kind: str,
) -> None:
    fact = Fact(
        subject=subject,
        relation=relation,
        object=object_,
        text=text,
        weight=weight,
        timestamp=since,
        superseded_at=since and since + timedelta(days=1),
        sources=tuple(sources),
        kind=kind,
    )
    assert Fact.from_record(fact.to_record()) == fact
    assert Fact.from_record(Record.from_dict(fact.to_record().to_dict())) == fact


def test_white_space_and_capitals_do_not_change_the_id_of_a_fact() -> None:
    assert Fact(subject=" priya ", relation="Lives  in", object="GOA").id == lives("Goa").id
    assert lives("Goa").id != lives("Delhi").id
    assert fact_id("a b", "c", "d") != fact_id("a", "b c", "d")
    assert lives("Goa", id="mine").id == "mine"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"subject": ""}, "Fact.subject must not be empty"),
        ({"object": 3}, "Fact.object must be a string"),
        ({"weight": -1}, "Fact.weight must be a number from 0"),
        ({"weight": float("nan")}, "Fact.weight must be a number from 0"),
        ({"weight": True}, "Fact.weight must be a number from 0"),
        ({"sources": "a"}, "Fact.sources must be a list"),
        ({"metadata": {"weight": 2}}, "must not hold 'weight'"),
        ({"timestamp": "2026-03-01", "superseded_at": "2026-02-01"}, "cannot end"),
        ({"timestamp": "yesterday"}, "Not a valid time"),
        ({"subject": "\ud800"}, "not valid Unicode"),
    ],
)
def test_an_invalid_fact_is_rejected(fields: dict[str, object], message: str) -> None:
    values = {"subject": "a", "relation": "b", "object": "c", **fields}
    with pytest.raises(InvalidInput, match=message):
        Fact(**values)  # type: ignore[arg-type]


def test_a_record_that_is_no_fact_is_rejected() -> None:
    mail = Record(id="m", text="Hello", metadata={"subject": "Hello", "object": "x"})
    assert not is_fact(mail)
    with pytest.raises(InvalidInput, match="is not a fact"):
        Fact.from_record(mail)


def test_invalid_metadata_falls_back_to_defaults() -> None:
    def record(**values: object) -> Record:
        return Record(id="x", text="t", metadata={"subject": "a", "relation": "b", "object": "c", **values})  # type: ignore[dict-item]

    assert weight_of(record(weight="heavy")) == 1.0
    assert weight_of(record(weight=-2)) == 1.0
    assert weight_of(record(weight=2)) == 2.0
    assert ended_at(record(superseded_at="one day")) is None
    assert ended_at(record(superseded_at="2026-03-01")) == NOW


def test_an_entity_is_a_record_with_its_name_as_title() -> None:
    record = Entity(name="Priya Sharma", aliases=("Priya", "Priya", "P. Sharma")).to_record()
    assert (record.title, record.kind, record.collection) == ("Priya Sharma", "person", "entities")
    assert aliases_of(record) == ("Priya", "P. Sharma")
    assert Entity(name="Goa", kind="place").id != Entity(name="Goa").id
    assert aliases_of(Record(id="r", text="", title="Goa")) is None


def test_a_fact_ends_the_facts_it_supersedes() -> None:
    old = lives("Delhi", NOW - timedelta(days=900))
    new = lives("Goa", NOW, supersedes=(old.id,))
    assert ends(end_superseded_facts([new], [old.to_record()], NOW)) == {"Delhi": NOW, "Goa": None}


def test_a_fact_ends_another_of_the_same_relation_only_with_same_relation() -> None:
    old = lives("Delhi", NOW - timedelta(days=900)).to_record()
    assert ends(end_superseded_facts([lives("Goa", NOW)], [old], NOW)) == {"Goa": None}
    assert ends(end_superseded_facts([lives("Goa", NOW)], [old], NOW, same_relation=True)) == {
        "Delhi": NOW,
        "Goa": None,
    }


def test_a_late_fact_with_earlier_validity_is_history_at_once() -> None:
    current = lives("Goa", NOW).to_record()
    late = lives("Delhi", NOW - timedelta(days=900))
    assert ends(end_superseded_facts([late], [current], NOW, same_relation=True)) == {"Delhi": NOW}


def test_facts_of_one_batch_end_each_other_in_order_of_validity() -> None:
    places = [
        lives("Goa", NOW),
        lives("Delhi", NOW - timedelta(days=2)),
        lives("Pune", NOW - timedelta(days=1)),
    ]
    assert ends(end_superseded_facts(places, [], NOW, same_relation=True)) == {
        "Delhi": NOW - timedelta(days=1),
        "Pune": NOW,
        "Goa": None,
    }


def test_facts_of_another_tenant_are_not_ended() -> None:
    old = lives("Delhi", NOW - timedelta(days=9), tenant="other").to_record()
    assert ends(end_superseded_facts([lives("Goa", NOW)], [old], NOW, same_relation=True)) == {"Goa": None}
