"""Postgres as the home of the indexes: time beside a hand-written client, size, and agreement with the embedded indexes.

    python -m benchmarks.servers_postgres --size 100000
    python -m benchmarks.servers_postgres --scifact ../shared/data/scifact_train

A server is started for the run (scripts/servers/postgres.py). The hand-written client embeds the query, sends the same two
searches to the same tables in one pipeline of psycopg, and fuses two lists of keys; it reads no record. Both are timed by
turns, query by query.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import psycopg
from scripts.servers.postgres import PostgresServer

import sennit
from benchmarks.corpus import load_corpus, make_embedder
from sennit.analysis import query_terms
from sennit.settings import load_settings
from sennit.stores.contract import BM25, KeywordQuery
from sennit.stores.open import open_backend
from sennit.stores.servers.postgres.text_vectors import field_weights, text_query

LIMIT: Final = 10
CANDIDATES: Final = 116
"""What a search asks each index for: a hundred, and some for keys that the snapshot may reject."""
BATCH: Final = 1000
WARM_UP: Final = 20
RRF_K: Final = 60


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one of the two measurements and print it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--size", type=int, default=20_000, help="passages")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--bm25", default="none", choices=("none", "pg_search", "pg_textsearch"))
    parser.add_argument("--scifact", type=Path, help="the folder of a collection: compare answers instead")
    options = parser.parse_args(arguments)
    server = PostgresServer(preload="" if options.bm25 == "none" else options.bm25)
    try:
        server.start()
        if options.bm25 != "none":
            with psycopg.connect(server.dsn(), autocommit=True) as connection:
                connection.execute(f"CREATE EXTENSION {options.bm25}".encode())
        with tempfile.TemporaryDirectory() as folder:
            found = (
                compare_answers(server.dsn(), Path(folder), options.scifact, options.queries, options.bm25)
                if options.scifact
                else measure_times(server.dsn(), Path(folder), options.size, options.queries, options.bm25)
            )
    finally:
        server.close()
    print(json.dumps(found, indent=2))
    return 0


def open_on(url: str, folder: Path, bm25: str) -> sennit.Database:
    """A database in a folder with both indexes on Postgres."""
    named = {
        "roles.keyword": "postgres",
        "roles.vector": "postgres",
        "postgres.url": url,
        "postgres.bm25": bm25,
    }
    settings = load_settings(overrides={**named, "privacy.open": True, "store.flush_at": 1_000_000})
    return sennit.open(open_backend(folder, settings), settings=settings)


def measure_times(url: str, folder: Path, size: int, query_count: int, bm25: str) -> dict[str, Any]:
    """Build time, bytes per record, and the median time of a fused search by both clients."""
    corpus = load_corpus(size, query_count + WARM_UP)
    with open_on(url, folder / "db", bm25) as db:
        began = time.perf_counter()
        for start in range(0, size, BATCH):
            texts = corpus.texts[start : start + BATCH]
            db.add([sennit.Record(id=f"p{start + at}", text=text) for at, text in enumerate(texts)])
        added = time.perf_counter()
        db.admin.flush()
        # Indexes are built when no full batch follows.
        db.admin.flush()
        built = time.perf_counter()
        sizes = table_sizes(url)
        out: dict[str, Any] = {
            "passages": size,
            "bm25": bm25,
            "add_seconds": round(added - began, 1),
            "index_seconds": round(built - added, 1),
            "bytes_per_record": {name: round(total / size) for name, total in sizes.items()},
        }
        searches: dict[str, Callable[[str], Any]] = {"sennit": lambda query: db.search(query, limit=LIMIT)}
        if bm25 == "none":
            searches["by hand"] = HandWritten(url).search
        times: dict[str, list[float]] = {name: [] for name in searches}
        for number, query in enumerate(corpus.queries):
            # By turns, and each of them first every other time: what one warms, the other finds warm.
            order = list(searches) if number % 2 else list(reversed(searches))
            for name in order:
                start_time = time.perf_counter()
                searches[name](query)
                if number >= WARM_UP:
                    times[name].append(time.perf_counter() - start_time)
        assert not db.search(corpus.queries[0]).degraded
    out["p50_milliseconds"] = {name: round(statistics.median(one) * 1000, 2) for name, one in times.items()}
    if "by hand" in times:
        ratios = [ours / theirs for ours, theirs in zip(times["sennit"], times["by hand"], strict=True)]
        out["median_ratio"] = round(statistics.median(ratios), 2)
    return out


def table_sizes(url: str) -> dict[str, int]:
    """The bytes of each table of an index, with its indexes."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT split_part(relname, '_', 1), pg_total_relation_size(oid) FROM pg_class "
            "WHERE relnamespace = 'sennit_index'::regnamespace AND relkind = 'r' AND relname ~ '^(keyword|vector)_'"
        ).fetchall()
    return dict(rows)


