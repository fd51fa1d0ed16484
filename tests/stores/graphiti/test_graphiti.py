"""Facts on Graphiti: the conformance kit on FalkorDB, and what the binding does beyond it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import pytest
from scripts.servers.falkordb import FalkorProcess
from scripts.servers.neo4j import Neo4jProcess

import sennit
from sennit.filters import EVERYTHING
from sennit.graph.names import name_hash
from sennit.settings import load_settings
from sennit.stores.contract import Backend
from sennit.stores.open import open_backend
from sennit.stores.scanned_graph import ScannedGraph
from sennit.testing import GraphConformance
from sennit.testing.records import NewTarget

from ..naughty_kit import assert_facts_survive

pytestmark = pytest.mark.servers


def on_falkordb(folder: Path, server: FalkorProcess) -> Callable[[], Backend]:
    overrides = {"roles.graph": "graphiti", "graphiti.backend": "falkordb", "graphiti.url": server.url}
    return lambda: open_backend(folder, load_settings(overrides=overrides))


class TestGraphitiOnFalkorDB(GraphConformance):
    @pytest.fixture
    def new_target(self, falkordb: FalkorProcess, tmp_path: Path) -> NewTarget:
        numbers = count()
        return lambda: on_falkordb(tmp_path / f"db{next(numbers)}", falkordb)


class TestGraphitiOnNeo4j(GraphConformance):
    @pytest.fixture
    def new_target(self, neo4j: Neo4jProcess, tmp_path: Path) -> NewTarget:
        numbers = count()
        return lambda: on_neo4j(tmp_path / f"db{next(numbers)}", neo4j)


def on_neo4j(folder: Path, server: Neo4jProcess) -> Callable[[], Backend]:
    overrides = {"roles.graph": "graphiti", "graphiti.backend": "neo4j", "graphiti.url": server.url}
    return lambda: open_backend(folder, load_settings(overrides=overrides))


def test_facts_are_added_superseded_and_removed_on_neo4j(tmp_path: Path, neo4j: Neo4jProcess) -> None:
    with sennit.open(on_neo4j(tmp_path / "db", neo4j)(), privacy__open=True) as db:
        for tenant in ("", "one"):
            fact = sennit.Fact(subject="Ana", relation="lives in", object="Pune", id="old", tenant=tenant)
            db.add_facts([fact])
        db.admin.flush()
        assert facts_of(db, "Ana") == ["old", "old"]
        db.add_facts(
            [sennit.Fact(subject="Ana", relation="lives in", object="Kochi", id="new", supersedes=("old",))]
        )
        db.admin.flush()
        assert sorted(facts_of(db, "Ana")) == ["new", "old"]
        db.remove(["new"])
        db.admin.flush()
        assert facts_of(db, "Ana") == ["old"]


def facts_of(
    db: sennit.Database, name: str, *, history: bool = False, at: datetime | None = None
) -> list[str]:
    hash_ = name_hash(name)
    assert hash_ is not None
    with db.store.snapshot() as snapshot:
        views = db.backend.graph.view(snapshot), ScannedGraph().view(snapshot)
        ours, theirs = (
            view.edges([hash_], 10, at or datetime.now(UTC), EVERYTHING, history=history) for view in views
        )
        assert ours == theirs
        return [snapshot.records([edge.row])[edge.row].id for edge in ours[0]]


def test_facts_are_added_superseded_and_removed_on_the_server(
    tmp_path: Path, falkordb: FalkorProcess
) -> None:
    with sennit.open(on_falkordb(tmp_path / "db", falkordb)()) as db:
        db.add_facts([sennit.Fact(subject="Ana", relation="lives in", object="Pune", id="old")])
        db.admin.flush()
        with db.store.snapshot() as snapshot:
            assert db.backend.graph.applied(snapshot) == snapshot.seq
        assert facts_of(db, "Ana") == ["old"]
        db.add_facts(
            [sennit.Fact(subject="Ana", relation="lives in", object="Kochi", id="new", supersedes=("old",))]
        )
        assert facts_of(db, "Ana") == ["new"]
        db.admin.flush()
        assert facts_of(db, "Ana") == ["new"]
        assert facts_of(db, "Pune") == []
        db.remove(["new"])
        db.admin.flush()
        assert facts_of(db, "Ana") == []


def test_the_facts_of_each_tenant_are_a_group(tmp_path: Path, falkordb: FalkorProcess) -> None:
    with sennit.open(on_falkordb(tmp_path / "db", falkordb)(), privacy__open=True) as db:
        for tenant in ("", "one", "two"):
            fact = sennit.Fact(subject="Ana", relation="knows", object=f"Ben {tenant}", tenant=tenant, id="f")
            db.add_facts([fact])
        db.admin.flush()
        assert len(facts_of(db, "Ana")) == 3
        db.remove(["f"])
        db.admin.flush()
        assert len(facts_of(db, "Ana")) == 2


def test_a_graph_that_is_down_degrades_the_answer_and_comes_back(
    tmp_path: Path, falkordb: FalkorProcess
) -> None:
    with sennit.open(on_falkordb(tmp_path / "db", falkordb)()) as db:
        db.add_facts([sennit.Fact(subject="Ana", relation="lives in", object="Pune", id="f")])
        db.admin.flush()
        falkordb.kill()
        try:
            assert any(
                one.source == "graph" for one in db.search("where does Ana live", recipe="memory").degraded
            )
            db.add_facts([sennit.Fact(subject="Ana", relation="works in", object="Goa", id="g")])
        finally:
            falkordb.start()
        assert not db.search("where does Ana live", recipe="memory").degraded
        db.admin.flush()
        assert set(facts_of(db, "Ana")) == {"f", "g"}


TENANTS_ONE_IN = 60
"""The indexes of a group are made for each tenant, which takes a second. The server sees only a hash of its name."""


def test_every_naughty_string_in_every_part_of_a_fact(
    tmp_path: Path, falkordb: FalkorProcess, naughty_strings: list[str]
) -> None:
    with sennit.open(on_falkordb(tmp_path / "db", falkordb)()) as db:
        assert_facts_survive(db, naughty_strings, TENANTS_ONE_IN)


def test_every_naughty_string_in_every_part_of_a_fact_on_neo4j(
    tmp_path: Path, neo4j: Neo4jProcess, naughty_strings: list[str]
) -> None:
    with sennit.open(on_neo4j(tmp_path / "db", neo4j)()) as db:
        assert_facts_survive(db, naughty_strings, TENANTS_ONE_IN)


def test_a_graph_that_was_reset_is_filled_again(tmp_path: Path, falkordb: FalkorProcess) -> None:
    with sennit.open(on_falkordb(tmp_path / "db", falkordb)()) as db:
        db.add_facts([sennit.Fact(subject="Ana", relation="lives in", object="Pune", id="f")])
        db.admin.flush()
        facts = db.backend.servers["graphiti"].facts  # type: ignore[attr-defined]
        facts.reset()
        assert facts.applied() == 0
        with pytest.raises(sennit.SennitError, match="has lost changes"):
            facts_of(db, "Ana")
        db.admin.flush()
        assert facts_of(db, "Ana") == ["f"]
