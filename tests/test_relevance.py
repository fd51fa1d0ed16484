"""Relevance through the whole engine: small databases, every recipe, the cut, and what may not influence it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sennit
from sennit import Caller, Fact, Record
from sennit.results.hits import FIT_RELEVANCE

NOTES = (
    "The ferry leaves at noon.",
    "Knead the dough and bake bread in a hot oven.",
    "The office printer is out of toner.",
    "Our dentist is Dr. Weiss, phone 555-1234.",
    "The wifi password at the cabin is hunter2.",
    "Mum's birthday is on 4 May, and she likes tulips.",
    "Renew the passport before September.",
    "The boiler was serviced by Heinz in January.",
)
ANSWERED = {
    "when does the ferry leave?": 0,
    "how do I bake bread?": 1,
    "dentist phone number": 3,
    "wifi password": 4,
    "when is mum's birthday?": 5,
    "who serviced the boiler?": 7,
}
UNANSWERED = (
    "quantum chromodynamics lattice",
    "who won the world cup?",
    "how do I configure a kubernetes ingress?",
    "asdfgh",
    "best pizza in Naples",
)


def notes(count: int = len(NOTES)) -> list[Record]:
    return [Record(id=f"n{at}", text=text) for at, text in enumerate(NOTES[:count])]


@pytest.fixture
def db() -> Iterator[sennit.Database]:
    with sennit.open(":memory:") as opened:
        opened.add(notes())
        yield opened


@pytest.mark.parametrize("count", [1, 4, 8])
def test_a_few_notes_answer_what_they_can_and_nothing_else(count: int) -> None:
    with sennit.open(":memory:") as db:
        db.add(notes(count))
        for query, at in ANSWERED.items():
            if at < count:
                found = db.search(query)
                assert found.fits, query
                assert found[0].id == f"n{at}"
                assert found[0].relevance >= 0.5
        for query in UNANSWERED:
            found = db.search(query)
            assert not found.fits, query
            assert found, "the nearest records are still shown"
            assert max(hit.relevance for hit in found) < 0.1


@pytest.mark.parametrize("recipe", ["default", "rrf", "keyword", "vector", "memory", "files"])
def test_every_recipe_tells_an_answer_from_the_rest(db: sennit.Database, recipe: str) -> None:
    found = db.search("who serviced the boiler?", recipe=recipe)
    assert found.fits
    assert found[0].id == "n7"
    assert all(0.0 <= hit.relevance <= 1.0 for hit in found)
    assert not db.search("quantum chromodynamics lattice", recipe=recipe).fits


def test_a_fact_has_a_relevance() -> None:
    with sennit.open(":memory:") as db:
        db.add(notes())
        db.add_facts(
            [
                Fact(
                    subject="Rajesh",
                    relation="planning",
                    object="Priya",
                    text="planning vacation to Goa in March",
                )
            ]
        )
        found = db.search("what is Rajesh planning in March?", recipe="memory")
        assert found.fits
        assert found[0].relevance >= FIT_RELEVANCE
        assert "Goa" in found[0].text


def test_without_vectors_the_words_decide() -> None:
    with sennit.open(":memory:", embedding__provider="none") as db:
        db.add(notes())
        assert db.search("who serviced the boiler?").fits
        assert not db.search("boiler plate of a quantum lattice gauge theory").fits


def test_min_relevance_cuts_and_why_says_so(db: sennit.Database) -> None:
    query = "who serviced the boiler?"
    everything = db.search(query)
    cut = db.search(query, min_relevance=0.5)
    assert [hit.id for hit in cut] == [hit.id for hit in everything if hit.relevance >= 0.5] == ["n7"]
    assert cut[0].relevance == everything[0].relevance
    why = db.why(query, everything[-1].id, min_relevance=0.5)
    assert (why.kept, why.stage, why.needed) == (False, "min_relevance", 0.5)
    assert why.number == pytest.approx(everything[-1].relevance)


def test_an_answer_that_min_relevance_emptied_names_the_nearest(db: sennit.Database) -> None:
    found = db.search("quantum chromodynamics lattice", min_relevance=0.5)
    assert not found
    assert not found.fits
    hint = next(one for one in found.hints if one.code == "min_relevance")
    assert "Nothing reaches a relevance of 0.5. The nearest is n" in hint.message


def test_the_relevance_does_not_depend_on_the_limit(db: sennit.Database) -> None:
    query = "who serviced the boiler?"
    few, many = db.search(query, limit=1), db.search(query, limit=8)
    assert few[0].relevance == many[0].relevance


def test_explain_shows_what_it_was_estimated_from(db: sennit.Database) -> None:
    found = db.search("who serviced the boiler?", explain=True)
    shown = found[0].to_dict()["explanation"]
    assert isinstance(shown, dict)
    numbers = shown["relevance"]
    assert isinstance(numbers, dict)
    assert numbers["coverage"] == pytest.approx(1.0)
    assert numbers["relevance"] == found[0].relevance
    vector = next(one for one in shown["sources"] if one["source"] == "vector")
    assert vector["score"] > vector["background"] > 0
    assert vector["share"] == pytest.approx(0.7 * vector["normalised"])


def test_hidden_records_have_no_influence() -> None:
    caller = Caller(clearance="normal", scopes=frozenset({"public"}))
    answers = []
    for hidden in (0, 400):
        with sennit.open(":memory:") as db:
            db.add(notes())
            db.add(
                [
                    Record(id=f"h{at}", text=f"boiler service {at} by Heinz", sensitivity="private")
                    for at in range(hidden)
                ]
            )
            found = db.search("who serviced the boiler?", caller=caller, explain=True)
            answers.append([(hit.id, hit.score, hit.relevance) for hit in found])
    assert answers[0] == answers[1]


def test_the_order_of_writes_and_a_flush_do_not_change_the_answer() -> None:
    records = [Record(id=f"r{at}", text=f"note {at} about {NOTES[at % 8]}") for at in range(700)]
    answers = []
    for order in (records, records[::-1]):
        with sennit.open(":memory:") as db:
            db.add(order[:300])
            db.admin.flush()
            db.add(order[300:])
            answers.append(
                [(hit.id, hit.score, hit.relevance) for hit in db.search("who serviced the boiler?")]
            )
            db.admin.optimise()
            answers.append(
                [(hit.id, hit.score, hit.relevance) for hit in db.search("who serviced the boiler?")]
            )
    assert all(answer == answers[0] for answer in answers)
