"""The link source: records that a query names, and records that these mention."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sennit
from sennit import Database, Record
from sennit.evaluation.datasets import read_collection
from sennit.evaluation.metrics import compute_metrics
from sennit.facts import Entity
from sennit.graph.entity_linking import LinkOptions
from sennit.privacy import OWNER, Caller
from sennit.ranking.fusion import Weighted
from sennit.ranking.rescore import Rescore
from sennit.recipes import Recipe, SourceConfig
from sennit.recipes.recipe import CandidateCount
from sennit.sources.links import LinkSource

ONLY = Recipe(
    name="links",
    sources=(SourceConfig(source="links", candidates=CandidateCount(times=5)),),
    fusion=Weighted({"links": 1.0}, "none"),
)
PLAIN = Recipe(
    name="plain",
    sources=(
        SourceConfig(source="keyword", candidates=CandidateCount(at_least=50)),
        SourceConfig(source="vector", candidates=CandidateCount(at_least=50)),
    ),
    fusion=Weighted({"keyword": 0.3, "vector": 0.7}, {"keyword": "max", "vector": "none"}),
    stages=(Rescore(),),
)
LINKED = Recipe(
    name="linked",
    sources=(*PLAIN.sources, SourceConfig(source="links", candidates=CandidateCount(at_least=50))),
    fusion=Weighted(
        {"keyword": 0.3, "vector": 0.7, "links": 1.0}, {"keyword": "max", "vector": "none", "links": "none"}
    ),
    stages=(Rescore(),),
)

JAWS = Record(
    id="jaws", title="Jaws (film)", text="Jaws is a thriller. It was directed by Steven Spielberg in 1975."
)
SPIELBERG = Record(id="steven", title="Steven Spielberg", text="An American who was born in Cincinnati.")
CINCINNATI = Record(id="city", title="Cincinnati", text="A city in Ohio, on a river.")
ALIEN = Record(id="alien", title="Alien (film)", text="Alien was directed by Ridley Scott.")


@pytest.fixture
def db() -> Iterator[Database]:
    with sennit.open(":memory:") as opened:
        opened.add([JAWS, SPIELBERG, CINCINNATI, ALIEN])
        yield opened


def found(db: Database, query: str, **asked: object) -> list[str]:
    result = db.search(query, recipe=ONLY, **asked)  # type: ignore[arg-type]
    assert result.degraded == ()
    return [hit.id for hit in result]


def test_a_named_record_comes_first_and_then_what_it_mentions(db: Database) -> None:
    assert found(db, "Who directed Jaws?") == ["jaws", "steven"]


def test_each_link_has_a_match_reason(db: Database) -> None:
    hits = db.search("Who directed Jaws?", recipe=ONLY, explain=True)
    notes = [hit.explanation.source_scores[0].match_reason for hit in hits if hit.explanation]
    assert notes == ["you named *Jaws*", "*Jaws (film)*, which you named, mentions *Steven Spielberg*"]


def test_the_best_keyword_hits_are_followed_too(db: Database) -> None:
    hits = db.search("the thriller of 1975", recipe=ONLY, explain=True)
    assert [hit.id for hit in hits] == ["steven"]
    assert hits[0].explanation is not None
    assert hits[0].explanation.source_scores[0].match_reason == "*Jaws (film)* mentions *Steven Spielberg*"


def test_a_new_title_links_old_records_and_a_removed_one_unlinks_them(db: Database) -> None:
    asked = "Who made Alien?"
    assert found(db, asked) == ["alien"]
    db.add([Record(id="scott", title="Ridley Scott", text="An English director.")])
    assert found(db, asked) == ["alien", "scott"]
    db.remove(["scott"])
    assert found(db, asked) == ["alien"]
    db.add([Record(id="steven", title="Ridley Scott", text="An English director.")])
    assert found(db, asked) == ["alien", "steven"]


def test_an_alias_is_as_good_as_a_title(db: Database) -> None:
    db.add(
        [
            Entity(
                name="Priya Sharma", aliases=("Priya",), id="priya", text="She loves Cincinnati."
            ).to_record()
        ]
    )
    assert found(db, "what does priya love") == ["priya", "city"]


def test_filter_applies_to_results_and_to_seeds(db: Database) -> None:
    db.add([Record(id="jaws", title=JAWS.title, text=JAWS.text, collection="films")])
    assert found(db, "Who directed Jaws?", filters={"collection": "films"}) == ["jaws"]
    assert found(db, "Who directed Jaws?", filters={"collection": "default"}) == []


def test_hidden_record_is_neither_result_nor_seed(db: Database) -> None:
    db.add([Record(id="jaws", title=JAWS.title, text=JAWS.text, sensitivity="private")])
    assert found(db, "Who directed Jaws?", caller=OWNER) == ["jaws", "steven"]
    assert found(db, "Who directed Jaws?", caller=Caller()) == []
    db.add([JAWS, Record(id="steven", title=SPIELBERG.title, text=SPIELBERG.text, sensitivity="private")])
    assert found(db, "Who directed Jaws?", caller=Caller()) == ["jaws"]


def test_a_hidden_longer_name_does_not_hide_a_shorter_one(db: Database) -> None:
    db.add([Record(id="x", title="Cincinnati Kings", text="A club.", sensitivity="private")])
    assert found(db, "Where do the Cincinnati Kings play?", caller=Caller()) == ["city"]


def test_without_names_nothing_changes() -> None:
    texts = ("Priya said that Goa is lovely", "the river floods the valley", "bread rises because of yeast")
    with sennit.open(":memory:") as db:
        db.add([Record(id=str(at), text=text) for at, text in enumerate(texts)])
        for query in ("Where is Goa?", "why does bread rise"):
            plain, linked = (db.search(query, recipe=recipe) for recipe in (PLAIN, LINKED))
            assert [(hit.id, hit.score) for hit in plain] == [(hit.id, hit.score) for hit in linked]


def test_candidate_count_is_never_exceeded_and_ties_are_ordered_by_id() -> None:
    with sennit.open(":memory:") as db:
        db.add([Record(id=f"r{at:02}", title="Mount Doom", text="A volcano.") for at in range(30)])
        assert found(db, "Who climbed Mount Doom?", limit=4) == ["r00", "r01", "r02", "r03"]


def test_source_uses_its_own_settings() -> None:
    own = {"near": lambda backend: LinkSource(backend.graph, backend.keyword, LinkOptions(seeds=0))}
    recipe = Recipe(
        name="near", sources=(SourceConfig(source="near"),), fusion=Weighted({"near": 1.0}, "none")
    )
    with sennit.open(":memory:", sources=own) as db:
        db.add([JAWS, SPIELBERG])
        assert [hit.id for hit in db.search("the thriller of 1975", recipe=recipe)] == []
        assert [hit.id for hit in db.search("who made Jaws", recipe=recipe)] == ["jaws", "steven"]


@pytest.mark.parametrize(
    ("name", "recall", "queries"),
    [("2wiki_dev", 0.95, 150), ("musique_train", 0.63, 100), ("cranfield", 0.0, 100)],
)
def test_links_improve_multi_hop_queries_without_harm(
    shared_data: object, name: str, recall: float, queries: int
) -> None:
    collection = read_collection(shared_data / name).with_first_queries(queries)  # type: ignore[operator]
    with sennit.open(":memory:") as db:
        for at in range(0, len(collection.documents), 1000):
            db.add(collection.documents[at : at + 1000])
        means = []
        for recipe in (PLAIN, LINKED):
            ranked = {
                query.id: collection.ranking(query, db.search(query.text, recipe=recipe, limit=10))
                for query in collection.queries
            }
            measured = compute_metrics(collection.judgements, ranked)
            means.append(
                sum(measured[query.id]["R@5"] for query in collection.queries) / len(collection.queries)
            )
    assert means[1] >= max(recall, means[0] - 0.002)