class HandWritten:
    """What somebody would write with psycopg for one table of words and one of vectors."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("SET search_path = sennit_index, public")
        self._connection.execute("SET jit = off")
        self._connection.execute("SET plan_cache_mode = force_custom_plan")
        self._connection.execute("SET hnsw.iterative_scan = relaxed_order")
        self._connection.execute(f"SET hnsw.ef_search = {CANDIDATES}")
        names = [row[0] for row in self._connection.execute("SELECT table_name FROM indexes ORDER BY 1")]
        keyword, vector = names
        self._words = (
            "SELECT key, ts_rank(%(weights)s::float4[], terms, %(any)s::tsquery, 1) "
            f"+ (terms @@ %(all)s::tsquery)::int AS score FROM {keyword} "
            f"WHERE terms @@ %(any)s::tsquery AND tenant IS NULL ORDER BY score DESC, key LIMIT {CANDIDATES}"
        )
        self._vectors = (
            f"SELECT key, 1 - (embedding <=> %(vector)s::halfvec) FROM {vector} WHERE tenant IS NULL "
            f"ORDER BY embedding <=> %(vector)s::halfvec LIMIT {CANDIDATES}"
        )
        self._embedder = make_embedder()

    def search(self, query: str) -> list[int]:
        """The keys of the best records of both lists, fused by rank."""
        terms = KeywordQuery([(one.hash, 1.0) for one in query_terms(query)], BM25())
        words = {
            "weights": field_weights(BM25()),
            "any": text_query(terms, "|"),
            "all": text_query(terms, "&"),
        }
        vector = np.asarray(self._embedder.embed_query(query)).tolist()
        with self._connection.pipeline():
            first = self._connection.execute(self._words.encode(), words)
            second = self._connection.execute(self._vectors.encode(), {"vector": str(vector)})
            lists = [first.fetchall(), second.fetchall()]
        scores: dict[int, float] = {}
        for rows in lists:
            for rank, (key, _) in enumerate(rows, 1):
                scores[key] = scores.get(key, 0.0) + 1 / (RRF_K + rank)
        return sorted(scores, key=lambda key: (-scores[key], key))[:LIMIT]


def compare_answers(url: str, folder: Path, data: Path, count: int, bm25: str) -> dict[str, Any]:
    """How the answers on Postgres agree with those of the embedded indexes, and how good each are."""
    lines = [json.loads(line) for line in (data / "corpus.jsonl").open(encoding="utf-8")]
    queries = {
        one["_id"]: one["text"] for one in map(json.loads, (data / "queries.jsonl").open(encoding="utf-8"))
    }
    relevant: dict[str, set[str]] = {}
    for line in (data / "qrels.tsv").read_text().splitlines()[1:]:
        query, document, grade = line.split("\t")
        if int(grade) > 0:
            relevant.setdefault(query, set()).add(document)
    records = [sennit.Record(id=one["_id"], title=one.get("title", ""), text=one["text"]) for one in lines]
    chosen = sorted(query for query in relevant if query in queries)[:count]
    out: dict[str, Any] = {"records": len(records), "questions": len(chosen), "bm25": bm25}
    local_settings = load_settings(overrides={"privacy.open": True})
    with (
        sennit.open(open_backend(folder / "local", local_settings), settings=local_settings) as local,
        open_on(url, folder / "remote", bm25) as remote,
    ):
        for db in (local, remote):
            for start in range(0, len(records), BATCH):
                db.add(records[start : start + BATCH])
            db.admin.flush()
        for recipe in ("keyword", "vector", "default"):
            shares, correlations, gains = [], [], {"local": [], "postgres": []}
            for query in chosen:
                ours, theirs = (
                    [hit.id for hit in db.search(queries[query], recipe=recipe, limit=10)]
                    for db in (remote, local)
                )
                shares.append(len(set(ours) & set(theirs)) / max(1, len(theirs)))
                correlations.append(rank_correlation(ours, theirs))
                gains["postgres"].append(ndcg(ours, relevant[query]))
                gains["local"].append(ndcg(theirs, relevant[query]))
            known = [one for one in correlations if one is not None]
            out[recipe] = {
                "same_ten": round(statistics.mean(shares), 3),
                "rank_correlation": round(statistics.mean(known), 3),
                "ndcg@10": {name: round(statistics.mean(values), 3) for name, values in gains.items()},
            }
    return out


def rank_correlation(ours: Sequence[str], theirs: Sequence[str]) -> float | None:
    """Kendall's tau of the records that both lists have; None for fewer than two."""
    both = [one for one in ours if one in set(theirs)]
    pairs = [(a, b) for at, a in enumerate(both) for b in both[at + 1 :]]
    if not pairs:
        return None
    agree = sum(theirs.index(a) < theirs.index(b) for a, b in pairs)
    return 2 * agree / len(pairs) - 1


def ndcg(found: Sequence[str], relevant: set[str]) -> float:
    """The normalised discounted cumulative gain of ten results."""
    gain = sum(1 / np.log2(at + 2) for at, one in enumerate(found[:10]) if one in relevant)
    ideal = sum(1 / np.log2(at + 2) for at in range(min(10, len(relevant))))
    return float(gain / ideal) if ideal else 0.0


if __name__ == "__main__":
    raise SystemExit(main())
