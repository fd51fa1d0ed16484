"""The conformance kit on SQLite, on the naive backend, and on indexes that lag behind on a server."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

import sennit.testing.naive
from sennit.stores.buffered_index import BufferedKeyword, BufferedVector, IndexFeeder, for_every_model
from sennit.stores.contract import Backend, IndexOf, Model
from sennit.stores.open import open_backend
from sennit.testing import GraphConformance, KeywordConformance, RecordsConformance, VectorConformance
from sennit.testing.indexes import Outage
from sennit.testing.naive import naive_backend
from sennit.testing.records import NewTarget, Target

from .dict_server import DictKeywordServer, DictServers, DictVectorServer

MAX_LINES = 400
"""Lines of the naive backend, with imports, comments and blank lines. A contract that needs more of a backend is too large."""


class TestSqlite(RecordsConformance):
    @pytest.fixture
    def new_target(self, tmp_path: Path) -> NewTarget:
        numbers = count()
        return lambda: str(tmp_path / f"db{next(numbers)}")


class TestLocalKeyword(KeywordConformance):
    new_target = TestSqlite.new_target


class TestLocalVector(VectorConformance):
    new_target = TestSqlite.new_target


class TestLocalGraph(GraphConformance):
    new_target = TestSqlite.new_target


class TestNaive(RecordsConformance):
    @pytest.fixture
    def new_target(self) -> NewTarget:
        return new_naive_target


class TestNaiveKeyword(KeywordConformance):
    new_target = TestNaive.new_target


class TestNaiveVector(VectorConformance):
    new_target = TestNaive.new_target


class TestNaiveGraph(GraphConformance):
    new_target = TestNaive.new_target


class _OnServers:
    """Keyword and vector index on servers that lag, know few filters, and can fail."""

    @pytest.fixture
    def servers(self) -> DictServers:
        return DictServers()

    @pytest.fixture
    def outage(self, servers: DictServers) -> Outage:
        return servers.outage


class TestServersOnNaiveRecords(_OnServers, VectorConformance):
    @pytest.fixture
    def new_target(self, servers: DictServers) -> NewTarget:
        def new() -> Target:
            local, machines = naive_backend(), Machines(servers)
            return lambda: on_servers(local, machines)

        return new


class TestKeywordServerOnNaiveRecords(_OnServers, KeywordConformance):
    new_target = TestServersOnNaiveRecords.new_target


class TestServersOnSqlite(_OnServers, VectorConformance):
    @pytest.fixture
    def new_target(self, servers: DictServers, tmp_path: Path) -> NewTarget:
        numbers = count()

        def new() -> Target:
            folder, machines = tmp_path / f"db{next(numbers)}", Machines(servers)
            return lambda: on_servers(open_backend(folder), machines)

        return new


class Machines:
    """The servers of one database; each has its own."""

    def __init__(self, servers: DictServers) -> None:
        self.keyword, self.vector = DictKeywordServer(servers), DictVectorServer(servers)

    def vector_index(self, model: Model | None) -> DictVectorServer | None:
        """The tests never change the model."""
        return None if model is None else self.vector


def new_naive_target() -> Target:
    backend = naive_backend()
    return lambda: backend


def on_servers(local: Backend, machines: Machines) -> Backend:
    """The records of a backend, with its keyword and vector index on servers."""
    keyword = for_every_model(machines.keyword, machines.keyword.capabilities)
    vector = IndexOf(machines.vector.server, machines.vector.capabilities, machines.vector_index)
    return Backend(
        records=local.records,
        keyword=BufferedKeyword(keyword),
        vector=BufferedVector(vector),
        graph=local.graph,
        upkeep=(
            *local.upkeep,
            IndexFeeder(local.records, keyword, retry_seconds=()),
            IndexFeeder(local.records, vector, retry_seconds=()),
        ),
    )


def test_the_naive_backend_is_short() -> None:
    source = Path(sennit.testing.naive.__file__).read_text(encoding="utf-8")
    assert len(source.splitlines()) < MAX_LINES


def test_a_trace_says_whose_scores_and_statistics_an_index_has() -> None:
    backend = on_servers(naive_backend(), Machines(DictServers()))
    for target, expected in (
        (backend, {"keyword": {"scores": "own", "statistics": "none"}}),
        (naive_backend(), None),
    ):
        with sennit.open(target) as db:
            db.add([sennit.Record(id="a", text="river")])
            trace = db.search("river", explain=True).trace
            assert trace is not None
            assert trace.state.get("indexes") == expected
