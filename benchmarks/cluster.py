"""The proof of the cluster: three OpenSearch nodes lose one and then two of them while records are written and searched.

    python -m benchmarks.cluster [--passages 100000]

With one node gone, no search fails or is degraded, no confirmed write is lost, and a search of everything finds
everything. With two gone, answers say that they are degraded. After both are back, they are complete again.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from scripts.servers.opensearch import OpenSearchCluster, opensearch

import sennit
from benchmarks.corpus import load_corpus
from sennit.analysis import query_terms
from sennit.settings import load_settings
from sennit.stores.contract import BM25, KeywordQuery

MARK: Final = "clusterproof"
"""A word that every record has, so that one search can ask for all of them."""

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

    def run_for(self, searches: int, batches: int) -> None:
        """Wait until so many more searches and batches are done."""
        until = self.searches + searches, len(self.written) + batches * BATCH
        while (self.searches < until[0] or len(self.written) < until[1]) and not self.errors:
            self._stop.wait(0.02)

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


def settings_for(cluster: OpenSearchCluster, **overrides: Any) -> Any:
    """The settings of a database with both roles on a cluster of three."""
    return load_settings(
        overrides={
            "roles.keyword": "opensearch",
            "roles.vector": "opensearch",
            "opensearch.hosts": cluster.urls,
            "opensearch.shards": 3,
            "opensearch.replicas": 1,
            "store.flush_at": 200,
            "search.deadline": 20.0,
            "privacy.open": True,
            **overrides,
        }
    )


def found_everywhere(db: sennit.Database) -> int:
    """How many records one keyword search finds."""
    query = KeywordQuery([(term.hash, 1.0) for term in query_terms(MARK)], BM25(), MARK)
    with db.store.snapshot() as snapshot:
        return len(db.backend.keyword.search(snapshot, query, snapshot.count() + 1).keys)


def prove(
    cluster: OpenSearchCluster,
    folder: Path,
    texts: Sequence[str],
    queries: Sequence[str],
    *,
    searches: int,
    prefix: str,
) -> dict[str, Any]:
    """Run the proof and return what was seen. Nothing is asserted here."""
    seen: dict[str, Any] = {"passages": len(texts)}
    with sennit.open(folder, settings=settings_for(cluster, **{"opensearch.prefix": prefix})) as db:
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
        cluster.wait_for("wait_for_status=green")
        with Load(db, queries) as load:
            load.run_for(searches, 5)
            cluster.nodes[0].kill()
            load.run_for(searches, 5)
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
        cluster.start()
        db.admin.flush()
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
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--searches", type=int, default=1000)
    arguments = parser.parse_args()
    corpus = load_corpus(arguments.passages, 500)
    with opensearch(3) as cluster, tempfile.TemporaryDirectory() as folder:
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
