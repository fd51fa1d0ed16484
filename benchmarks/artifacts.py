"""The recipe `artifacts` over four collections: python -m benchmarks.artifacts --size 100000

Passages of this machine's text (benchmarks/corpus.py) are shared out over artifacts, fragments, memory and history;
a tenth of them is hidden from the caller. Measured are searches of all four collections, alone, with filters that
let 1 %, 10 % and 50 % pass, and as a caller who may not see everything.
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
from benchmarks.corpus import GROUPS, Corpus, load
from benchmarks.measure import varied
from sennit.privacy import OWNER

BATCH: Final = 5000
LIMIT: Final = 5
INCLUDE: Final = ("memory", "history")


def records(corpus: Corpus) -> Iterator[sennit.Record]:
    """A third of the passages as whole documents, the rest as fragments, memories and turns."""
    for number, text in enumerate(corpus.texts):
        collection = ("artifacts", "artifact_chunks", "artifact_chunks", "memory", "history")[number % 5]
        part = collection == "artifact_chunks"
        yield sennit.Record(
            id=f"{number:07}",
            text=text,
            collection=collection,
            parent=f"document-{number // 10}" if part else None,
            position=number % 10 if part else None,
            sensitivity="private" if number % 10 == 7 else "normal",
            # By fives, so that each group has a share of each collection.
            metadata={"g": number // 5 % GROUPS},
        )


Asked = dict[str, Any]


def cases() -> dict[str, Asked]:
    """What is measured, by name: the arguments of a search."""
    everyone: Asked = {"caller": OWNER}
    return {
        "everything": everyone,
        "a caller who may not see a tenth": {},
        **{f"{share} % pass a filter": {**everyone, "filters": f"g < {share}"} for share in (1, 10, 50)},
        "explained": {**everyone, "explain": True},
    }


def measure(db: sennit.Database, questions: Sequence[str]) -> Iterator[tuple[str, float, float, int]]:
    """By case: p50 and p99 in milliseconds, and how many answers were not full. Each question goes to every case in turn."""
    kinds = cases()
    times: dict[str, list[float]] = {name: [] for name in kinds}
    short = dict.fromkeys(kinds, 0)
    for question in questions:
        for number, (name, asked) in enumerate(kinds.items()):
            began = time.perf_counter()
            found = db.search(
                varied(question, number), recipe="artifacts", limit=LIMIT, include=INCLUDE, **asked
            )
            times[name].append((time.perf_counter() - began) * 1000)
            short[name] += len(found) < LIMIT
    for name, taken in times.items():
        yield name, statistics.median(taken), statistics.quantiles(taken, n=100)[98], short[name]


def main(arguments: Sequence[str] | None = None) -> int:
    """Build, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--questions", type=int, default=300)
    options = parser.parse_args(arguments)
    corpus = load(options.size, options.questions)
    with (
        tempfile.TemporaryDirectory(prefix="sennit-bench-artifacts-") as folder,
        sennit.open(Path(folder) / "db") as db,
    ):
        batch: list[sennit.Record] = []
        for record in records(corpus):
            batch.append(record)
            if len(batch) == BATCH:
                db.add(batch)
                batch = []
        db.add(batch)
        db.optimise()
        list(measure(db, corpus.trials[:30]))
        print(f"{options.size:,} passages in four collections, limit {LIMIT}")
        print("| | p50 ms | p99 ms | answers that were not full |")
        print("|---|---|---|---|")
        for name, p50, p99, short in measure(db, corpus.queries):
            print(f"| {name} | {p50:.2f} | {p99:.2f} | {short} |")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
