"""Facts that a text states outright."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.facts import Fact
from sennit.graph.extraction import MAX_FACTS_PER_RECORD, extract_stated_facts, supersedes_former
from sennit.records import Record


def read(text: str, title: str = "", **fields: object) -> list[tuple[str, str, str]]:
    found = extract_stated_facts(Record(id="r", text=text, title=title, **fields))  # type: ignore[arg-type]
    return [(fact.subject, fact.relation, fact.object) for fact in found]


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("Priya works at Acme Corp.", ("Priya", "works at", "Acme Corp")),
        ("Anna Maria lives in São Paulo now.", ("Anna Maria", "lives in", "São Paulo")),
        ("Jaws was directed by Steven Spielberg in 1975.", ("Jaws", "directed by", "Steven Spielberg")),
        ("Paris is the capital of France.", ("Paris", "capital of", "France")),
        ("Ludwig van Beethoven was born in Bonn.", ("Ludwig van Beethoven", "born in", "Bonn")),
        ("Kafka is a distributed log that many use.", ("Kafka", "is", "distributed log")),
        ("We met.\nTom reports to Priya", ("Tom", "reports to", "Priya")),
    ],
)
def test_plain_statements_become_facts(text: str, fact: tuple[str, str, str]) -> None:
    assert read(text) == [fact]


@pytest.mark.parametrize(
    "text",
    [
        "Does Priya work at Acme?",
        "Priya works at Acme?",
        "Priya never works at Acme.",
        "Priya does not work at Acme.",
        "If Priya works at Acme, we win.",
        "She works at Acme.",
        "The team works at Acme.",
        "This is a test.",
        "Time is a river.",
        "I work at Acme.",
        "it works at all",
        "",
    ],
)
def test_questions_negations_conditions_and_unnamed_subjects_give_no_facts(text: str) -> None:
    assert read(text) == []


def test_i_means_the_speaker() -> None:
    assert read("I work at Acme.", metadata={"speaker": "Rajesh"}) == [("Rajesh", "works at", "Acme")]


def test_links_of_a_page_are_facts_about_it() -> None:
    text = "See [Setup](setup.md), [[Deployment|deploying]], ![image](x.png) and [above](#top)."
    assert read(text, title="Guide") == [
        ("Guide", "links to", "Setup"),
        ("Guide", "links to", "Deployment"),
    ]
    assert read(text) == []


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Priya moved to Goa on 2026-03-01.", datetime(2026, 3, 1, tzinfo=UTC)),
        ("Priya moved to Goa on 1 March 2026.", datetime(2026, 3, 1, tzinfo=UTC)),
        ("Priya moved to Goa on March 1, 2026.", datetime(2026, 3, 1, tzinfo=UTC)),
        ("Priya moved to Goa in March 2026.", datetime(2026, 3, 1, tzinfo=UTC)),
        ("Priya moved to Goa on 2026-02-31.", datetime(2020, 1, 1, tzinfo=UTC)),
        ("Priya moved to Goa.", datetime(2020, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_fact_is_valid_from_its_own_date_or_that_of_its_record(text: str, day: datetime) -> None:
    record = Record(id="r", text=text, timestamp=datetime(2020, 1, 1, tzinfo=UTC))
    assert [fact.timestamp for fact in extract_stated_facts(record)] == [day]


def test_a_fact_inherits_source_and_privacy_from_its_record() -> None:
    record = Record(
        id="r", text="Priya works at Acme.", sensitivity="private", scope="me", tenant="t", metadata={"a": 1}
    )
    (fact,) = extract_stated_facts(record)
    assert (fact.sources, fact.sensitivity, fact.scope, fact.tenant) == (("r",), "private", "me", "t")
    assert fact.line == "Priya -> Acme: works at Acme"
    assert fact.weight < 1


def test_no_facts_are_extracted_from_a_fact() -> None:
    assert extract_stated_facts(Fact(subject="Priya", relation="works at", object="Acme").to_record()) == []


@given(
    st.text(max_size=400)
    | st.lists(st.sampled_from("Priya Tom works at is a . ? I [x](y) \n".split()), max_size=40).map(" ".join)
)
def test_extraction_never_fails_and_is_deterministic(text: str) -> None:
    record = Record(id="r", text=text, title="Page")
    found = extract_stated_facts(record)
    assert len(found) <= MAX_FACTS_PER_RECORD
    assert len({fact.id for fact in found}) == len(found)
    assert found == extract_stated_facts(record)


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("I moved to Porto.", ("Nadia", "lives in", "Porto")),
        ("Big news: I moved to Porto last weekend.", ("Nadia", "lives in", "Porto")),
        ("Yes, I work at Corvin Bank, in the fraud team.", ("Nadia", "works at", "Corvin Bank")),
        ("From September I work for Lantern.", ("Nadia", "works at", "Lantern")),
        ("I left the studio and I work for Radio Bremen now.", ("Nadia", "works at", "Radio Bremen")),
        ("My birthday is on the 3rd of June.", ("Nadia", "birthday", "3rd of June")),
        ("I prefer tea in the morning, by the way.", ("Nadia", "prefers", "tea in the morning")),
        ("Rohan is allergic to shellfish, which is sad.", ("Rohan", "allergic to", "shellfish")),
        ("I'm allergic to walnuts.", ("Nadia", "allergic to", "walnuts")),
        ("We adopted a cat called Miso today!", ("Nadia", "has a cat", "Miso")),
        ("We got a small dog named Biscuit from the shelter.", ("Nadia", "has a dog", "Biscuit")),
        ("My favorite restaurant is Adega Rita these days.", ("Nadia", "favourite restaurant", "Adega Rita")),
        ("Yeah, I play clarinet!", ("Nadia", "plays", "clarinet")),
        ("I love hiking, but it has been ages.", ("Nadia", "likes", "hiking")),
        ("I went there with my colleague Rob.", ("Nadia", "colleague", "Rob")),
        ("Nadia: I moved to Porto.", ("Nadia", "lives in", "Porto")),
    ],
)
def test_what_a_speaker_states_plainly_is_a_fact(text: str, fact: tuple[str, str, str]) -> None:
    assert read(text, metadata={"speaker": "Nadia"}) == [fact]


def test_a_birthday_in_the_family_names_the_person_and_the_relation() -> None:
    assert read("My sister Clara's birthday is 4 May.", metadata={"speaker": "Nadia"}) == [
        ("Clara", "birthday", "4 May"),
        ("Nadia", "sister", "Clara"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "If I moved to Porto, I would cry.",
        "I never lived in Porto.",
        "I don't live in Porto.",
        "Maybe I work at Acme next year.",
        "She said I work at Acme.",
        "I wish I lived in Porto.",
        "Did I tell you that I moved to Porto?",
        "I used to think I live in Paradise.",
        "I love it!",
        "I love your painting.",
        "I like to think so.",
        "Painting is a great way to relax.",
        "I moved to the left.",
        "I work for Time.",
    ],
)
def test_what_is_not_stated_outright_is_no_fact(text: str) -> None:
    assert read(text, metadata={"speaker": "Nadia"}) == []


def test_a_fact_says_how_sure_its_rule_is_and_whether_it_replaces_the_former() -> None:
    record = Record(id="r", text="I moved to Porto. I prefer tea.", metadata={"speaker": "Nadia"})
    moved, prefers = extract_stated_facts(record)
    assert moved.metadata["confidence"] == 0.9
    assert prefers.metadata["confidence"] == 0.7
    assert supersedes_former(moved)
    assert not supersedes_former(prefers)
