"""The speed of indexing a folder, and the CPU time by process: python -m benchmarks.indexing FOLDER [--recipe code]

Indexes the folder into a temporary database, and then again without changes.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import sennit

MEGABYTE: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class IndexingResult:
    """The times of indexing one folder."""

    files: int
    records: int
    bytes: int
    seconds: float
    """Wall time."""
    main_cpu_seconds: float
    """CPU time of the main process, whose threads read files, store records and merge segments."""
    worker_cpu_seconds: float
    """CPU time of the worker processes, which parse, chunk and embed, and build segments."""
    unchanged_seconds: float
    """Wall time of indexing again when nothing has changed."""

    def __str__(self) -> str:
        return (
            f"{self.files:,} files, {self.bytes / MEGABYTE:.1f} MB, {self.records:,} records: {self.seconds:.1f} s, "
            f"{self.files / self.seconds:,.0f} files/s, {self.records / self.seconds:,.0f} records/s; "
            f"CPU time {self.main_cpu_seconds:.1f} s in the main process and {self.worker_cpu_seconds:.1f} s in workers; "
            f"unchanged {self.unchanged_seconds:.2f} s"
        )


def measure_indexing(folder: Path, recipe: str | None = None) -> IndexingResult:
    """Index a folder twice, and measure both runs."""
    with tempfile.TemporaryDirectory() as temporary:
        database = Path(temporary) / "new.sennit"
        main_cpu, worker_cpu = _cpu_seconds(resource.RUSAGE_SELF), _cpu_seconds(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        with sennit.open(database) as db:
            report = db.index(folder, recipe=recipe)
        seconds = time.perf_counter() - started
        # The system counts a child process once it has exited, and the segment builder exits with the database.
        main_cpu = _cpu_seconds(resource.RUSAGE_SELF) - main_cpu
        worker_cpu = _cpu_seconds(resource.RUSAGE_CHILDREN) - worker_cpu
        with sennit.open(database) as db:
            started = time.perf_counter()
            db.index(folder, recipe=recipe)
            unchanged_seconds = time.perf_counter() - started
    return IndexingResult(
        report.added,
        report.records,
        report.bytes_read,
        seconds,
        main_cpu,
        worker_cpu,
        unchanged_seconds,
    )


def _cpu_seconds(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--recipe", help="as for `sennit index`; default: files are read as text")
    options = parser.parse_args()
    print(measure_indexing(options.folder, options.recipe))


if __name__ == "__main__":
    main()
