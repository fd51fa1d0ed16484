"""The trace has every candidate with its outcome, and `why` shows what decided."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import sennit
from sennit import Database, Recipe, Record
from sennit.analysis import ANALYSIS_ID
from sennit.errors import NotFound
from sennit.ranking.fusion import RRF, Weighted
from sennit.recipes import CandidateCount, SourceConfig

RECIPES = ("default", "rrf", "keyword", "vector")


@pytest.fixture(scope="module")
def db() -> Iterator[Database]:
    with sennit.open(":memory:", privacy__open=True) as opened:
        opened.add(
            Record(
                id=f"h{n:02}",
                text=f"harbour {'lights ' * (n % 4)}at berth {n}",
                title="port" if n % 3 == 0 else "",
                collection="ships" if n % 2 else "notes",
                metadata={"n": n},
            )
            for n in range(40)
        )
        opened.add(
            [
                Record(id="bread", text="sourdough bread rises overnight", collection="kitchen"),
                Record(id="oven", text="a stone oven bakes at 300 degrees", collection="kitchen"),
                Record(id="empty", text=""),
            ]
        )
        yield opened


@pytest.mark.parametrize("recipe", RECIPES)
def test_shares_sum_to_the_score(db: Database, recipe: str) -> None:
    result = db.search("harbour lights", recipe=recipe, explain=True)
    assert len(result) == 10
    for hit in result:
        assert hit.explanation is not None
        assert hit.explanation.score == hit.score
        assert sum(source_score.share for source_score in hit.explanation.source_scores) == pytest.approx(
            hit.score
        )
        for source_score in hit.explanation.source_scores:
            assert (source_score.rank is None) == (source_score.score is None)


@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("limit", [1, 7, 100])
def test_explain_does_not_change_the_result(db: Database, recipe: str, limit: int) -> None:
    for query in ("harbour lights", "bread", "nothing like it", ""):
        plain = db.search(query, recipe=recipe, limit=limit, filters="not collection = 'ships'")
        told = db.search(query, recipe=recipe, limit=limit, filters="not collection = 'ships'", explain=True)
        assert [(hit.id, hit.score, hit.rank) for hit in plain] == [(h.id, h.score, h.rank) for h in told]
        assert plain.trace is None
        assert all(hit.explanation is None for hit in plain)


def test_every_candidate_is_in_the_trace_with_its_outcome(db: Database) -> None:
    result = db.search("harbour lights", limit=5, explain=True)
    assert result.trace is not None
    document = result.trace.to_dict()
    candidates = document["candidates"]
    assert isinstance(candidates, list)
    found = {key for source in result.trace.sources for key in source.keys.tolist()}
    assert len(candidates) == len(found)
    kept = [entry["id"] for entry in candidates if entry["kept"]]
    assert sorted(kept) == sorted(hit.id for hit in result)
    for entry in candidates:
        if not entry["kept"]:
            assert entry["stage"] == "limit"
            assert entry["number"] <= entry["needed"] == result[-1].score
            assert "the limit is 5" in entry["reason"]


def test_trace_is_json_with_the_state_of_the_search(db: Database) -> None:
    result = db.search("harbour lights", limit=3, filters="n < 30", explain=True)
    document = json.loads(json.dumps(result.to_dict()))
    trace = document["trace"]
    assert trace["query"] == "harbour lights"
    assert trace["limit"] == 3
    assert trace["filter"] == "n < 30"
    assert trace["recipe"]["name"] == "default"
    assert trace["recipe"]["bm25"] == {"k1": 1.2, "b": 0.4, "text_weight": 1.0, "title_weight": 2.0}
    assert [source["source"] for source in trace["recipe"]["sources"]] == ["keyword", "vector", "links"]
    assert trace["recipe"]["fusion"]
    assert trace["state"]["analysis"] == ANALYSIS_ID
    assert trace["state"]["model"].startswith("static:")
    assert trace["state"]["contract"] >= 1
    assert trace["state"]["change"] >= 43
    assert {source["name"] for source in trace["sources"]} == {"keyword", "vector", "links"}
    assert all(source["milliseconds"] >= 0 for source in trace["sources"])
    before = trace["state"]["change"]
    with sennit.open(":memory:", privacy__open=True) as other:
        other.add([Record(id="a", text="harbour")])
        first = other.search("harbour", explain=True).trace
        other.remove(["a"])
        second = other.search("harbour", explain=True).trace
        assert first is not None
        assert second is not None
        assert before != first.state["change"] != second.state["change"]


# Why


def test_why_shows_the_shares_of_a_kept_record(db: Database) -> None:
    result = db.search("harbour lights")
    for hit in result:
        why = db.why("harbour lights", hit.id)
        assert why.kept
        assert (why.stage, why.rank, why.number) == ("result", hit.rank, hit.score)
        assert why.needed == result[-1].score
        assert f"rank {hit.rank} of 10" in why.reason
        assert "keyword" in why.reason
        assert "vector" in why.reason
        json.dumps(why.to_dict())


def test_why_shows_the_score_needed_beyond_the_limit(db: Database) -> None:
    result = db.search("harbour lights", limit=20)
    why = db.why("harbour lights", result[12].id, limit=10)
    assert not why.kept
    assert why.stage == "limit"
    assert why.number == result[12].score
    assert why.needed == result[9].score
    assert "rank 13" in why.reason
    assert why.source_scores


def test_why_names_the_filter_that_excludes_a_record(db: Database) -> None:
    why = db.why("harbour lights", "h03", filters="collection = 'notes'")
    assert (why.kept, why.stage) == (False, "filter")
    assert 'collection = "notes"' in why.reason


def test_why_names_the_collections_of_a_source(db: Database) -> None:
    recipe = Recipe(
        name="ships-only",
        sources=(
            SourceConfig(source="keyword", collections=("ships",)),
            SourceConfig(source="vector", collections=("ships", "kitchen")),
        ),
        fusion=RRF(k=60, first_rank=1),
    )
    assert {hit.collection for hit in db.search("harbour bread", recipe=recipe, limit=50)} == {
        "ships",
        "kitchen",
    }
    why = db.why("harbour", "h02", recipe=recipe)
    assert not why.kept
    assert "keyword searches only ships" in why.reason
    assert "vector searches only ships, kitchen" in why.reason


def test_why_shows_the_score_of_the_last_candidate(db: Database) -> None:
    recipe = Recipe(
        name="shallow",
        sources=(SourceConfig(source="keyword", candidates=CandidateCount(at_least=4)),),
        fusion=RRF(k=60, first_rank=1),
    )
    best = [hit.id for hit in db.search("harbour lights", recipe="keyword", limit=40)]
    why = db.why("harbour lights", best[-1], recipe=recipe, limit=2)
    assert (why.kept, why.stage) == (False, "source:keyword")
    assert why.number is not None
    assert why.needed is not None
    assert why.number < why.needed
    assert "last of its 4 candidates" in why.reason


def test_why_says_that_no_word_matches(db: Database) -> None:
    why = db.why("harbour lights", "bread", recipe="keyword")
    assert (why.kept, why.stage, why.number) == (False, "source:keyword", 0.0)
    assert "no word of the query" in why.reason


def test_why_shows_the_threshold(db: Database) -> None:
    recipe = Recipe(
        name="strict",
        sources=(SourceConfig(source="vector", min_score=0.99),),
        fusion=Weighted({"vector": 1.0}, "none"),
    )
    assert len(db.search("stone oven", recipe=recipe)) == 0
    why = db.why("stone oven", "oven", recipe=recipe)
    assert not why.kept
    assert why.needed == 0.99
    assert why.number is not None
    assert why.number < 0.99
    assert "below its threshold" in why.reason


def test_why_says_that_a_record_has_no_vector(db: Database) -> None:
    why = db.why("stone oven", "empty", recipe="vector")
    assert not why.kept
    assert "does not have it" in why.reason


def test_an_unknown_record_is_not_found(db: Database) -> None:
    with pytest.raises(NotFound, match="nobody"):
        db.why("harbour", "nobody")


def test_why_agrees_with_the_search_for_every_record(db: Database) -> None:
    for recipe in RECIPES:
        kept = {hit.id for hit in db.search("bread in the harbour", recipe=recipe, limit=5)}
        for record in db:
            why = db.why("bread in the harbour", record.id, recipe=recipe, limit=5)
            assert why.kept == (record.id in kept)
            assert why.reason


def test_why_reports_degraded_sources() -> None:
    with sennit.open(":memory:", embedding__provider="none") as db:
        db.add([Record(id="a", text="harbour"), Record(id="b", text="bread")])
        assert db.why("harbour", "a").degraded[0].source == "vector"
        why = db.why("harbour", "b")
        assert not why.kept
        assert "vector did not answer" in why.reason


def test_the_limit_comes_from_the_caller_the_recipe_or_the_settings() -> None:
    with sennit.open(":memory:", search__limit=4) as db:
        db.add(Record(id=f"{n:02}", text="harbour") for n in range(30))
        recipe = Recipe(
            name="six",
            sources=(SourceConfig(source="keyword"),),
            fusion=RRF(k=60, first_rank=1),
            limit=6,
            max_limit=8,
        )
        assert len(db.search("harbour")) == 4
        assert len(db.search("harbour", limit=9)) == 9
        assert len(db.search("harbour", recipe=recipe)) == 6
        with pytest.raises(sennit.SennitError, match="1 to 8"):
            db.search("harbour", recipe=recipe, limit=9)
