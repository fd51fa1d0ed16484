"""The same records give the same answers on Postgres as on SQLite, to the last bit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest

import sennit
from sennit import Caller, Database, Fact, Record, Turn
from sennit.apps.cli import demo
from sennit.jsonl import read_records
from sennit.recipes import BUILTIN_RECIPES
from sennit.sources import base

SAMPLES = Path(demo.__file__).resolve().parents[2] / "samples"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
QUESTIONS = ("how do I restore a copy", "where is the token checked", "Ana lives in Lisbon", "login session")
FILTERS = (
    "version = 2",
    "version >= 1 and not kind = 'guide'",
    "collection in ('docs', 'memory')",
    "timestamp < '2026-02-10' or exists product",
    "id >= 'm' and id < 't'",
)


class FrozenClock(datetime):
    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override]
        return NOW


def fill(db: Database, folder: Path) -> None:
    with (SAMPLES / "demo.jsonl").open("rb") as file:
        db.add(read_records(file))
    for recipe, path in (("docs", "docs"), ("code", "code")):
        db.index(folder / path, recipe=recipe)
    db.add_artifacts([Record(id="guide", text="A copy is restored by hand. " * 80, collection="artifacts")])
    db.add_turns(
        Turn(session="talk", speaker="Ana" if n % 2 else "Ben", text=f"We spoke of login {n}", timestamp=NOW)
        for n in range(12)
    )
    places = ("Porto", "Lisbon", "Faro")
    for at, place in enumerate(places, 1):
        fact = Fact(
            subject="Ana", relation="lives in", object=place, timestamp=datetime(2026, 1, at, tzinfo=UTC)
        )
        db.add_facts([fact], same_relation=True)
    db.add([Record(id=f"m{n}", text=f"memory {n} of a session", collection="memory") for n in range(40)])
    db.add([Record(id="m3", text="memory three, changed", collection="memory")])
    db.remove(["m7", "m9"])
    db.add(
        [
            Record(id="s1", text="a secret login", sensitivity="private"),
            Record(id="t1", text="login", tenant="t"),
        ]
    )


@pytest.fixture
def pair(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Database, Database]]:
    """A database on SQLite and one on Postgres with the same writes."""
    monkeypatch.setattr(base, "datetime", FrozenClock)
    with ExitStack() as stack:
        databases = [
            stack.enter_context(sennit.open(target, privacy__open=True)) for target in (tmp_path / "db", dsn)
        ]
        for db in databases:
            fill(db, SAMPLES)
        yield databases[0], databases[1]


def answers(db: Database, **options: object) -> list[object]:
    out: list[object] = []
    for question in QUESTIONS:
        result = db.search(question, limit=20, **options)  # type: ignore[arg-type]
        out.append([(hit.id, hit.score, hit.record) for hit in result])
        out.append(result.degraded)
    return out


def test_every_recipe_filter_and_caller_gives_the_same_answers(pair: tuple[Database, Database]) -> None:
    local, remote = pair
    assert list(local) == list(remote)
    for when in ("in the buffer", "in segments"):
        for recipe in BUILTIN_RECIPES:
            assert answers(local, recipe=recipe) == answers(remote, recipe=recipe), (when, recipe)
        assert any(answers(local))
        for where in FILTERS:
            assert answers(local, filters=where) == answers(remote, filters=where), (when, where)
        for caller in (Caller(), Caller(clearance="private"), Caller(tenant="t")):
            assert answers(local, caller=caller) == answers(remote, caller=caller), (when, caller)
        hits = [db.search("restore", neighbours=1, recipe="docs", limit=5) for db in pair]
        assert [hit.to_dict() for hit in hits[0]] == [hit.to_dict() for hit in hits[1]]
        for db in pair:
            db.admin.optimise()


def test_plans_over_code_are_the_same(pair: tuple[Database, Database]) -> None:
    plans = [db.plan("where is the token checked", episode="e") for db in pair]
    assert plans[0].entries
    assert (plans[0].entries, plans[0].dropped) == (plans[1].entries, plans[1].dropped)
    assert [db.introspect("e").plan.turn for db in pair] == [1, 1]


def test_a_check_finds_no_problem(pair: tuple[Database, Database], dsn: str) -> None:
    from sennit.stores.embedded.checks import check
    from sennit.stores.open import open_store

    pair[1].admin.optimise()
    store = open_store(dsn)
    try:
        levels = {finding.check: finding.level for finding in check(store)}
    finally:
        store.close()
    assert "problem" not in levels.values()
    assert levels["database"] == levels["disk"] == "ok"
