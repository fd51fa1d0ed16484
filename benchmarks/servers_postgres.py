"""Postgres beside a hand-written client: time of a fused search, size, build time; and agreement with the embedded indexes.

    python -m benchmarks.servers_postgres [--passages 100000] [--questions 220]
    python -m benchmarks.servers_postgres --scifact ../shared/data/scifact_train [--queries 500] [--bm25 pg_search]

A server is started for the run (scripts/servers/postgres.py). The hand-written client embeds the query, sends the same two
searches to the same tables in one pipeline of psycopg, fuses two lists of keys by reciprocal ranks, and reads ten texts from
the same SQLite.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import psycopg

import sennit
from benchmarks.server_frame import (
    BINDINGS,
    CANDIDATES,
    fill,
    fuse,
    open_database,
    rank_correlation,
    run_speed,
    serve,
)
from sennit.analysis import query_terms
from sennit.settings.servers import PostgresSettings
from sennit.stores.contract import BM25, KeywordQuery
from sennit.stores.servers.postgres.text_vectors import field_weights, text_query

PLAIN: Final = "postgres"
"""The binding with words in a tsvector and vectors in pgvector."""


def main(arguments: Sequence[str]) -> int:
    """Run one of the two measurements and print it as JSON."""
    parser = argparse.ArgumentParser(description="compare answers", add_help=False)
    parser.add_argument("--scifact", type=Path, help="the folder of a collection: compare answers instead")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--bm25", default="none", choices=("none", "pg_search", "pg_textsearch"))
    options, _ = parser.parse_known_args(arguments)
    if options.scifact is None:
        return run_speed(PLAIN, make_client, index_bytes, __doc__)
    print(json.dumps(compare_answers(options.scifact, options.queries, options.bm25), indent=2))
    return 0


def make_client(db: sennit.Database, settings: dict[str, Any]) -> Callable[[str], list[str]]:
    """What a careful user would write with psycopg for one table of words and one of vectors."""
    connection = psycopg.connect(settings["postgres.url"], autocommit=True)
    for setting in (
        "search_path = sennit_index, public",
        "jit = off",
        "plan_cache_mode = force_custom_plan",
        "hnsw.iterative_scan = relaxed_order",
        f"hnsw.ef_search = {PostgresSettings().ef_search}",
    ):
        connection.execute(f"SET {setting}".encode())
    keyword, vector = (row[0] for row in connection.execute("SELECT table_name FROM indexes ORDER BY 1"))
    by_words = (
        "SELECT key, ts_rank(%(weights)s::float4[], terms, %(any)s::tsquery, 1) "
        f"+ (terms @@ %(all)s::tsquery)::int AS score FROM {keyword} "
        f"WHERE terms @@ %(any)s::tsquery ORDER BY score DESC, key LIMIT {CANDIDATES}"
    ).encode()
    by_vector = (
        f"SELECT key, 1 - (embedding <=> %(vector)s::halfvec) FROM {vector} "
        f"ORDER BY embedding <=> %(vector)s::halfvec LIMIT {CANDIDATES}"
    ).encode()

    def search(query: str) -> list[str]:
        terms = KeywordQuery([(one.hash, 1.0) for one in query_terms(query)], BM25())
        words = {
            "weights": field_weights(BM25()),
            "any": text_query(terms, "|"),
            "all": text_query(terms, "&"),
        }
        with db.store.snapshot() as snapshot:
            nearest = {"vector": str(db.embeddings.embed_query(snapshot.model, query).tolist())}
            with connection.pipeline():
                first = connection.execute(by_words, words)
                second = connection.execute(by_vector, nearest)
                lists = [[key for key, _ in one.fetchall()] for one in (first, second)]
            best = fuse(lists)
            found = snapshot.records(best)
            return [found[key].text for key in best]

    return search


def index_bytes(_folders: list[Path], settings: dict[str, Any]) -> dict[str, int]:
    """The bytes of each table of an index, with its indexes."""
    with psycopg.connect(settings["postgres.url"]) as connection:
        rows = connection.execute(
            "SELECT split_part(relname, '_', 1), pg_total_relation_size(oid) FROM pg_class "
            "WHERE relnamespace = 'sennit_index'::regnamespace AND relkind = 'r' AND relname ~ '^(keyword|vector)_'"
        ).fetchall()
    return dict(rows)


def compare_answers(data: Path, count: int, bm25: str) -> dict[str, Any]:
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
    binding = BINDINGS[PLAIN if bm25 == "none" else bm25]
    with (
        serve(replace(binding, roles=("keyword", "vector"))) as served,
        tempfile.TemporaryDirectory() as folder,
        open_database(Path(folder) / "local") as local,
        open_database(Path(folder) / "remote", served.settings) as remote,
    ):
        for db in (local, remote):
            fill(db, records)
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


def ndcg(found: Sequence[str], relevant: set[str]) -> float:
    """The normalised discounted cumulative gain of ten results."""
    gain = sum(1 / np.log2(at + 2) for at, one in enumerate(found[:10]) if one in relevant)
    ideal = sum(1 / np.log2(at + 2) for at in range(min(10, len(relevant))))
    return float(gain / ideal) if ideal else 0.0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
