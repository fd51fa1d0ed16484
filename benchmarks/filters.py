"""The CPU time of filters: `python -m benchmarks.filters [--records N]`.

The first use of a filter evaluates it over the distinct values of its field; later searches reuse the bitmap. Both are
measured, the second as a keyword search with the filter beside the same search without it, in one interleaved run.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from pathlib import Path

import sennit
from sennit.filters import fields_of, parse_filter

WORD_COUNT = 5000
WORDS_PER_RECORD = 20
ROUNDS = 7
SEARCHES_PER_ROUND = 200
BATCH = 10_000
FILTERS = (
    "g < 10",
    "path = 'docs/0/file0.md'",
    "path like 'docs/*'",
    "path starts_with 'docs/1'",
    "path contains 'file123'",
    "path icontains 'FILE123'",
    "path ends_with '7.md'",
    "path like '*1*2*3*'",
    "path ilike '*?1?2*'",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    count = parser.parse_args().records
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "db", count)
        with sennit.open(Path(folder) / "db", embedding__provider="none") as db:
            print(f"{count:,} records, each with a path of its own; milliseconds of CPU time\n")
            print(f"{'filter':28} {'records':>8} {'first use':>10} {'search':>8} {'without':>8}")
            for where in FILTERS:
                matching, first = first_use(db, where)
                filtered, plain = searches(db, where)
                print(f"{where:28} {matching:8,} {first:10.1f} {filtered:8.3f} {plain:8.3f}")


def fill(path: Path, count: int) -> None:
    """Every tenth record has a path below docs."""
    choice = random.Random(1)
    words = [f"w{n}" for n in range(WORD_COUNT)]
    with sennit.open(path, embedding__provider="none") as db:
        for start in range(0, count, BATCH):
            db.add(
                sennit.Record(
                    id=f"r{n}",
                    text=" ".join(choice.choices(words, k=WORDS_PER_RECORD)),
                    path=f"{'docs' if n % 10 == 0 else 'src'}/{n % 97}/file{n}.md",
                    metadata={"g": n % 100},
                )
                for n in range(start, min(start + BATCH, count))
            )
        db.admin.optimise()
        for name in ("path = ''", "g = 0"):
            db.count(name)  # reads the field, and writes its file


def first_use(db: sennit.Database, where: str) -> tuple[int, float]:
    """Return how many records match, and the time of the first evaluation."""
    (name,) = fields_of(parse_filter(where))
    db.count(f"exists {name}")  # loads the values of the field
    began = time.process_time()
    count = db.count(where)
    return count, (time.process_time() - began) * 1000


def searches(db: sennit.Database, where: str) -> tuple[float, float]:
    """Return the median time of a search with the filter and of one without it."""
    times: dict[str | None, list[float]] = {where: [], None: []}
    for _ in range(ROUNDS):
        for one, spent in times.items():
            began = time.process_time()
            for n in range(SEARCHES_PER_ROUND):
                db.search(f"w{n} w{n + 1}", recipe="keyword", filters=one)
            spent.append((time.process_time() - began) / SEARCHES_PER_ROUND * 1000)
    return statistics.median(times[where]), statistics.median(times[None])


if __name__ == "__main__":
    main()
