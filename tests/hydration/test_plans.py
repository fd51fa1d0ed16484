"""Plans over an indexed project: the example of the specification, the failure modes, and the same bytes everywhere."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import sennit
from sennit.errors import InvalidInput
from sennit.hydration import HydrationPlan
from sennit.hydration.tokenizer import estimate_tokens, load_tokenizer
from sennit.settings.sections import HydrationSettings
from sennit.stores.embedded.store import EmbeddedStore

from .conftest import Open, index_code

QUERY = "Fix the authentication bug in auth.go"


def names(plan: HydrationPlan) -> list[str]:
    return [entry.qualified for entry in plan.entries]


def codes(plan: HydrationPlan) -> list[str]:
    return [notice.code for notice in plan.warnings]


SERVICE = Path(__file__).resolve().parent.parent / "fixtures" / "goservice"


@pytest.fixture
def service() -> Iterator[sennit.Database]:
    """The database of a small service in Go: authentication, billing and users."""
    with sennit.open(":memory:") as db:
        index_code(db, SERVICE)
        yield db


def test_the_example_of_the_specification(service: sennit.Database) -> None:
    plan = service.plan(QUERY, max_tokens=4000, max_entities=10)
    files = [Path(entry.path).name for entry in plan.entries]
    anchors = [entry for entry in plan.entries if entry.reason == "anchor:explicit_file_mention"]
    assert anchors == list(plan.entries[: len(anchors)])
    assert {entry.qualified for entry in anchors} >= {"Login", "Authenticate", "Logout"}
    assert anchors[0].qualified == "Authenticate"
    assert set(files[: len(anchors)]) == {"auth.go"}
    related = plan.entries[len(anchors) :]
    assert related[0].qualified == "verifyPassword"
    assert all(entry.reason.startswith("semantic:") for entry in related)
    assert {"password.go", "token.go", "session.go"} <= set(files)
    assert not [entry.path for entry in plan.entries if "billing" in entry.path]
    assert not plan.warnings


@pytest.mark.parametrize(("query", "name"), [("fix login", "Login"), ("Fix auth bug", "Authenticate")])
def test_a_name_in_plain_words_is_an_anchor(service: sennit.Database, query: str, name: str) -> None:
    plan = service.plan(query, max_tokens=2000)
    assert plan.entries[0].reason == "anchor:inferred_mention"
    assert plan.entries[0].priority == 70
    assert name in [entry.qualified for entry in plan.entries if entry.reason == "anchor:inferred_mention"]
    assert not [entry.path for entry in plan.entries if "billing" in entry.path]


def test_candidates_are_ranked_as_the_recipe_ranks(service: sennit.Database) -> None:
    query = "who has paid how much"
    plan = service.plan(query, max_tokens=4000, max_entities=30)
    found = [hit.id for hit in service.search(query, recipe="code", limit=50)]
    # The key has the path as it is shown, which the database finds.
    ranks = [found.index(service.find(entry.key).id) for entry in plan.entries]
    assert ranks
    assert ranks == sorted(ranks)
    assert [entry.priority for entry in plan.entries] == sorted(
        (entry.priority for entry in plan.entries), reverse=True
    )


def test_the_most_relevant_entities_of_a_named_file_come_first(
    shop: Open, caplog: pytest.LogCaptureFixture
) -> None:
    db = shop()
    everything = db.plan(QUERY, max_tokens=4000, max_entities=1)
    anchors = [entry for entry in everything.entries if entry.reason == "anchor:explicit_file_mention"]
    assert len(anchors) >= 20
    with caplog.at_level(logging.WARNING, "sennit.hydration"):
        tight = db.plan("why does issueToken fail in auth.go", max_tokens=400)
    assert tight.tokens <= 400
    assert load_tokenizer().count(tight.prompt) <= 400
    assert tight.entries[0].qualified == "issueToken"
    assert not tight.entries[0].partial
    dropped = [one.key for one in tight.dropped if one.selection_reason.startswith("anchor:")]
    assert len(dropped) + len(tight.entries) == len(anchors)
    (line,) = [one.getMessage() for one in caplog.records if one.getMessage().startswith("anchor_dropped")]
    assert all(key in line for key in dropped), "one line names them all"


def test_the_log_of_a_plan_has_the_numbers_and_the_anchors(
    shop: Open, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "sennit.hydration"):
        plan = shop().plan(f"{QUERY} {'x' * 200}", episode="e")
    (event,) = [vars(one)["sennit"] for one in caplog.records if one.levelno == logging.INFO]
    assert event["episode"] == "e"
    assert event["query"] == plan.query[:100]
    anchors = [one.getMessage() for one in caplog.records if one.levelno == logging.DEBUG]
    assert event["anchors"] == len(anchors) > 0
    assert all("explicit_file_mention, priority 100" in line for line in anchors)
    assert event["candidates"] > 0
    assert 0.7 < event["top_score"] <= 1
    assert (event["entities"], event["tokens"], event["max_tokens"]) == (len(plan.entries), plan.tokens, 4000)


def test_a_symbol_anchors_its_type_callees_and_callers(shop: Open) -> None:
    plan = shop().plan("What does `Authenticator.Authenticate` do?", max_entities=30)
    reasons = {entry.qualified: entry.reason for entry in plan.entries}
    assert plan.entries[0].qualified == "Authenticator.Authenticate"
    assert reasons["Authenticator"] == "anchor:enclosing_type"
    assert reasons["samePassword"] == "anchor:callee"
    callers = shop().plan("who uses samePassword?", max_entities=30)
    assert {e.qualified: e.reason for e in callers.entries}["Authenticator.Authenticate"] == "anchor:caller"


def test_a_semantic_candidate_has_its_cosine_as_reason_where_the_metric_is_cosine(shop: Open) -> None:
    db = shop(hydration__semantic_threshold=0.2, hydration__semantic_metric="cosine")
    plan = db.plan("put a thing into it", max_entities=3)
    assert "Basket.AddItem" in names(plan)
    scores = [float(entry.reason.removeprefix("semantic:")) for entry in plan.entries]
    assert scores == sorted(scores, reverse=True)
    assert all(score > 0.2 for score in scores)
    assert codes(plan) == []


def test_a_score_equal_to_the_threshold_is_excluded(shop: Open) -> None:
    plan = shop(hydration__semantic_threshold=1.0).plan("things that somebody buys")
    assert not [entry for entry in plan.entries if entry.reason.startswith("semantic:")]


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
        plan = db.plan("things that somebody is about to buy", episode="e")
    assert plan.entries[0].reason.startswith("keyword:")
    assert 0 < plan.entries[0].priority <= 100
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
    plan = shop(**settings).plan("things that somebody buys")
    assert plan.entries == ()
    assert codes(plan) == ["structural_only"]


@pytest.mark.parametrize(
    "settings",
    [{}, {"hydration__embedding_provider": "local"}, {"hydration__embedding_model": "sennit-static-256"}],
)
def test_vectors_that_match_the_settings_are_used(shop: Open, settings: dict[str, object]) -> None:
    assert "structural_only" not in codes(shop(**settings).plan("things in a basket"))


def test_entities_without_vectors_are_not_called_below_the_threshold(shop: Open, project: Path) -> None:
    with shop() as db:
        assert isinstance(db.store, EmbeddedStore)
        with db.store.pool.write() as connection:
            connection.execute("DELETE FROM vectors")
    plan = shop().plan("things that somebody is about to buy")
    assert codes(plan) == ["no_vectors"]
    assert "have no vectors yet" in plan.warnings[0].message
    assert plan.entries[0].reason.startswith("keyword:")


def test_semantic_ranking_can_be_switched_off_without_a_warning(shop: Open) -> None:
    plan = shop(hydration__enable_semantic_ranking=False).plan("things that somebody buys")
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


WORDS = st.sampled_from(
    [
        "fix",
        "login",
        "auth.go",
        "auth.go:12",
        "`Session`",
        "token",
        "billing",
        "refund",
        "verify password",
        "why",
    ]
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.lists(WORDS, max_size=4), st.integers(20, 900)), min_size=2, max_size=4), st.uuids()
)
def test_the_invariants_hold_for_every_turn_of_an_episode(
    service: sennit.Database, turns: list[tuple[list[str], int]], episode: object
) -> None:
    earlier: set[str] = set()
    for words, max_tokens in turns:
        query = " ".join(words)
        plan = service.plan(query, episode=str(episode), max_tokens=max_tokens, max_entities=4)
        # The budget is never exceeded.
        assert plan.tokens <= max_tokens
        assert load_tokenizer().count(plan.prompt) <= max_tokens
        # No candidate stands before an anchor.
        is_anchor = [entry.reason.startswith("anchor:") for entry in plan.entries]
        assert is_anchor == sorted(is_anchor, reverse=True)
        assert is_anchor.count(False) <= 4
        # What was hydrated earlier is included unless the budget forbids.
        refused = {one.key: one.reason for one in plan.dropped}
        for key in earlier - set(plan.keys):
            assert "tokens, and" in refused[key] or "is contained in" in refused[key]
        # The same query, episode and state give the same plan.
        assert not service.introspect(str(episode), replay=True).changes
        earlier |= set(plan.keys)


def test_the_constants_of_a_named_file_come_after_its_functions(tmp_path: Path) -> None:
    constants = "".join(f"LIMIT_{number} = {number}\n" for number in range(12))
    functions = "".join(
        f"def step_{number}(value):\n    total = value + {number}\n    return total * LIMIT_{number}\n\n\n"
        for number in range(12)
    )
    (tmp_path / "billing.py").write_text(f"{constants}\n\n{functions}")
    with sennit.open(":memory:") as db:
        db.index(tmp_path)
        plan = db.plan("fix the rounding in billing.py", max_tokens=400)
        kinds = [entry.qualified.split("_")[0] for entry in plan.entries]
        assert kinds[:4] == ["step"] * 4
        # A constant that the query names stands among the first all the same.
        named = db.plan("why is LIMIT_7 so low in billing.py", max_tokens=400)
        assert {entry.qualified for entry in named.entries[:2]} == {"LIMIT_7", "step_7"}


def test_the_settings_of_the_specification_have_their_defaults() -> None:
    defaults = HydrationSettings()
    assert defaults.enable_file_mention_anchors
    assert defaults.enable_symbol_mention_anchors
    assert defaults.enable_previous_hydration_anchors
    assert defaults.enable_semantic_ranking
    assert (defaults.semantic_threshold, defaults.semantic_metric) == (0.7, "calibrated")
    assert (defaults.semantic_budget_tokens, defaults.semantic_budget_entities) == (4000, 10)
    assert (defaults.embedding_provider, defaults.embedding_model) == ("", "")
    assert defaults.embedding_cache_ttl == 86400
