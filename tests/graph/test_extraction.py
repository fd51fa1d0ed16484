"""Facts that a text states outright."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sennit.facts import Fact
from sennit.graph.extraction import (
    MAX_FACTS_PER_RECORD,
    extract_stated_facts,
    read_conversations,
    read_statements,
    supersedes_former,
)
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


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        (
            "I work at Acme as a data analyst.",
            [("Nadia", "works at", "Acme"), ("Nadia", "works as", "data analyst")],
        ),
        ("i’m a physio so that's funny", [("Nadia", "works as", "physio")]),
        ("I am a primary school teacher", [("Nadia", "works as", "primary school teacher")]),
        (
            "I'm allergic to nuts, cats and pollen.",
            [
                ("Nadia", "allergic to", "nuts"),
                ("Nadia", "allergic to", "cats"),
                ("Nadia", "allergic to", "pollen"),
            ],
        ),
        (
            "i've got two kids: Samir and Lina",
            [("Nadia", "child", "Samir"), ("Nadia", "child", "Lina"), ("Nadia", "has", "two kids")],
        ),
        ("my flat is on the third floor", [("Nadia", "flat", "on the third floor")]),
        ("we live on the 3rd floor, sadly", [("Nadia", "lives on", "3rd floor")]),
        ("We got married on 12 june", [("Nadia", "got married", "12 June")]),
        ("just call me Sam", [("Nadia", "goes by", "Sam")]),
        ("I prefer tea over coffee anyway, so I win", [("Nadia", "prefers", "tea over coffee")]),
        ("I quit smoking three weeks ago.", [("Nadia", "quit", "smoking")]),
        (
            "my brother Tom is a nurse in Leeds",
            [("Nadia", "brother", "Tom"), ("Tom", "works as", "nurse")],
        ),
        ("My brother is a nurse.", [("Nadia's brother", "works as", "nurse")]),
        ("Viktor doesn't eat gluten.", [("Viktor", "does not eat", "gluten")]),
        ("Clara moved to Lyon in spring.", [("Clara", "lives in", "Lyon")]),
        ("i moved to porto last week", [("Nadia", "lives in", "Porto")]),
        ("Viktor is my boss.", [("Nadia", "boss", "Viktor")]),
        ("my boss is called Dr Huber", [("Nadia", "boss", "Dr Huber")]),
        ("my mum’s birthday is 9 july", [("Nadia's mum", "birthday", "9 July")]),
        ("Actually the beta is on 18 May, not 4 May.", [("Nadia", "date of beta", "18 May")]),
        ("we adopted a greyhound. she’s called Juno", [("Nadia", "has a dog", "Juno")]),
        ("I start my new job at the water board on Monday", [("Nadia", "works at", "water board")]),
        ("moved to Ghent last weekend. nothing works", [("Nadia", "lives in", "Ghent")]),
        ("my favourite book is “Dune” tbh", [("Nadia", "favourite book", "Dune")]),
        ("Lots of news! I moved to York, it was 29. I speak German.", [("Nadia", "lives in", "York"), ("Nadia", "speaks", "German")]),
    ],
)  # fmt: skip
def test_plain_facts_are_read_as_people_type_them(text: str, facts: list[tuple[str, str, str]]) -> None:
    assert read(text, metadata={"speaker": "Nadia"}) == facts


@pytest.mark.parametrize(
    "text",
    [
        "I might move to Porto",
        "if I worked at Acme I'd cry",
        "did i tell you i live in Rome",
        'He said: "No. I live in Rome now. I work at Fiat."',
        "“I live in Rome”, she said",
        "we're thinking about moving to Ghent next year",
        "We are moving to Ghent in October",
        "I dreamed I live in Rome, and I work at Nasa",
        "I live in Rome, just kidding",
        "I once lived in Paris",
        "She moved to Lyon",
        "Tom said he moved to Lyon",
        "i moved to the kitchen",
        "i live in fear",
        "I'm a mess",
        "I'm a big fan",
        "I am from Monday on holiday",
        "Sounds like a plan!",
        "We're like a family",
        "Unconditional love is so important",
        "call me when you are there",
        "I have two minutes",
        "my brother is a pain",
        "My flat is small",
        "I quit the game",
        "we're in coach 261, beds 43 and 45",
        "I got a letter called Reminder",
        "Someone called Marek starts in July",
        "> I live in Rome",
    ],
)
def test_what_is_supposed_quoted_or_meant_otherwise_is_no_fact(text: str) -> None:
    assert read(text, metadata={"speaker": "Nadia"}) == []


@pytest.mark.parametrize(
    ("text", "relation", "ended"),
    [
        ("I left Corvin Bank.", "works at", "Corvin Bank"),
        ("I left Helios for good, no more night shifts", "works at", "Helios"),
        ("I no longer work at Corvin Bank", "works at", "Corvin Bank"),
        ("i dont work at Corvin Bank anymore, since monday", "works at", "Corvin Bank"),
        ("I quit my job!", "works at", ""),
        ("we broke up", "girlfriend", ""),
        ("I don't eat fish any more", "likes", "fish"),
        ("sold the car", "owns", "car"),
        ("I used to play tennis", "plays", "tennis"),
        ("I stopped playing chess", "plays", "chess"),
        ("I'm not vegetarian any more", "is a", "vegetarian"),
        ("I moved out of Leeds", "lives in", "Leeds"),
    ],
)
def test_what_is_over_is_no_fact_but_the_end_of_one(text: str, relation: str, ended: str) -> None:
    record = Record(
        id="r", text=text, timestamp=datetime(2026, 5, 3, tzinfo=UTC), metadata={"speaker": "Nadia"}
    )
    facts, (ending,) = read_statements(record)
    assert facts == []
    assert relation in ending.relations
    assert (ending.subject, ending.object, ending.at) == ("Nadia", ended, record.timestamp)


@pytest.mark.parametrize(
    "text", ["I left Acme at five today", "we broke up the log", "I left early", "I might quit my job"]
)
def test_what_only_sounds_like_an_end_ends_nothing(text: str) -> None:
    record = Record(
        id="r", text=text, timestamp=datetime(2026, 5, 3, tzinfo=UTC), metadata={"speaker": "Nadia"}
    )
    assert read_statements(record).endings == []


def test_a_correction_changes_the_last_fact_with_the_wrong_value() -> None:
    def turn(number: int, text: str) -> Record:
        when = datetime(2026, 5, number, tzinfo=UTC)
        return Record(id=f"t{number}", text=text, parent="s", timestamp=when, metadata={"speaker": "Nadia"})

    said = [
        turn(1, "My sister Clara's birthday is 4 May."),
        turn(2, "I live in Porto."),
        turn(3, "Actually it's 5 May, not 4"),
    ]
    facts = read_conversations(reversed(said)).facts
    assert facts[-1].line == "Clara -> 5 May: birthday is 5 May"
    assert facts[-1].timestamp == datetime(2026, 5, 3, tzinfo=UTC)
    assert read_conversations([turn(3, "Actually it's 5 May, not 4")]).facts == []
