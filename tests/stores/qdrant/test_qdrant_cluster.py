"""Three nodes, two copies of each of three shards: one node may die under load, two are said, and all comes back."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from scripts.servers.qdrant import QdrantCluster

import sennit
from sennit.analysis import query_terms
from sennit.errors import SennitError
from sennit.records import Record
from sennit.settings import load_settings
from sennit.stores.contract import BM25, KeywordQuery

from .conftest import on_qdrant

pytestmark = pytest.mark.servers

BATCH = 100
QUERY = KeywordQuery([(term.hash, 1.0) for term in query_terms("river")], BM25(), "river")


class Load:
    """Writers and readers of one database. Every answer must hold each record that its snapshot has."""

    def __init__(self, db: sennit.Database) -> None:
        self.db = db
        self.confirmed = 0
        self.searches = 0
        self.problems: list[str] = []
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(work,)) for work in (self.write, self.read, self.ask)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def run_through(self, batches: int) -> None:
        """Wait until so many more batches are confirmed, and as many searches answered."""
        confirmed, searches = self.confirmed + batches * BATCH, self.searches + batches
        end = time.monotonic() + 120
        while not self.problems and (self.confirmed < confirmed or self.searches < searches):
            assert time.monotonic() < end
            threading.Event().wait(0.05)

    def write(self) -> None:
        first = self.confirmed
        self.db.add(
            [Record(id=f"n{n}", text=f"the river rose by {n} metres") for n in range(first, first + BATCH)]
        )
        self.db.admin.flush()
        self.confirmed = first + BATCH

    def read(self) -> None:
        with self.db.store.snapshot() as snapshot:
            found = self.db.backend.keyword.search(snapshot, QUERY, 1_000_000)
            if len(found.keys) != snapshot.count():
                self.problems.append(f"found {len(found.keys)} of {snapshot.count()} records")
            self.searches += 1

    def ask(self) -> None:
        result = self.db.search("river", limit=10)
        if result.degraded or len(result) != min(10, self.db.store.count()):
            self.problems.append(f"{len(result)} hits, degraded: {result.degraded}")

    def _run(self, work: Callable[[], None]) -> None:
        while not self._stop.is_set() and not self.problems:
            try:
                work()
            except SennitError as error:
                self.problems.append(str(error))


def test_one_node_may_die_under_load_two_are_said_and_all_comes_back(
    tmp_path: Path, three_nodes: QdrantCluster
) -> None:
    settings = load_settings(overrides={"privacy.open": True})
    with sennit.open(on_qdrant(tmp_path / "db", three_nodes)(), settings=settings) as db:
        load = Load(db)
        load.write()
        load.start()
        try:
            load.run_through(3)
            three_nodes.nodes[0].kill()
            load.run_through(8)
        finally:
            load.stop()
        assert load.problems == []
        three_nodes.nodes[1].kill()
        result = db.search("river", limit=10)
        assert result.degraded
        assert {"keyword", "vector"} <= {one.source for one in result.degraded}
        db.add([Record(id="during", text="the river fell")])
        three_nodes.restart()
        end = time.monotonic() + 120
        while db.search("river").degraded:
            assert time.monotonic() < end
            threading.Event().wait(0.1)
        while True:
            # A node that has just joined again may still refuse a write.
            try:
                db.admin.flush()
                break
            except SennitError:
                assert time.monotonic() < end
        with db.store.snapshot() as snapshot:
            assert db.backend.keyword.applied(snapshot) == snapshot.seq
            found = db.backend.keyword.search(snapshot, QUERY, 1_000_000)
            names = {name.decode() for name in snapshot.ids(found.keys)}
        assert names == {"during", *(f"n{n}" for n in range(load.confirmed))}
