"""Episodes: turns that build on each other, introspection, and replay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sennit
from sennit.errors import InvalidInput, NotFound

from .conftest import Open, index_code

OWNER = sennit.Caller(everything=True)


def test_entities_of_a_turn_are_anchors_of_the_next(shop: Open) -> None:
    db = shop()
    first = db.plan("`samePassword`", episode="e", max_entities=3)
    second = db.plan("what about `Basket`?", episode="e", max_entities=30)
    assert (first.turn, second.turn) == (1, 2)
    earlier = [entry.key for entry in second.entries if entry.reason == "anchor:hydrated_previous_turn"]
    assert set(earlier) <= set(first.keys)
    assert set(first.keys) <= set(second.keys)
    assert {entry.priority for entry in second.entries if entry.key in earlier} == {80}


def test_episodes_are_separate(shop: Open) -> None:
    db = shop()
    db.plan("`samePassword`", episode="e")
    other = db.plan("`Basket`", episode="other")
    assert other.turn == 1
    assert not [entry for entry in other.entries if "previous" in entry.reason]


def test_without_an_episode_nothing_is_stored(shop: Open) -> None:
    db = shop()
    assert db.plan("`Basket`").turn == 0
    with pytest.raises(NotFound, match="no episode 'e'"):
        db.introspect("e")


def test_earlier_turns_can_be_switched_off(shop: Open) -> None:
    db = shop(hydration__enable_previous_hydration_anchors=False)
    db.plan("`samePassword`", episode="e")
    assert not [e for e in db.plan("`Basket`", episode="e").entries if "previous" in e.reason]


def test_introspection_lists_every_entity_with_its_reason_and_preview(shop: Open) -> None:
    db = shop()
    plan = db.plan("auth.go", episode="e", max_tokens=200)
    found = db.introspect("e")
    assert found.turns == (1,)
    values: Any = found.to_dict()
    assert (values["episode_id"], values["query"]) == ("e", "auth.go")
    fields = ("entity_key", "reason", "priority", "token_count", "included_at", "content")
    assert [tuple(one[name] for name in fields) for one in values["entities"]] == [
        (entry.key, entry.reason, entry.priority, entry.tokens, number, entry.preview)
        for number, entry in enumerate(plan.entries, 1)
    ]
    assert all(0 < len(one["content"]) <= 200 for one in values["entities"])
    assert [one["entity_key"] for one in values["dropped"]] == [one.key for one in plan.dropped]
    assert all(one["reason"] for one in values["dropped"])
    assert found.plan.dropped == plan.dropped
    assert found.plan.warnings == plan.warnings


def test_a_turn_can_be_named(shop: Open) -> None:
    db = shop()
    for query in ("`Basket`", "`Token`", "`Server`"):
        db.plan(query, episode="e")
    assert db.introspect("e").plan.query == "`Server`"
    assert db.introspect("e", 1).plan.query == "`Basket`"
    for turn in (0, 4, -1):
        with pytest.raises(NotFound, match="1 to 3"):
            db.introspect("e", turn)


def test_a_replay_reports_added_removed_and_changed_entities(shop: Open, project: Path) -> None:
    db = shop()
    db.plan("basket.go", episode="e", max_entities=4)
    assert not db.introspect("e", replay=True).changes
    path = project / "internal" / "store" / "basket.go"
    text = path.read_text().replace("len(b.items)", "len(b.items) + 0")
    text = text.replace(
        "// AddItem puts a thing into the basket.\nfunc (b *Basket) AddItem", "func (b *Basket) Put"
    )
    path.write_text(text)
    index_code(db, project)
    changes = db.introspect("e", replay=True).changes
    assert changes is not None
    assert [key.rpartition("::")[2] for key in changes.added] == ["Basket.Put"]
    assert [key.rpartition("::")[2] for key in changes.removed] == ["Basket.AddItem"]
    assert [key.rpartition("::")[2] for key in changes.changed] == ["Basket.ItemCount"]
    assert db.introspect("e").turns == (1,), "a replay is no turn"


def test_a_replay_of_an_early_turn_ignores_later_ones(shop: Open) -> None:
    db = shop()
    db.plan("`Basket`", episode="e")
    db.plan("`Token`", episode="e")
    assert not db.introspect("e", 1, replay=True).changes
    assert not db.introspect("e", 2, replay=True).changes


def test_an_episode_stores_no_text_of_removed_entities(shop: Open, project: Path) -> None:
    db = shop()
    db.plan("basket.go", episode="e")
    (project / "internal" / "store" / "basket.go").unlink()
    index_code(db, project)
    with db.store.state() as state:
        kept = state.scan(b"", b"\xff")
    assert any(b"basket.go" in value for _, value in kept)
    assert not any(b"about to buy" in value for _, value in kept)
    entries = [entry for entry in db.introspect("e").plan.entries if entry.path.endswith("basket.go")]
    assert [entry.preview for entry in entries] == [""] * 4


def test_an_episode_of_another_tenant_does_not_exist(shop: Open) -> None:
    db = shop()
    db.plan("`Basket`", episode="e")
    with pytest.raises(NotFound):
        db.introspect("e", caller=sennit.Caller(tenant="other"))
    assert db.plan("`Basket`", episode="e", caller=sennit.Caller(tenant="other")).turn == 1


def test_introspection_shows_only_what_the_caller_may_see(shop: Open) -> None:
    db = shop()
    record = next(record for record in db if record.metadata.get("name") == "samePassword")
    db.add([sennit.Record.from_dict({**record.to_dict(), "sensitivity": "private"})])
    whole = db.plan("auth.go", episode="e", max_entities=40, caller=OWNER)
    assert record.id in whole.keys
    seen = db.introspect("e").plan
    assert record.id not in seen.to_json()
    assert [entry.position for entry in seen.entries] == list(range(1, len(whole.entries)))
    assert db.introspect("e", caller=OWNER).plan.keys == whole.keys
    following = db.plan("and now?", episode="e", max_entities=40)
    assert record.id not in following.to_json()


@pytest.mark.parametrize("episode", ["", "x" * 2000, 3, "\ud800"])
def test_an_invalid_episode_name_is_refused(episode: object) -> None:
    with sennit.open(":memory:") as db, pytest.raises(InvalidInput, match="The name of an episode"):
        db.introspect(episode)  # type: ignore[arg-type]
