"""Records on Postgres beside records on SQLite: the same searches and writes by turns, in one run.

    python -m benchmarks.records_postgres --size 100000

A server is started for the run (scripts/servers/postgres.py); the indexes of both databases are on this machine. A round
trip is a `SELECT 1` of psycopg on an open connection. `insert` is one row into a table of three columns with its commit,
by a bare connection of psycopg to the same server. Each search and each write is timed on both databases in turn. Searches
are given as p50 of time on the clock, and as user CPU of this process, which other load on the machine changes least.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import psycopg
from scripts.servers.postgres import PostgresServer

import sennit
from benchmarks.corpus import load_corpus
from sennit.ranking.fusion import RRF
from sennit.recipes import Recipe, SourceConfig

BATCH: Final = 4000
WARM_UP: Final = 50
LIMIT: Final = 10

FUSED: Final = Recipe(
    name="fused",
    sources=(SourceConfig(source="keyword"), SourceConfig(source="vector")),
    fusion=RRF(k=60, first_rank=1),
)


class Times:
    """What one kind of work took: on the clock, and in user CPU time of this process."""

    def __init__(self) -> None:
        self.clock: list[float] = []
        self.cpu: list[float] = []

    def take(self, work: Callable[[], object]) -> None:
        began, cpu = time.perf_counter(), os.times().user
        work()
        self.clock.append(time.perf_counter() - began)
        self.cpu.append(os.times().user - cpu)

    @property
    def p50(self) -> float:
        """Milliseconds."""
        return statistics.median(self.clock) * 1000

    @property
    def mean_cpu(self) -> float:
        """Milliseconds; the clock of CPU time is too coarse for a single piece of work."""
        return statistics.fmean(self.cpu) * 1000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the measurement and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--writes", type=int, default=200)
    options = parser.parse_args(arguments)
    server = PostgresServer()
    try:
        server.start()
        with tempfile.TemporaryDirectory(prefix="sennit-records-") as folder:
            os.environ["SENNIT_CACHE"] = str(Path(folder) / "cache")
            measure(server.dsn(), Path(folder), options.size, options.queries, options.writes)
    finally:
        server.close()
    return 0


def measure(dsn: str, folder: Path, size: int, query_count: int, writes: int) -> None:
    corpus = load_corpus(size, query_count + WARM_UP)
    homes = {"sqlite": str(folder / "db"), "postgres": dsn}
    with (
        sennit.open(homes["sqlite"], privacy__open=True) as first,
        sennit.open(dsn, privacy__open=True) as second,
        psycopg.connect(dsn, autocommit=True) as bare,
    ):
        databases = {"sqlite": first, "postgres": second}
        for db in databases.values():
            load(db, corpus.texts)
        bare.execute("CREATE TABLE plain (id text PRIMARY KEY, title text, text text)")
        times = {name: Times() for name in ("round trip", "insert")}
        times |= {f"{work} {name}": Times() for work in ("search", "add") for name in databases}
        for query in corpus.queries[query_count:]:
            for db in databases.values():
                db.search(query, recipe=FUSED, limit=LIMIT)
        for query in corpus.queries[:query_count]:
            for name, db in databases.items():
                times[f"search {name}"].take(lambda db=db, query=query: search(db, query))  # type: ignore[misc]
            times["round trip"].take(lambda: bare.execute("SELECT 1").fetchone())
        texts = corpus.new_texts
        for number in range(writes):
            text = texts[number % len(texts)]
            for name, db in databases.items():
                record = sennit.Record(id=f"new-{number}", text=text)
                times[f"add {name}"].take(lambda db=db, record=record: db.add([record]))  # type: ignore[misc]
            row = (f"new-{number}", "", text)
            times["insert"].take(lambda row=row: bare.execute("INSERT INTO plain VALUES (%s, %s, %s)", row))  # type: ignore[misc]
    report(size, query_count, writes, times)


def load(db: sennit.Database, texts: Sequence[str]) -> None:
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        db.add([sennit.Record(id=str(start + at), text=text) for at, text in enumerate(batch)])
    db.admin.optimise()


def search(db: sennit.Database, query: str) -> None:
    db.search(query, recipe=FUSED, limit=LIMIT)


def report(size: int, queries: int, writes: int, times: dict[str, Times]) -> None:
    load_average = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    print(
        f"{size:,} records, {queries} searches, {writes} writes; {os.cpu_count()} cores, Python "
        f"{platform.python_version()}, load average {load_average:.1f}; milliseconds\n"
    )
    print("| | p50 | user CPU, mean |\n|---|---:|---:|")
    for name, one in times.items():
        print(f"| {name} | {one.p50:.2f} | {one.mean_cpu:.2f} |")
    trip = times["round trip"].p50
    allowed = 1.3 * times["search sqlite"].p50 + trip
    print(
        f"\nsearch: {times['search postgres'].p50:.2f} ms; 1.3 × SQLite + a round trip is {allowed:.2f} ms\n"
        f"add on Postgres / a plain INSERT with commit: {times['add postgres'].p50 / times['insert'].p50:.2f}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
