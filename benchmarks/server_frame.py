"""What the benchmarks of servers share: servers by name, loading, timing in turns, and the comparison of answers."""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import json
import pstats
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from scripts.servers.chroma import ChromaProcess
from scripts.servers.opensearch import opensearch
from scripts.servers.postgres import PostgresServer
from scripts.servers.process import running
from scripts.servers.qdrant import QdrantCluster

import sennit
from benchmarks.corpus import load_corpus
from sennit.errors import SourceError
from sennit.settings import load_settings

CANDIDATES: Final = 50
"""What the recipe `rrf` asks each index for."""

RRF_K: Final = 60
LIMIT: Final = 10
BATCH: Final = 5000
WARM_UP: Final = 20

PATIENCE_SECONDS: Final = 60
BASE_SETTINGS: Final = {"privacy.open": True, "search.deadline": 2.0 * PATIENCE_SECONDS}
"""Every record is visible, and a busy machine does not make an answer a degraded one."""


@dataclass(frozen=True)
class Binding:
    """A server, and the roles that it has."""

    server: str
    """The name in `[roles]`."""
    roles: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    preload: str = ""
    """The extension of Postgres that ranks words."""


BINDINGS: Final[dict[str, Binding]] = {
    "postgres": Binding("postgres", ("keyword", "vector"), {"postgres.bm25": "none"}),
    "pg_search": Binding("postgres", ("keyword",), {"postgres.bm25": "pg_search"}, "pg_search"),
    "pg_textsearch": Binding("postgres", ("keyword",), {"postgres.bm25": "pg_textsearch"}, "pg_textsearch"),
    "qdrant": Binding("qdrant", ("keyword", "vector")),
    "chroma": Binding("chroma", ("vector",)),
    "opensearch": Binding("opensearch", ("keyword", "vector")),
}


@dataclass(frozen=True)
class Served:
    """A running server."""

    settings: dict[str, Any]
    """Those of a database with roles on it."""
    folders: list[Path]
    """Where its nodes keep their data."""


@contextlib.contextmanager
def serve(binding: Binding, nodes: int = 1) -> Iterator[Served]:
    """Start the server of a binding."""
    with contextlib.ExitStack() as stack:
        folders: list[Path] = []
        match binding.server:
            case "postgres":
                postgres = stack.enter_context(running(PostgresServer(preload=binding.preload)))
                if binding.preload:
                    _create_extension(postgres.dsn(), binding.preload)
                named: dict[str, Any] = {"postgres.url": postgres.dsn()}
            case "qdrant":
                qdrant = stack.enter_context(running(QdrantCluster(nodes)))
                folders = [node.process.folder for node in qdrant.nodes]
                named = {"qdrant.urls": qdrant.urls, "qdrant.timeout_seconds": PATIENCE_SECONDS}
                if nodes > 1:
                    named |= {"qdrant.shard_number": nodes, "qdrant.replication_factor": 2}
            case "chroma":
                chroma = stack.enter_context(running(ChromaProcess()))
                folders = [chroma.process.folder]
                named = {"chroma.url": chroma.url, "chroma.timeout_seconds": PATIENCE_SECONDS}
            case _:
                named = {
                    "opensearch.hosts": stack.enter_context(opensearch(nodes)).urls,
                    "opensearch.shards": nodes,
                    "opensearch.replicas": min(1, nodes - 1),
                    "opensearch.timeout": PATIENCE_SECONDS,
                }
        roles = {f"roles.{role}": binding.server for role in binding.roles}
        yield Served({**BASE_SETTINGS, **roles, **binding.settings, **named}, folders)


def _create_extension(dsn: str, name: str) -> None:
    import psycopg

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE EXTENSION {name}".encode())


def open_database(folder: Path, settings: Mapping[str, Any] | None = None) -> sennit.Database:
    """A database in a folder, with these settings."""
    return sennit.open(folder, settings=load_settings(overrides={**BASE_SETTINGS, **(settings or {})}))


def fill(db: sennit.Database, records: Sequence[sennit.Record]) -> float:
    """Add records and wait until every index has them; returns the seconds that it took."""
    began = time.perf_counter()
    for start in range(0, len(records), BATCH):
        db.add(records[start : start + BATCH])
    db.admin.flush()
    return time.perf_counter() - began


def fuse(lists: Sequence[Sequence[int]]) -> list[int]:
    """The keys of the best by reciprocal ranks, as somebody would write it."""
    scores: dict[int, float] = {}
    for keys in lists:
        for rank, key in enumerate(keys, 1):
            scores[key] = scores.get(key, 0.0) + 1 / (RRF_K + rank)
    return sorted(scores, key=scores.__getitem__, reverse=True)[:LIMIT]


Search = Callable[[str], object]


