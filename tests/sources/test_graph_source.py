"""The graph source: facts about the entities that a query names."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

import sennit
from sennit import Database, Record
from sennit.facts import Entity, Fact
from sennit.graph.traversal import WalkOptions
from sennit.privacy import OWNER, Caller
from sennit.ranking.fusion import Weighted
from sennit.recipes import Recipe, SourceConfig
from sennit.sources.graph import GraphSource
from sennit.stores.embedded.roles import LocalGraph, LocalKeyword, LocalVector

ONLY = Recipe(name="graph", sources=(SourceConfig(source="graph"),), fusion=Weighted({"graph": 1.0}, "none"))


def fact(subject: str, object_: str, weight: float = 1.0, **fields: object) -> Record:
    return Fact(
        subject=subject,
        relation="knows",
        object=object_,
        weight=weight,
        **{"id": f"{subject}-{object_}", **fields},  # type: ignore[arg-type]
    ).to_record()


@pytest.fixture
def db() -> Iterator[Database]:
    with sennit.open(":memory:") as opened:
        opened.add(
            [
                fact("Rajesh", "Priya", 2.0, text="planning vacation to Goa in March"),
                fact("Priya", "Anna", 1.0),
                fact("Anna", "Zoë", 1.0),
                Record(id="note", text="Priya said hello to Rajesh."),
            ]
        )
        yield opened


def found(db: Database, query: str, recipe: Recipe = ONLY, **asked: object) -> list[str]:
    result = db.search(query, recipe=recipe, **asked)  # type: ignore[arg-type]
    assert result.degraded == ()
    return [hit.id for hit in result]


def test_facts_of_a_named_entity_rank_by_weight_before_those_one_hop_away(db: Database) -> None:
    assert found(db, "What did I tell Priya about vacation?") == ["Rajesh-Priya", "Priya-Anna", "Anna-Zoë"]


def test_fact_has_its_prompt_text(db: Database) -> None:
    best = db.search("What did I tell Priya about vacation?", recipe=ONLY)[0]
    assert best.text == "Rajesh -> Priya: planning vacation to Goa in March"


@pytest.mark.parametrize("query", ["zoe's friends", "ZOË", "who knows Zoë?", "tell me of Zoë’s plans"])
def test_names_match_without_case_accents_and_possessives(db: Database, query: str) -> None:
    assert found(db, query) == ["Anna-Zoë", "Priya-Anna"]


def test_an_unknown_name_finds_nothing(db: Database) -> None:
    assert found(db, "What about Wilhelmina and the weather?") == []


def test_each_fact_has_a_match_reason(db: Database) -> None:
    hits = db.search("what about rajesh", recipe=ONLY, explain=True)
    notes = [hit.explanation.source_scores[0].match_reason for hit in hits if hit.explanation]
    assert notes == ["about *rajesh*, which you named", "2 steps from *rajesh*, which you named"]


def test_entity_has_the_facts_of_all_its_names(db: Database) -> None:
    db.add(
        [
            Entity(name="Priya", aliases=("Priya S.", "Pri"), id="e").to_record(),
            fact("Priya S.", "Pune", 3.0),
        ]
    )
    assert found(db, "how is pri doing", limit=3) == ["Priya S.-Pune", "Rajesh-Priya", "Priya-Anna"]
    assert "Priya S.-Pune" in found(db, "what of Anna?")


def test_superseded_facts_leave_the_results_and_stay_in_the_database(db: Database) -> None:
    db.add([fact("Rajesh", "Priya", 2.0, superseded_at="2020-01-01")])
    assert found(db, "Rajesh") == []
    assert db.get("Rajesh-Priya") is not None
    past = GraphSource(
        LocalGraph(),
        LocalKeyword(),
        LocalVector(),
        WalkOptions(hops=1, as_of=datetime(2019, 1, 1, tzinfo=UTC)),
    )
    recipe = Recipe(
        name="past", sources=(SourceConfig(source="past"),), fusion=Weighted({"past": 1.0}, "none")
    )
    with sennit.open(":memory:", sources={"past": past}) as then:
        then.add(
            [
                fact("Rajesh", "Priya", superseded_at="2020-01-01"),
                fact("Rajesh", "Anna", timestamp="2021-01-01"),
            ]
        )
        assert found(then, "Rajesh", recipe) == ["Rajesh-Priya"]
        assert found(then, "Rajesh") == ["Rajesh-Anna"]


def test_filters_and_privacy_apply_to_every_hop(db: Database) -> None:
    db.add([fact("Priya", "Anna", 1.0, sensitivity="private", metadata={"topic": "work"})])
    assert found(db, "Priya", caller=OWNER) == ["Rajesh-Priya", "Priya-Anna", "Anna-Zoë"]
    assert found(db, "Priya", caller=Caller()) == ["Rajesh-Priya"]
    assert found(db, "Priya", caller=OWNER, filters={"topic": "work"}) == ["Priya-Anna"]


def test_a_hidden_longer_name_does_not_hide_a_shorter_one(db: Database) -> None:
    db.add([fact("Anna Secret", "Rajesh", sensitivity="private")])
    assert found(db, "What of Anna Secret?", caller=Caller(), limit=1) == ["Anna-Zoë"]


def test_removed_and_updated_facts_take_effect(db: Database) -> None:
    db.remove(["Priya-Anna"])
    assert found(db, "Priya") == ["Rajesh-Priya"]
    db.add([fact("Rajesh", "Tom", id="Rajesh-Priya")])
    assert found(db, "Priya") == []
    assert found(db, "Tom") == ["Rajesh-Priya"]


def test_limit_applies_to_a_hub_and_prefers_newer_facts() -> None:
    with sennit.open(":memory:", embedding__provider="none") as db:
        db.add([fact("Hub", f"n{at:03}") for at in range(500)])
        assert found(db, "what of the hub", limit=3) == ["Hub-n497", "Hub-n498", "Hub-n499"]


def test_only_facts_are_found(db: Database) -> None:
    db.add([Record(id="p", title="Priya", text="Priya is a person.")])
    assert "p" not in found(db, "Priya")
    assert "note" not in found(db, "Priya")
