"""OpenSearch beside a hand-written client, and beside the embedded indexes.

    python -m benchmarks.servers_opensearch [--passages 20000] [--nodes 1] [--questions 500]

The hand-written client asks the same server for the same thing: one `_msearch` with a query of the same terms and a query
of the same vector, fused by reciprocal ranks, ten texts read from the same SQLite. Both are timed in turns, in one run.
Then each question is asked of a database in a folder with the same records, and the ten hits are compared.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np
from scripts.servers.opensearch import OpenSearchCluster, opensearch

import sennit
from benchmarks.corpus import Corpus, load_corpus
from sennit.analysis import query_terms
from sennit.settings import load_settings

CANDIDATES: Final = 50
RRF_K: Final = 60


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=1)
    arguments = parser.parse_args()
    corpus = load_corpus(arguments.passages, arguments.questions)
    records = [
        sennit.Record(id=str(n), text=text) for n, text in enumerate(corpus.texts[: arguments.passages])
    ]
    with opensearch(arguments.nodes) as cluster, tempfile.TemporaryDirectory() as folder:
        seen = measure(cluster, Path(folder), records, corpus)
    print(json.dumps(seen, indent=2))
    return 0


def measure(
    cluster: OpenSearchCluster, folder: Path, records: Sequence[sennit.Record], corpus: Corpus
) -> dict[str, Any]:
    """Build both databases, time searches and compare answers."""
    replicas = min(1, len(cluster.nodes) - 1)
    settings = load_settings(
        overrides={
            "roles.keyword": "opensearch",
            "roles.vector": "opensearch",
            "opensearch.hosts": cluster.urls,
            "opensearch.shards": len(cluster.nodes),
            "opensearch.replicas": replicas,
            "privacy.open": True,
            "search.deadline": 30.0,
        }
    )
    with (
        sennit.open(
            folder / "embedded", settings=load_settings(overrides={"privacy.open": True})
        ) as embedded,
        sennit.open(folder / "server", settings=settings) as db,
        httpx.Client(base_url=cluster.urls[0], timeout=60) as client,
    ):
        for start in range(0, len(records), 5000):
            embedded.add(records[start : start + 5000])
        embedded.admin.optimise()
        began = time.perf_counter()
        for start in range(0, len(records), 5000):
            db.add(records[start : start + 5000])
        db.admin.flush()
        seconds = time.perf_counter() - began
        for index in (db.backend.keyword, db.backend.vector):
            assert index.capabilities.waits
        client.post("/sennit-*/_forcemerge?max_num_segments=1", timeout=600)
        client.post("/sennit-*/_refresh")
        stats = client.get("/sennit-*/_stats/store").json()["indices"]
        size = {
            kind: sum(
                one["primaries"]["store"]["size_in_bytes"] for name, one in stats.items() if kind in name
            )
            for kind in ("keyword", "vector")
        }
        return {
            "records": len(records),
            "nodes": len(cluster.nodes),
            "build_seconds": round(seconds, 1),
            "bytes_per_record": {kind: round(total / len(records)) for kind, total in size.items()},
            **time_searches(db, client, corpus.queries),
            **compare(db, embedded, corpus.queries),
        }


def time_searches(db: sennit.Database, client: httpx.Client, queries: Sequence[str]) -> dict[str, Any]:
    """Ask every question of sennit and of the hand-written client, in turns."""
    names = {kind: db_index_name(client, kind) for kind in ("keyword", "vector")}
    times: dict[str, list[float]] = {"sennit": [], "hand_written": []}
    for number, query in enumerate(queries):

        def ours(query: str = query) -> None:
            found = db.search(query, recipe="rrf", limit=10)
            assert not found.degraded, found.degraded

        def theirs(query: str = query) -> None:
            hand_written(db, client, names, query)

        turns = [("sennit", ours), ("hand_written", theirs)]
        for name, ask in turns if number % 2 else reversed(turns):
            began = time.perf_counter()
            ask()
            times[name].append((time.perf_counter() - began) * 1000)
    warm = {name: sorted(all_times[len(all_times) // 5 :]) for name, all_times in times.items()}
    p50 = {name: one[len(one) // 2] for name, one in warm.items()}
    return {
        "p50_ms": {name: round(value, 2) for name, value in p50.items()},
        "p95_ms": {name: round(one[int(len(one) * 0.95)], 2) for name, one in warm.items()},
        "ratio": round(p50["sennit"] / p50["hand_written"], 2),
    }


def db_index_name(client: httpx.Client, kind: str) -> str:
    """The name of the index of a role."""
    (name,) = client.get(f"/_alias/sennit-*-{kind}-*").json()
    return str(name)


def hand_written(db: sennit.Database, client: httpx.Client, names: dict[str, str], query: str) -> list[str]:
    """What a careful user would write for this server."""
    should = [{"term": {"terms": f"{term.hash:016x}"}} for term in query_terms(query)]
    with db.store.snapshot() as snapshot:
        vector = db.embeddings.embed_query(snapshot.model, query).tolist()
        shape = {"_source": False, "track_total_hits": False, "docvalue_fields": ["key"], "size": CANDIDATES}
        lines = [
            {"index": names["keyword"]},
            {**shape, "query": {"bool": {"should": should}}},
            {"index": names["vector"]},
            {**shape, "query": {"knn": {"vector": {"vector": vector, "k": 100}}}},
        ]
        answers = client.post(
            "/_msearch",
            content="".join(json.dumps(line) + "\n" for line in lines),
            headers={"Content-Type": "application/x-ndjson"},
        ).json()["responses"]
        scores: dict[int, float] = {}
        for answer in answers:
            for rank, hit in enumerate(answer["hits"]["hits"], 1):
                key = hit["fields"]["key"][0]
                scores[key] = scores.get(key, 0.0) + 1 / (RRF_K + rank)
        best = sorted(scores, key=scores.__getitem__, reverse=True)[:10]
        found = snapshot.records(best)
        return [found[key].text for key in best]


def compare(db: sennit.Database, embedded: sennit.Database, queries: Sequence[str]) -> dict[str, Any]:
    """How many of the embedded database's ten hits are found, and how alike their order is, by recipe."""
    out: dict[str, Any] = {}
    for recipe in ("keyword", "vector", "rrf"):
        recalls, correlations = [], []
        for query in queries:
            ours = [hit.id for hit in db.search(query, recipe=recipe, limit=10)]
            theirs = [hit.id for hit in embedded.search(query, recipe=recipe, limit=10)]
            if not theirs:
                continue
            common = [name for name in theirs if name in ours]
            recalls.append(len(common) / len(theirs))
            if len(common) > 2:
                ranks = np.argsort(np.argsort([ours.index(name) for name in common]))
                correlations.append(float(np.corrcoef(ranks, np.arange(len(common)))[0, 1]))
        out[recipe] = {
            "recall_of_the_same_ten": round(float(np.mean(recalls)), 4),
            "rank_correlation": round(float(np.mean(correlations)), 4),
        }
    return {"against_embedded": out, "questions": len(queries)}


if __name__ == "__main__":
    sys.exit(main())
