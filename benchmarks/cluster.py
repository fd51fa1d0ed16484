"""The proof of the cluster: three nodes lose one and then two of them while records are written and searched.

    python -m benchmarks.cluster [--server opensearch|qdrant] [--passages 100000]

With one node gone, no search fails or is degraded, no confirmed write is lost, and a search of everything finds
everything. With two gone, answers say that they are degraded. After both are back, they are complete again. Searches per second
are counted with all nodes and with one gone, beside a writer.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from scripts.servers.opensearch import OpenSearchCluster, opensearch
from scripts.servers.process import running
from scripts.servers.qdrant import QdrantCluster

import sennit
from benchmarks.corpus import load_corpus
from sennit.analysis import query_terms
from sennit.errors import SennitError
from sennit.settings import load_settings
from sennit.stores.contract import BM25, KeywordQuery

MARK: Final = "clusterproof"
"""A word that every record has, so that one search can ask for all of them."""

BACK_SECONDS: Final = 300.0
"""How long a cluster may take to be complete again."""

PATIENCE_SECONDS: Final = 60
"""How long a node may take for an answer: a machine that is busy with three nodes is slow, and a dead node refuses at once."""

READERS: Final = 2
BATCH: Final = 20


@dataclass(slots=True)
class Load:
    """Writers and readers in the background, and what they saw."""

    db: sennit.Database
    queries: Sequence[str]
    written: list[str] = field(default_factory=list)
    searches: int = 0
    degraded: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    milliseconds: list[float] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Load:
        self._threads = [threading.Thread(target=self._repeat, args=(self._write,))]
        self._threads += [threading.Thread(target=self._repeat, args=(self._read,)) for _ in range(READERS)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def run_for(self, searches: int, batches: int) -> float:
        """Wait until so many more searches and batches are done; returns the searches per second."""
        before, began = self.searches, time.perf_counter()
        until = self.searches + searches, len(self.written) + batches * BATCH
        while (self.searches < until[0] or len(self.written) < until[1]) and not self.errors:
            self._stop.wait(0.02)
        return round((self.searches - before) / (time.perf_counter() - began), 1)

    def _repeat(self, action: Callable[[int], None]) -> None:
        number = 0
        while not self._stop.is_set():
            try:
                action(number)
            except Exception as error:  # noqa: BLE001 - every failure counts
                self.errors.append(f"{type(error).__name__}: {error}")
                return
            number += 1

    def _write(self, number: int) -> None:
        records = [
            sennit.Record(id=f"w{len(self.written)}-{n}", text=f"{MARK} batch{number} note{n}")
            for n in range(BATCH)
        ]
        self.db.add(records)
        self.written.extend(record.id for record in records)
        # Writers of real life pause; without it they only fill the buffer.
        self._stop.wait(0.05)

    def _read(self, number: int) -> None:
        began = time.perf_counter()
        found = self.db.search(self.queries[number % len(self.queries)], recipe="rrf", limit=10)
        with self._lock:
            self.milliseconds.append((time.perf_counter() - began) * 1000)
            self.searches += 1
            self.degraded += [f"{one.source}: {one.reason}" for one in found.degraded]


Cluster: TypeAlias = OpenSearchCluster | QdrantCluster


def settings_for(cluster: Cluster, prefix: str) -> Any:
    """The settings of a database with both roles on a cluster of three, with two copies of each of three shards."""
    if isinstance(cluster, OpenSearchCluster):
        named: dict[str, Any] = {
            "roles.keyword": "opensearch",
            "roles.vector": "opensearch",
            "opensearch.hosts": cluster.urls,
            "opensearch.prefix": prefix,
            "opensearch.shards": 3,
            "opensearch.replicas": 1,
            "opensearch.timeout": PATIENCE_SECONDS,
        }
    else:
        named = {
            "roles.keyword": "qdrant",
            "roles.vector": "qdrant",
            "qdrant.urls": cluster.urls,
            "qdrant.collection_prefix": prefix,
            "qdrant.shard_number": 3,
            "qdrant.replication_factor": 2,
            "qdrant.timeout_seconds": PATIENCE_SECONDS,
        }
    shared = {"store.flush_at": 200, "search.deadline": 120.0, "privacy.open": True}
    return load_settings(overrides={**named, **shared})


def wait_for_copies(cluster: Cluster) -> None:
    """Wait until every shard has its copies; Qdrant creates them before it takes the first record."""
    if isinstance(cluster, OpenSearchCluster):
        cluster.wait_for("wait_for_status=green")


def bring_back(cluster: Cluster, db: sennit.Database) -> None:
    """Start the nodes that are gone, and wait until the cluster takes writes again."""
    if isinstance(cluster, OpenSearchCluster):
        cluster.start()
    else:
        cluster.restart()
    end = time.monotonic() + BACK_SECONDS
    while True:
        try:
            db.admin.flush()
            if not db.search(MARK, recipe="rrf").degraded:
                return
        except SennitError:
            # A node that has just joined again may still refuse a write.
            if time.monotonic() > end:
                raise
        threading.Event().wait(0.2)


def found_everywhere(db: sennit.Database) -> int:
    """How many records one keyword search finds."""
    query = KeywordQuery([(term.hash, 1.0) for term in query_terms(MARK)], BM25(), MARK)
    with db.store.snapshot() as snapshot:
        return len(db.backend.keyword.search(snapshot, query, snapshot.count() + 1).keys)


def prove(
    cluster: Cluster,
    folder: Path,
    texts: Sequence[str],
    queries: Sequence[str],
    *,
    searches: int,
    prefix: str,
) -> dict[str, Any]:
    """Run the proof and return what was seen. Nothing is asserted here."""
    seen: dict[str, Any] = {"passages": len(texts)}
    with sennit.open(folder, settings=settings_for(cluster, prefix)) as db:
        began = time.perf_counter()
        for start in range(0, len(texts), 5000):
            db.add(
                [
                    sennit.Record(id=f"p{start + n}", text=f"{MARK} {text}")
                    for n, text in enumerate(texts[start : start + 5000])
                ]
            )
        db.admin.flush()
        seen["build_seconds"] = round(time.perf_counter() - began, 1)
        wait_for_copies(cluster)
        with Load(db, queries) as load:
            seen["searches_per_second"] = {"three_nodes": load.run_for(searches, 5)}
            cluster.nodes[0].kill()
            seen["searches_per_second"]["one_killed"] = load.run_for(searches, 5)
        seen["one_killed"] = _report(load)
        db.admin.flush()
        seen["one_killed"] |= {"records": db.count(), "found": found_everywhere(db)}
        cluster.nodes[1].kill()
        result = db.search(queries[0], recipe="rrf", limit=10)
        db.add([sennit.Record(id="while-two-are-gone", text=f"{MARK} written without a cluster")])
        seen["two_killed"] = {
            "hits": len(result),
            "degraded": sorted({f"{one.source}: {one.reason}" for one in result.degraded}),
        }
        began = time.perf_counter()
        bring_back(cluster, db)
        result = db.search(f"{MARK} without a cluster", recipe="rrf", limit=10)
        seen["back"] = {
            "seconds": round(time.perf_counter() - began, 1),
            "records": db.count(),
            "found": found_everywhere(db),
            "degraded": [one.reason for one in result.degraded],
            "finds_the_last_write": "while-two-are-gone" in {hit.id for hit in result},
        }
    return seen


def _report(load: Load) -> dict[str, Any]:
    times = sorted(load.milliseconds)
    return {
        "searches": load.searches,
        "writes": len(load.written),
        "errors": load.errors,
        "degraded": load.degraded,
        "p50_ms": round(times[len(times) // 2], 1),
        "p99_ms": round(times[int(len(times) * 0.99)], 1),
        "max_ms": round(times[-1], 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--server", default="opensearch", choices=("opensearch", "qdrant"))
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--searches", type=int, default=1000)
    arguments = parser.parse_args()
    corpus = load_corpus(arguments.passages, 500)
    starting: contextlib.AbstractContextManager[Cluster] = (
        opensearch(3) if arguments.server == "opensearch" else running(QdrantCluster(3))
    )
    with starting as cluster, tempfile.TemporaryDirectory() as folder:
        seen = prove(
            cluster,
            Path(folder) / "db",
            corpus.texts[: arguments.passages],
            corpus.queries,
            searches=arguments.searches,
            prefix="proof",
        )
    print(json.dumps(seen, indent=2, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
