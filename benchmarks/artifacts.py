"""The recipe `artifacts` over four collections: python -m benchmarks.artifacts --size 100000

Passages of text on this machine (benchmarks/corpus.py) are distributed over artifacts, chunks, memory and history. A
tenth of them is hidden from ordinary callers. Each search covers all four collections: without a filter, with filters
that 1 %, 10 % and 50 % of the records pass, and as a caller who may not see everything.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import sennit
from benchmarks.corpus import GROUP_COUNT, Corpus, load_corpus
from benchmarks.measurements import vary_query
from sennit.privacy import OWNER

WRITE_BATCH_SIZE: Final = 5000
LIMIT: Final = 5
INCLUDE: Final = ("memory", "history")


def build_records(corpus: Corpus) -> Iterator[sennit.Record]:
    """A fifth of the passages as documents, two fifths as chunks, the rest as memories and conversation turns."""
    for number, text in enumerate(corpus.texts):
        collection = ("artifacts", "artifact_chunks", "artifact_chunks", "memory", "history")[number % 5]
        is_chunk = collection == "artifact_chunks"
        yield sennit.Record(
            id=f"{number:07}",
            text=text,
            collection=collection,
            parent=f"document-{number // 10}" if is_chunk else None,
            position=number % 10 if is_chunk else None,
            sensitivity="private" if number % 10 == 7 else "normal",
            # Divided by five first, so that each group has records of each collection.
            metadata={"g": number // 5 % GROUP_COUNT},
        )


SearchArguments = dict[str, Any]


def build_cases() -> dict[str, SearchArguments]:
    """What is measured: for each case, the arguments of a search."""
    as_owner: SearchArguments = {"caller": OWNER}
    return {
        "everything visible": as_owner,
        "a tenth hidden from the caller": {},
        **{f"filter that {share} % pass": {**as_owner, "filters": f"g < {share}"} for share in (1, 10, 50)},
        "explained": {**as_owner, "explain": True},
    }


def measure(db: sennit.Database, queries: Sequence[str]) -> Iterator[tuple[str, float, float, int]]:
    """For each case: p50 and p99 in milliseconds, and the number of results that were not full.

    Every query runs in every case before the next query, so that other load on the machine affects all cases alike.
    """
    cases = build_cases()
    times: dict[str, list[float]] = {name: [] for name in cases}
    not_full = dict.fromkeys(cases, 0)
    for query in queries:
        for number, (name, search_arguments) in enumerate(cases.items()):
            started = time.perf_counter()
            found = db.search(
                vary_query(query, number),
                recipe="artifacts",
                limit=LIMIT,
                include=INCLUDE,
                **search_arguments,
            )
            times[name].append((time.perf_counter() - started) * 1000)
            not_full[name] += len(found) < LIMIT
    for name, milliseconds in times.items():
        yield (
            name,
            statistics.median(milliseconds),
            statistics.quantiles(milliseconds, n=100)[98],
            not_full[name],
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Build the database, run the queries, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=300)
    options = parser.parse_args(arguments)
    corpus = load_corpus(options.size, options.queries)
    with (
        tempfile.TemporaryDirectory(prefix="sennit-bench-artifacts-") as folder,
        sennit.open(Path(folder) / "db") as db,
    ):
        batch: list[sennit.Record] = []
        for record in build_records(corpus):
            batch.append(record)
            if len(batch) == WRITE_BATCH_SIZE:
                db.add(batch)
                batch = []
        db.add(batch)
        db.admin.optimise()
        list(measure(db, corpus.trial_queries[:30]))
        print(f"{options.size:,} passages in four collections, limit {LIMIT}")
        print("| | p50 ms | p99 ms | results that were not full |")
        print("|---|---|---|---|")
        for name, p50, p99, not_full in measure(db, corpus.queries):
            print(f"| {name} | {p50:.2f} | {p99:.2f} | {not_full} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