def time_in_turns(ours: Search, theirs: Search, queries: Sequence[str]) -> dict[str, Any]:
    """The times of two clients that ask one server, query by query, each of them first every other time.

    The machine may be busy with other work, so the ratio is the median of the ratios of single queries. Processor time of
    this process is counted besides, because the server and other programs have no part in it.
    """
    wall: dict[str, list[float]] = {"sennit": [], "hand_written": []}
    cpu: dict[str, list[float]] = {"sennit": [], "hand_written": []}
    turns = [("sennit", ours), ("hand_written", theirs)]
    for number, query in enumerate(queries):
        for name, ask in turns if number % 2 else reversed(turns):
            began, began_cpu = time.perf_counter(), time.process_time()
            ask(query)
            if number >= WARM_UP:
                cpu[name].append((time.process_time() - began_cpu) * 1000)
                wall[name].append((time.perf_counter() - began) * 1000)
    return {
        "p50_ms": {name: round(statistics.median(one), 2) for name, one in wall.items()},
        "p95_ms": {name: round(sorted(one)[int(len(one) * 0.95)], 2) for name, one in wall.items()},
        "client_cpu_ms": {name: round(statistics.median(one), 2) for name, one in cpu.items()},
        "ratio_of_p50": round(statistics.median(wall["sennit"]) / statistics.median(wall["hand_written"]), 2),
        "median_ratio": round(
            statistics.median(a / b for a, b in zip(wall["sennit"], wall["hand_written"], strict=True)), 2
        ),
        "timed_questions": len(wall["sennit"]),
    }


@dataclass(frozen=True)
class Agreement:
    """How alike the ten best of two databases are, as means over questions."""

    recall: float
    """The share of the other's ten that is among ours."""
    correlation: float
    """Kendall's tau of the order of those that both have."""
    same: float
    """The share of questions whose ten and their order are the same."""


def compare(ours: sennit.Database, theirs: sennit.Database, queries: Sequence[str], recipe: str) -> Agreement:
    """Ask both every question."""
    recalls, correlations, same = [], [], []
    for query in queries:
        answer = ours.search(query, recipe=recipe, limit=LIMIT)
        if answer.degraded:
            raise SourceError(f"an incomplete answer cannot be compared: {answer.degraded[0].reason}")
        found = [hit.id for hit in answer]
        expected = [hit.id for hit in theirs.search(query, recipe=recipe, limit=LIMIT)]
        if not expected:
            continue
        recalls.append(len(set(found) & set(expected)) / len(expected))
        same.append(found == expected)
        tau = rank_correlation(found, expected)
        if tau is not None:
            correlations.append(tau)
    return Agreement(
        round(statistics.mean(recalls), 4),
        round(statistics.mean(correlations), 4) if correlations else 1.0,
        round(statistics.mean(same), 4),
    )


def rank_correlation(ours: Sequence[str], theirs: Sequence[str]) -> float | None:
    """Kendall's tau of the records that both lists have; None for fewer than two."""
    places = {one: place for place, one in enumerate(theirs)}
    both = [places[one] for one in ours if one in places]
    pairs = [(a, b) for at, a in enumerate(both) for b in both[at + 1 :]]
    return None if not pairs else 2 * sum(a < b for a, b in pairs) / len(pairs) - 1


MakeClient = Callable[[sennit.Database, dict[str, Any]], Search]
"""Makes a hand-written client for the server of a filled database, by the settings of the database."""

IndexBytes = Callable[[list[Path], dict[str, Any]], dict[str, int]]
"""The bytes of each index, by the folders of the server and the settings."""


def run_speed(name: str, make_client: MakeClient, index_bytes: IndexBytes, about: str | None) -> int:
    """Fill a database on a server, time its searches beside a hand-written client, and print that as JSON."""
    parser = argparse.ArgumentParser(description=(about or "").splitlines()[0])
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=220, help=f"{WARM_UP} of them only warm up")
    parser.add_argument("--nodes", type=int, default=1)
    parser.add_argument("--profile", type=Path, help="write a profile of 100 of our searches to this file")
    options = parser.parse_args()
    corpus = load_corpus(options.passages, options.questions)
    texts = corpus.texts[: options.passages]
    records = [sennit.Record(id=str(number), text=text) for number, text in enumerate(texts)]
    with (
        serve(BINDINGS[name], options.nodes) as served,
        tempfile.TemporaryDirectory() as folder,
        open_database(Path(folder) / "db", served.settings) as db,
    ):
        seconds = fill(db, records)

        def ours(query: str) -> None:
            found = db.search(query, recipe="rrf", limit=LIMIT)
            assert not found.degraded, found.degraded

        theirs = make_client(db, served.settings)
        sizes = index_bytes(served.folders, served.settings)
        seen = {
            "binding": name,
            "passages": len(records),
            "nodes": options.nodes,
            "build_seconds": round(seconds, 1),
            "bytes_per_record": {kind: round(size / len(records)) for kind, size in sizes.items()},
            **time_in_turns(ours, theirs, corpus.queries),
        }
        if options.profile is not None:
            write_profile(ours, corpus.queries[:100], options.profile)
    print(json.dumps(seen, indent=2))
    return 0


def write_profile(search: Search, queries: Sequence[str], file: Path) -> None:
    """Profile searches, also in the threads that they start."""
    profiles: list[cProfile.Profile] = []
    run = threading.Thread.run

    def profiled(thread: threading.Thread) -> None:
        profile = cProfile.Profile(time.thread_time)
        profiles.append(profile)
        profile.runcall(run, thread)

    main = cProfile.Profile(time.thread_time)
    threading.Thread.run = profiled  # type: ignore[method-assign,assignment]
    try:
        for query in queries:
            main.runcall(search, query)
    finally:
        threading.Thread.run = run  # type: ignore[method-assign]
    statistics_of = pstats.Stats(main)
    for profile in profiles:
        statistics_of.add(profile)
    statistics_of.dump_stats(file)


def folder_size(folder: Path) -> int:
    """The bytes that the files in a folder occupy."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())
