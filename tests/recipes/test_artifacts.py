"""The recipe `artifacts`: several collections, one result per artifact, neighbours, limits, logs."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sennit
from sennit import Caller, Record
from sennit.errors import InvalidInput, NotFound, SettingsError
from sennit.ranking.dedupe import Dedupe
from sennit.ranking.fusion import RRF, fuse
from sennit.ranking.stages import Ranking, StageContext
from sennit.recipes import BUILTIN_RECIPES
from sennit.records import Record as Kept

NOW = datetime(2026, 11, 16, tzinfo=UTC)


def chunk(artifact: str, index: int, text: str, **more: object) -> Record:
    return Record(
        id=f"{artifact}#{index}",
        text=text,
        collection="artifact_chunks",
        metadata={"artifact_id": artifact, "chunk_index": index},
        **more,  # type: ignore[arg-type]
    )


@pytest.fixture
def db() -> sennit.Database:
    return sennit.open(":memory:")


# Fusion


def test_rank_2_in_one_list_and_rank_5_in_another_score_0_0315() -> None:
    recipe = BUILTIN_RECIPES["artifacts"]
    assert recipe.fusion == RRF(k=60, first_rank=0)
    one = (np.arange(1, 11), np.linspace(1, 0.1, 10))
    # Record 3 has rank 2 in the first list (from 0) and rank 5 in the second.
    two = (np.array([21, 22, 23, 24, 25, 3, 26]), np.linspace(1, 0.1, 7))
    fused = fuse(recipe.fusion, [("a", *one), ("b", *two)])
    score = float(fused.scores[fused.keys == 3][0])
    assert score == pytest.approx(1 / 62 + 1 / 65)
    assert round(score, 4) == 0.0315


def test_the_first_of_a_list_scores_a_sixtieth(db: sennit.Database) -> None:
    db.add([Record(id="a", text="harbour lights", collection="artifacts")])
    (hit,) = db.search("harbour lights", recipe="artifacts")
    assert hit.score == pytest.approx(2 / 60)
    assert hit.collections == ("artifacts",)


def test_default_settings_match_the_specification() -> None:
    recipe = BUILTIN_RECIPES["artifacts"]
    assert (recipe.limit, recipe.max_limit) == (5, 50)
    assert all(use.candidates.for_limit(5) == 15 for use in recipe.sources)
    assert recipe.collections == ("artifacts", "artifact_chunks")
    assert recipe.on_request == ("memory", "history")


def test_the_settings_can_be_changed() -> None:
    with sennit.open(
        ":memory:",
        artifacts__rrf_constant=10,
        artifacts__overfetch_multiplier=7,
        artifacts__max_hybrid_search_results=9,
    ) as db:
        recipe = db.recipes["artifacts"]
        assert recipe.fusion == RRF(k=10, first_rank=0)
        assert recipe.sources[0].candidates.for_limit(2) == 14
        with pytest.raises(InvalidInput, match="from 1 to 9"):
            db.search("x", recipe="artifacts", limit=10)
    with pytest.raises(SettingsError, match="rrf_constant"):
        sennit.open(":memory:", artifacts__rrf_constant=0)


def test_plain_variables_set_the_constants_and_prefixed_ones_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RRF_CONSTANT", "10")
    monkeypatch.setenv("OVERFETCH_MULTIPLIER", "7")
    monkeypatch.setenv("MAX_HYBRID_SEARCH_RESULTS", "9")
    with sennit.open(":memory:") as db:
        recipe = db.recipes["artifacts"]
        assert (recipe.fusion, recipe.max_limit) == (RRF(k=10, first_rank=0), 9)
        assert recipe.sources[0].candidates.for_limit(2) == 14
        # The constant of the recipe `memory` is another setting.
        assert db.recipes["memory"].fusion == RRF(k=60, first_rank=1)
    monkeypatch.setenv("SENNIT_ARTIFACTS_RRF_CONSTANT", "20")
    with sennit.open(":memory:") as db:
        assert db.recipes["artifacts"].fusion == RRF(k=20, first_rank=0)
    monkeypatch.setenv("OVERFETCH_MULTIPLIER", "many")
    with pytest.raises(
        SettingsError, match=r"^OVERFETCH_MULTIPLIER: artifacts.overfetch_multiplier is 'many'"
    ):
        sennit.open(":memory:")


def test_by_meaning_alone_a_single_rank_0_scores_one_sixtieth() -> None:
    with sennit.open(":memory:", artifacts__sources=("vector",)) as db:
        db.add([Record(id="a", collection="artifacts", text="harbour lights")])
        (hit,) = db.search("harbour", recipe="artifacts")
        assert hit.score == pytest.approx(1 / 60)
        assert hit.sources == ("vector:artifacts",)
    for wrong in ((), ("vector", "grep")):
        with pytest.raises(SettingsError, match="one or more of vector, keyword"):
            sennit.open(":memory:", artifacts__sources=wrong)


@pytest.mark.parametrize(
    ("limit", "said"),
    [
        *((limit, rf"from 1 to 1,000, not {limit}$") for limit in (0, -1, 1001, True, 2.5)),
        *((limit, rf"from 1 to 50 for recipe 'artifacts', not {limit}$") for limit in (51, 1000)),
    ],
)
def test_a_limit_outside_1_to_50_is_refused(db: sennit.Database, limit: int, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        db.search("x", recipe="artifacts", limit=limit)


@pytest.mark.parametrize("limit", [1, 50])
def test_limit_from_1_to_50_is_accepted(db: sennit.Database, limit: int) -> None:
    db.add([Record(id=f"{n:03}", text=f"harbour {n}", collection="artifacts") for n in range(60)])
    assert len(db.search("harbour", recipe="artifacts", limit=limit)) == limit


# Collections


def test_memory_is_searched_on_request_and_history_by_name(db: sennit.Database) -> None:
    db.add(
        [
            Record(id=name, text="harbour lights", collection=name)
            for name in ("artifacts", "artifact_chunks", "memory", "history", "events")
        ]
    )

    def ids(*include: str) -> set[str]:
        return {hit.id for hit in db.search("harbour", recipe="artifacts", include=include)}

    assert ids() == {"artifacts", "artifact_chunks"}
    assert ids("memory") == {"artifacts", "artifact_chunks", "memory"}
    assert ids("history") == {"artifacts", "artifact_chunks", "history"}
    assert ids("events", "memory") == {"artifacts", "artifact_chunks", "memory", "events"}


def test_a_new_collection_is_a_line_of_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sennit.toml").write_text('[artifacts]\ncollections = ["artifacts", "artifact_chunks", "events"]\n')
    with sennit.open(":memory:") as db:
        db.add([Record(id="launch", text="harbour festival", collection="events")])
        assert [hit.id for hit in db.search("harbour", recipe="artifacts")] == ["launch"]


def test_unknown_collection_is_an_error_that_names_it(db: sennit.Database) -> None:
    with pytest.raises(NotFound, match=r"'evnts'.*artifacts, artifact_chunks, memory, history"):
        db.search("x", recipe="artifacts", include=["evnts"])
    with pytest.raises(InvalidInput, match="list of collection names"):
        db.search("x", recipe="artifacts", include="memory")
    with pytest.raises(InvalidInput, match="takes no include"):
        db.search("x", recipe="default", include=["memory"])


def test_one_embedding_of_the_query_serves_every_collection(
    db: sennit.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.add([Record(id="a", text="harbour", collection="artifacts")])
    asked: list[str] = []
    original = db.embeddings.embed_query

    def count_calls(model: object, text: str) -> object:
        asked.append(text)
        return original(model, text)  # type: ignore[arg-type]

    monkeypatch.setattr(db.embeddings, "embed_query", count_calls)
    db.search("harbour lights", recipe="artifacts", include=["memory", "history"])
    assert asked == ["harbour lights"]


# Dedupe


def document_of(record: Kept) -> str:
    return record.parent or record.id


def test_chunk_is_preferred_to_its_document_in_any_order(db: sennit.Database) -> None:
    db.add(
        [
            Record(id="guide", text="harbour lights", collection="artifacts"),
            chunk("guide", 0, "harbour and more"),
        ]
    )
    result = db.search("harbour lights", recipe="artifacts", explain=True)
    assert [hit.id for hit in result] == ["guide#0"]
    why = db.why("harbour lights", "guide", recipe="artifacts")
    assert (why.kept, why.stage) == (False, "dedupe")
    assert "guide#0" in why.reason
    assert result[0].explanation is not None
    assert result[0].explanation.displaced == ("guide",)


def test_between_chunks_of_one_artifact_the_higher_score_stays(db: sennit.Database) -> None:
    db.add(
        [
            chunk("guide", 0, "a word on ferries"),
            chunk("guide", 1, "harbour lights"),
            chunk("other", 0, "harbour"),
        ]
    )
    assert [hit.id for hit in db.search("harbour lights", recipe="artifacts")] == ["guide#1", "other#0"]


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.booleans(), st.sampled_from([0.1, 0.2, 0.3, 0.4])),
        max_size=20,
    )
)
def test_dedupe_keeps_the_best_chunk_of_each_document(drawn: list[tuple[int, bool, float]]) -> None:
    records = [
        Kept(id=f"{n}", text="", parent=f"w{whole}" if part else None)
        if part
        else Kept(id=f"w{whole}", text="")
        for n, (whole, part, _) in enumerate(drawn)
    ]
    # Each document appears once.
    kept = {record.id: (record, score) for record, (_, _, score) in zip(records, drawn, strict=True)}
    ranking = sorted(kept.values(), key=lambda one: (-one[1], one[0].id))
    ranked = Ranking(np.arange(len(ranking)), np.array([score for _, score in ranking], np.float64))
    context = StageContext(
        query="", limit=10, now=NOW, records=lambda keys: {key: ranking[key][0] for key in keys}
    )
    staged = Dedupe().apply(ranked, context)
    left = [ranking[key][0] for key in staged.keys.tolist()]
    assert (
        len({document_of(record) for record in left})
        == len(left)
        == len({document_of(r) for r, _ in ranking})
    )
    assert list(staged.scores) == sorted(staged.scores, reverse=True)
    for record in left:
        family = [r for r, _ in ranking if document_of(r) == document_of(record)]
        parts = [r for r in family if r.parent is not None]
        assert record is (parts[0] if parts else family[0])
    assert set(staged.dropped) == set(range(len(ranking))) - set(staged.keys.tolist())
    assert all(drop.lost_to in staged.keys for drop in staged.dropped.values())


# Neighbours


@pytest.fixture
def six_chunks(db: sennit.Database) -> sennit.Database:
    words = ("anchor", "beacon", "cable", "dinghy", "engine", "flag")
    db.add([chunk("book", n, f"chapter about the {word}") for n, word in enumerate(words)])
    return db


@pytest.mark.parametrize(
    ("query", "reach", "positions"),
    [("dinghy", 1, [2, 3, 4]), ("anchor", 1, [0, 1]), ("flag", 1, [4, 5]), ("dinghy", 2, [1, 2, 3, 4, 5])],
)
def test_a_chunk_comes_with_its_neighbours(
    six_chunks: sennit.Database, query: str, reach: int, positions: list[int]
) -> None:
    hit = six_chunks.search(query, recipe="artifacts", limit=1, neighbours=reach)[0]
    assert [record.position for record in hit.neighbours] == positions
    assert hit.passage == "\n[CHUNK BOUNDARY]\n".join(record.text for record in hit.neighbours)


def test_neighbours_are_returned_only_on_request(six_chunks: sennit.Database) -> None:
    hit = six_chunks.search("dinghy", recipe="artifacts", limit=1)[0]
    assert hit.neighbours == ()
    assert hit.passage == hit.text == "chapter about the dinghy"


def test_hidden_neighbour_is_not_shown(db: sennit.Database) -> None:
    db.add(
        [
            chunk("book", 0, "anchor"),
            chunk("book", 1, "beacon", sensitivity="private"),
            chunk("book", 2, "cable"),
        ]
    )
    hit = db.search("anchor", recipe="artifacts", limit=1, neighbours=1)[0]
    assert hit.passage == "anchor"
    cleared = db.search(
        "anchor", recipe="artifacts", limit=1, neighbours=1, caller=Caller(clearance="private")
    )[0]
    assert cleared.passage == "anchor\n[CHUNK BOUNDARY]\nbeacon"


# Storing


def test_artifact_is_chunked_with_positions(db: sennit.Database) -> None:
    text = "\n\n".join(f"Paragraph {n} tells of the harbour, number {n}. " * 12 for n in range(8))
    db.add_artifacts([Record(id="book", title="The book", text=text, metadata={"source_system": "drive"})])
    chunks = sorted((r for r in db if r.collection == "artifact_chunks"), key=lambda r: r.position or 0)
    assert len(chunks) > 2
    assert [r.metadata["chunk_index"] for r in chunks] == list(range(len(chunks)))
    assert all(r.parent == "book" and r.metadata["artifact_id"] == "book" for r in chunks)
    assert all(r.metadata["source_system"] == "drive" and r.title == "The book" for r in chunks)
    whole = db.get("book")
    assert whole is not None
    assert whole.collection == "artifacts"
    assert all(r.text in text for r in chunks)


def test_updated_artifact_leaves_no_old_chunk(db: sennit.Database) -> None:
    long = "\n\n".join(f"Old paragraph {n} about anchors. " * 20 for n in range(6))
    db.add_artifacts([Record(id="book", text=long), Record(id="other", text="anchors too")])
    db.add_artifacts([Record(id="book", text="New and short, about beacons.")])
    assert {r.id for r in db} == {"book", "book#0", "other", "other#0"}
    hits = db.search("anchors", recipe="artifacts", filters={"artifact_id": "book"})
    assert all("anchor" not in hit.text for hit in hits)


def test_removing_an_artifact_removes_its_chunks(db: sennit.Database) -> None:
    db.add_artifacts([Record(id="book", text="anchors"), Record(id="other", text="anchors")])
    assert db.remove(["book"]) == 2
    assert {r.id for r in db} == {"other", "other#0"}


def test_artifact_is_stored_atomically(db: sennit.Database) -> None:
    db.add_artifacts([Record(id="book", text="anchors")])

    def breaks(record: Record) -> list[str]:
        if record.id == "bad":
            raise RuntimeError("cannot cut")
        return [record.text]

    with pytest.raises(RuntimeError):
        db.add_artifacts([Record(id="book", text="beacons"), Record(id="bad", text="x")], split=breaks)
    assert {r.id: r.text for r in db} == {"book": "anchors", "book#0": "anchors"}


def test_tenants_do_not_share_artifacts(db: sennit.Database) -> None:
    db.add_artifacts([Record(id="book", text="anchors", tenant="acme"), Record(id="book", text="beacons")])
    db.add_artifacts([Record(id="book", text="cables")])
    acme = Caller(tenant="acme", everything=True)
    assert [hit.text for hit in db.search("anchors", recipe="artifacts", caller=acme)] == ["anchors"]
    assert db.remove(["book"], caller=acme) == 2
    assert {r.text for r in db} == {"cables"}


# Filters


def test_filtered_search_returns_limit_results_when_enough_match(db: sennit.Database) -> None:
    db.add(
        [
            Record(
                id=f"{n:04}",
                text=f"harbour report {n}",
                collection="artifacts",
                timestamp=NOW - timedelta(days=n),
                metadata={"artifact_type": "note" if n % 50 == 0 else "mail", "tags": ["a", f"t{n % 7}"]},
            )
            for n in range(1000)
        ]
    )

    def count_hits(**filters: object) -> int:
        return len(db.search("harbour report", recipe="artifacts", limit=10, filters=filters))

    assert count_hits(artifact_type="note") == 10
    assert count_hits(tags=["t3"]) == 10
    assert count_hits(timestamp={"gte": (NOW - timedelta(days=12)).isoformat()}) == 10
    assert count_hits(artifact_type="note", tags=["t0"]) == len(
        [n for n in range(1000) if n % 50 == 0 and n % 7 == 0]
    )


# Logs


def test_a_search_logs_its_merge_its_deduplication_and_a_summary(
    db: sennit.Database, caplog: pytest.LogCaptureFixture
) -> None:
    db.add_artifacts([Record(id="secret-name", text="harbour lights"), Record(id="b", text="harbour")])
    with caplog.at_level(logging.INFO, logger="sennit.search"):
        db.search("harbour lights", recipe="artifacts")
    records = [record for record in caplog.records if record.name == "sennit.search"]
    merge, dedupe, event = (record.sennit for record in records)  # type: ignore[attr-defined]
    assert merge == {
        "event": "rrf_merge_completed",
        "collections_searched": ["artifact_chunks", "artifacts"],
        "results_before_merge": 8,
        "results_after_merge": 4,
    }
    assert dedupe == {
        "event": "deduplication_completed",
        "results_before": 4,
        "results_after": 2,
        "duplicates_removed": 2,
    }
    assert event["event"] == "search"
    assert event["before_fusion"] == 8
    assert event["after_fusion"] == 4
    assert event["after_stages"] == {"dedupe": 2}
    assert event["returned"] == 2
    assert set(event["sources"]) == {
        f"{s}:{c}" for s in ("vector", "keyword") for c in ("artifacts", "artifact_chunks")
    }
    for record in records:
        assert json.loads(record.message) == record.sennit  # type: ignore[attr-defined]
        assert "harbour" not in record.message
        assert "secret-name" not in record.message


@settings(max_examples=30)
@given(st.lists(st.sampled_from(["harbour", "lights", "ferry", "tide"]), min_size=1, max_size=6))
def test_order_is_by_score_and_equal_scores_by_id(words: list[str]) -> None:
    with sennit.open(":memory:") as db:
        db.add([Record(id=f"{n}", text=word, collection="artifacts") for n, word in enumerate(words)])
        hits = db.search("harbour ferry", recipe="artifacts", limit=50)
        assert [(-hit.score, hit.id) for hit in hits] == sorted((-hit.score, hit.id) for hit in hits)
