"""Plans over an indexed project: the example of the specification, the failure modes, and the same bytes everywhere."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

import sennit
from sennit.errors import InvalidInput
from sennit.hydration import HydrationPlan
from sennit.hydration.tokenizer import estimate_tokens, load_tokenizer
from sennit.stores.embedded.store import EmbeddedStore

from .conftest import Open, index_code

QUERY = "Fix the authentication bug in auth.go"


def names(plan: HydrationPlan) -> list[str]:
    return [entry.qualified for entry in plan.entries]


def codes(plan: HydrationPlan) -> list[str]:
    return [notice.code for notice in plan.warnings]


def test_the_example_of_the_specification(shop: Open, caplog: pytest.LogCaptureFixture) -> None:
    db = shop()
    everything = db.plan(QUERY, max_tokens=4000, max_entities=40)
    anchors = [entry for entry in everything.entries if entry.reason == "anchor:explicit_file_mention"]
    assert len(anchors) >= 20
    assert [entry.lines for entry in anchors] == sorted(entry.lines or (0, 0) for entry in anchors)
    assert {entry.priority for entry in anchors} == {100}
    assert "Authenticator.Authenticate" in [entry.qualified for entry in anchors]
    assert len(everything.entries) > len(anchors), "what is near is found in other files, too"
    assert all(entry.priority == 0 for entry in everything.entries[len(anchors) :])

    with caplog.at_level(logging.WARNING, "sennit.hydration"):
        tight = db.plan(QUERY, max_tokens=300, max_entities=10)
    assert tight.tokens <= 300
    assert load_tokenizer().count(tight.prompt) <= 300
    assert len(tight.entries) <= 10
    assert all(entry.reason == "anchor:explicit_file_mention" for entry in tight.entries)
    dropped = [one.key for one in tight.dropped if one.selection_reason.startswith("anchor:")]
    assert len(dropped) + len(tight.entries) == len(anchors)
    for key in dropped:
        assert any(key in record.getMessage() for record in caplog.records)


def test_a_symbol_anchors_its_type_callees_and_callers(shop: Open) -> None:
    plan = shop().plan("What does `Authenticator.Authenticate` do?", max_entities=30)
    reasons = {entry.qualified: entry.reason for entry in plan.entries}
    assert plan.entries[0].qualified == "Authenticator.Authenticate"
    assert reasons["Authenticator"] == "anchor:enclosing_type"
    assert reasons["samePassword"] == "anchor:callee"
    callers = shop().plan("who uses samePassword?", max_entities=30)
    assert {e.qualified: e.reason for e in callers.entries}["Authenticator.Authenticate"] == "anchor:caller"


def test_a_semantic_candidate_has_its_cosine_as_reason(shop: Open) -> None:
    db = shop(hydration__semantic_threshold=0.2)
    plan = db.plan("put a thing into the basket", max_entities=3)
    assert "Basket.AddItem" in names(plan)
    scores = [float(entry.reason.removeprefix("semantic:")) for entry in plan.entries]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0.2 for score in scores)
    assert codes(plan) == []


def test_a_score_equal_to_the_threshold_is_excluded(shop: Open) -> None:
    assert (
        shop(hydration__semantic_threshold=1.0).plan("in the basket").entries[0].reason.startswith("keyword:")
    )


# The three failure modes


def test_anchors_that_are_all_too_large_are_reported_in_the_log_and_the_introspection(
    shop: Open, caplog: pytest.LogCaptureFixture
) -> None:
    db = shop()
    with caplog.at_level(logging.WARNING, "sennit.hydration"):
        plan = db.plan(QUERY, max_tokens=5, episode="e")
    assert plan.entries == ()
    assert "no_anchor_fits" in codes(plan)
    assert "none of the" in caplog.text
    assert "no_anchor_fits" in codes(db.introspect("e").plan)


def test_the_keyword_source_is_the_fallback_below_the_threshold(
    shop: Open, caplog: pytest.LogCaptureFixture
) -> None:
    db = shop(hydration__semantic_threshold=0.99)
    with caplog.at_level(logging.WARNING, "sennit.hydration"):
        plan = db.plan("things in a basket", episode="e")
    assert plan.entries[0].reason.startswith("keyword:")
    assert "Basket" in plan.entries[0].qualified
    assert "no candidate is above the threshold of 0.99" in caplog.text
    assert codes(db.introspect("e").plan) == ["below_threshold"]


def test_the_plan_is_structural_when_the_embedding_service_is_down(
    shop: Open, project: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    away = sennit.open(
        tmp_path / "away",
        embedding__provider="openai",
        embedding__model="text-embedding-3-small",
        embedding__base_url="http://127.0.0.1:9/v1",
        embedding__retries=0,
    )
    with away as db, caplog.at_level(logging.WARNING, "sennit.hydration"):
        index_code(db, project)
        plan = db.plan(QUERY, episode="e", max_entities=40)
        assert len(plan.entries) >= 20
        assert all(entry.reason.startswith("anchor:") for entry in plan.entries)
        assert codes(plan) == ["structural_only"]
        assert "STRUCTURAL ONLY" in caplog.text
        assert codes(db.introspect("e").plan) == ["structural_only"]


@pytest.mark.parametrize(
    "settings",
    [
        {"hydration__embedding_provider": "none"},
        {"hydration__embedding_provider": "openai"},
        {"hydration__embedding_model": "another"},
        {"embedding__provider": "none"},
    ],
)
def test_the_plan_is_structural_when_the_settings_exclude_the_vectors(
    shop: Open, settings: dict[str, object]
) -> None:
    plan = shop(**settings).plan("things in a basket")
    assert plan.entries == ()
    assert codes(plan) == ["structural_only"]


@pytest.mark.parametrize(
    "settings",
    [{}, {"hydration__embedding_provider": "local"}, {"hydration__embedding_model": "sennit-static-256"}],
)
def test_vectors_that_match_the_settings_are_used(shop: Open, settings: dict[str, object]) -> None:
    assert "structural_only" not in codes(shop(**settings).plan("things in a basket"))


def test_semantic_ranking_can_be_switched_off_without_a_warning(shop: Open) -> None:
    plan = shop(hydration__enable_semantic_ranking=False).plan("things in a basket")
    assert (plan.entries, plan.warnings) == ((), ())


def test_token_counts_are_estimates_without_a_tokenizer(
    shop: Open, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "rs_bpe", None)
    monkeypatch.setitem(sys.modules, "rs_bpe.bpe", None)
    load_tokenizer.cache_clear()
    try:
        db = shop()
        with caplog.at_level(logging.WARNING, "sennit.hydration"):
            plans = [db.plan(QUERY, max_entities=40) for _ in range(2)]
    finally:
        load_tokenizer.cache_clear()
    for plan in plans:
        assert plan.tokenizer == "estimate"
        assert "estimated_tokens" in codes(plan)
        assert estimate_tokens(plan.prompt) <= plan.tokens
    assert caplog.text.count("token counts are estimates") == 1


# The same bytes


def test_the_same_question_and_state_give_the_same_bytes_in_other_processes(
    shop: Open, tmp_path: Path
) -> None:
    with shop() as db:
        here = db.plan("Fix `Authenticate` in auth.go and the basket", max_tokens=900, max_entities=40)
    code = (
        "import sys, sennit\n"
        f"with sennit.open({str(tmp_path / 'db')!r}) as db:\n"
        "    plan = db.plan('Fix `Authenticate` in auth.go and the basket', max_tokens=900, max_entities=40)\n"
        "    sys.stdout.buffer.write(plan.to_json().encode())\n"
    )
    for seed in ("0", "1", "4242"):
        there = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert there.stdout == here.to_json().encode()


def test_the_same_turns_of_two_databases_give_the_same_bytes(shop: Open, project: Path) -> None:
    turns = [QUERY, "and `Basket`?", "what else is in main.go:5"]
    with sennit.open(":memory:") as other:
        index_code(other, project)
        db = shop()
        for query in turns:
            assert db.plan(query, episode="e").to_json() == other.plan(query, episode="e").to_json()


# Changes


def test_a_changed_file_is_read_alone_and_only_new_entities_are_embedded(shop: Open, project: Path) -> None:
    db = shop()
    before = vectors_of(db)
    changed = project / "internal" / "store" / "basket.go"
    changed.write_text(changed.read_text().replace("len(b.items)", "len(b.items) + 0"))
    report = index_code(db, project)
    assert (report.updated, report.added, report.removed) == (1, 0, 0)
    assert len(vectors_of(db) - before) == 1
    plan = db.plan("`ItemCount`")
    assert "+ 0" in plan.entries[0].text


def vectors_of(db: sennit.Database) -> set[bytes]:
    assert isinstance(db.store, EmbeddedStore)
    with db.store.pool.read() as connection:
        return {digest for (digest,) in connection.execute("SELECT hash FROM vectors")}


def test_a_plan_holds_nothing_hidden_from_the_caller(shop: Open) -> None:
    db = shop()
    secret = db.get(next(record.id for record in db if record.metadata.get("name") == "samePassword"))
    assert secret is not None
    fields = {**secret.to_dict(), "sensitivity": "private"}
    db.add([sennit.Record.from_dict(fields)])
    plan = db.plan("`samePassword` in auth.go", max_entities=40)
    assert "samePassword" not in names(plan)
    assert "samePassword" not in plan.to_json().replace("!samePassword", "").replace("`samePassword`", "")
    owner = sennit.Caller(everything=True)
    assert "samePassword" in names(db.plan("`samePassword` in auth.go", max_entities=40, caller=owner))


def test_an_entity_stored_in_parts_is_joined(tmp_path: Path) -> None:
    body = "".join(f"    value_{n} = compute({n})  # step number {n} of the long way\n" for n in range(300))
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "long.py").write_text(f"def long_way():\n{body}    return value_299\n")
    with sennit.open(":memory:") as db:
        index_code(db, tmp_path / "src")
        (entry,) = db.plan("`long_way`", max_tokens=100_000).entries
        assert entry.text == f"def long_way():\n{body}    return value_299"
        assert entry.lines == (1, 302)
        (short,) = db.plan("`long_way` with value_77", max_tokens=200, allow_partial=True).entries
        assert short.partial
        assert "value_77 = compute(77)" in short.text


@pytest.mark.parametrize(
    "options",
    [{"max_tokens": 0}, {"max_tokens": -1}, {"max_entities": 0}, {"max_tokens": True}, {"episode": ""}],
)
def test_an_invalid_budget_or_episode_is_refused(options: dict[str, object]) -> None:
    with sennit.open(":memory:") as db, pytest.raises(InvalidInput):
        db.plan("x", **options)  # type: ignore[arg-type]


def test_an_empty_database_gives_an_empty_plan() -> None:
    with sennit.open(":memory:") as db:
        plan = db.plan(QUERY)
        assert plan.entries == ()
        assert plan.prompt == ""
        assert db.plan("").entries == ()
