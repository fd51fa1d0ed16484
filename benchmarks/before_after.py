"""Two checkouts of sennit beside each other: the same work, in turns, in processes of their own.

    git worktree add ../before def1b1b
    python -m benchmarks.before_after ../before . [--size 100000] [--blocks 12]

Each checkout gets a worker process with its own `src` on the path and its own database. The two take turns, block by
block, and the order within a pair alternates, so that other load on the machine affects both alike. The figures are
medians of the blocks: user CPU time of the worker, which other load changes least, and time on the clock. The ratio is
the median of the ratios within each pair. `search` is keyword and vector fused by RRF, `default` the recipe that is
used if none is named, `add` one record with its commit, `open` a new process up to its first result.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

BATCH_RECORDS: Final = 4000
SEARCHES_PER_BLOCK: Final = 100
ADDS_PER_BLOCK: Final = 40
BUILD_PAIRS: Final = 2
MAX_QUERIES: Final = 4000


class Cost(NamedTuple):
    """What a piece of work took, in seconds."""

    cpu: float
    wall: float


# In the worker, which imports sennit of its own checkout and nothing else of this repository.


def used_cpu() -> float:
    """User time of this process and of the processes that it waited for."""
    return sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def timed(work: Callable[[], object]) -> Cost:
    cpu, wall = used_cpu(), time.perf_counter()
    work()
    return Cost(used_cpu() - cpu, time.perf_counter() - wall)


def serve(data: Path, folder: Path) -> None:
    """Answer each line of the input, `part number`, with the cost of that block."""
    import sennit
    from sennit.ranking.fusion import RRF
    from sennit.recipes import Recipe, SourceConfig

    matched = Recipe(
        name="matched",
        sources=(SourceConfig(source="keyword"), SourceConfig(source="vector")),
        fusion=RRF(k=60, first_rank=1),
    )
    corpus = json.loads(data.read_text())
    databases: list[Any] = []

    def build(number: int) -> None:
        while databases:
            databases.pop().close()
        db = sennit.open(folder / str(number))
        databases.append(db)
        texts = corpus["texts"]
        for start in range(0, len(texts), BATCH_RECORDS):
            batch = texts[start : start + BATCH_RECORDS]
            db.add([sennit.Record(id=str(start + at), text=text) for at, text in enumerate(batch)])
        admin: Any = getattr(db, "admin", db)  # it was a method of the database itself
        admin.optimise()

    def search(number: int, recipe: Any) -> None:
        start = number * SEARCHES_PER_BLOCK
        for query in corpus["queries"][start : start + SEARCHES_PER_BLOCK]:
            databases[0].search(query, recipe=recipe, limit=10)

    def add(number: int) -> None:
        for at in range(ADDS_PER_BLOCK):
            text = corpus["new"][(number * ADDS_PER_BLOCK + at) % len(corpus["new"])]
            databases[0].add([sennit.Record(id=f"new-{number}-{at}", text=text)])

    parts: Mapping[str, Callable[[int], object]] = {
        "build": build,
        "search": lambda number: search(number, matched),
        "default": lambda number: search(number, "default"),
        "add": add,
    }
    for line in sys.stdin:
        part, number = line.split()
        print(json.dumps(timed(lambda part=part, number=number: parts[part](int(number)))), flush=True)  # type: ignore[misc]
    while databases:
        databases.pop().close()


def open_once(folder: Path, query: str) -> None:
    """Open a database and search it once."""
    import sennit

    with sennit.open(folder) as db:
        db.search(query, limit=10)


# In the parent.


class Checkout:
    """One checkout, its worker process and its databases."""

    def __init__(self, root: Path, data: Path, folder: Path) -> None:
        self.folder = folder
        self._environment = {**os.environ, "PYTHONPATH": str(root.resolve() / "src")}
        self._worker = subprocess.Popen(
            [sys.executable, __file__, "--serve", str(data), str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=self._environment,
        )

    def measure(self, part: str, number: int) -> Cost:
        """The cost of one block."""
        if part == "open":
            return self._measure_open()
        stdin, stdout = _pipe(self._worker.stdin), _pipe(self._worker.stdout)
        stdin.write(f"{part} {number}\n")
        stdin.flush()
        line = stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self.folder.name} ended in {part}")
        return Cost(*json.loads(line))

    def _measure_open(self) -> Cost:
        command = [sys.executable, __file__, "--open", str(self.folder / "0"), "where is the first answer"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        started = time.perf_counter()
        subprocess.run(command, env=self._environment, check=True)
        wall = time.perf_counter() - started
        return Cost(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, wall)

    def close(self) -> None:
        _pipe(self._worker.stdin).close()
        self._worker.wait()


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def compare(checkouts: Sequence[Checkout], part: str, numbers: Sequence[int]) -> list[tuple[Cost, Cost]]:
    """The costs of both checkouts for each block. Which of them comes first alternates."""
    pairs = []
    for number in numbers:
        first = number % 2
        costs = {at: checkouts[at].measure(part, number) for at in (first, 1 - first)}
        pairs.append((costs[0], costs[1]))
    return pairs


def describe(part: str, pairs: Sequence[tuple[Cost, Cost]], per_block: int) -> str:
    """A row of the table: milliseconds of each, and how much more the second takes."""
    cells = [part]
    for kind in ("cpu", "wall"):
        values = [[getattr(cost, kind) for cost in pair] for pair in pairs]
        cells += [f"{statistics.median(one[at] for one in values) / per_block * 1000:.3f}" for at in (0, 1)]
        cells.append(f"{(statistics.median(after / before for before, after in values) - 1) * 100:+.1f} %")
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--blocks", type=int, default=12)
    options = parser.parse_args(arguments)
    from benchmarks.corpus import load_corpus

    corpus = load_corpus(options.size, MAX_QUERIES)
    blocks = range(min(options.blocks, len(corpus.queries) // SEARCHES_PER_BLOCK - 1))
    with tempfile.TemporaryDirectory(prefix="sennit-before-after-") as name:
        data = Path(name) / "corpus.json"
        data.write_text(
            json.dumps({"texts": corpus.texts, "queries": corpus.queries, "new": corpus.new_texts})
        )
        roots = {"before": options.before, "after": options.after}
        checkouts = [Checkout(root, data, Path(name) / label) for label, root in roots.items()]
        print(f"{options.size:,} passages; milliseconds\n")
        print("| | cpu before | after | | clock before | after | |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        try:
            # Built in falling order, so that database 0 stays open for the rest.
            print(
                describe("build", compare(checkouts, "build", range(BUILD_PAIRS - 1, -1, -1)), 1), flush=True
            )
            for part in ("search", "default"):
                for checkout in checkouts:
                    checkout.measure(part, len(blocks))  # warm up
                print(describe(part, compare(checkouts, part, blocks), SEARCHES_PER_BLOCK), flush=True)
            print(describe("add", compare(checkouts, "add", blocks), ADDS_PER_BLOCK), flush=True)
            print(describe("open", compare(checkouts, "open", blocks), 1), flush=True)
        finally:
            for checkout in checkouts:
                checkout.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(Path(sys.argv[2]), Path(sys.argv[3]))
    elif sys.argv[1:2] == ["--open"]:
        open_once(Path(sys.argv[2]), sys.argv[3])
    else:
        main()
