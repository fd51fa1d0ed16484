"""How fast a folder is taken in, and who works for it: python -m benchmarks.indexing FOLDER [--recipe code]

Indexes the folder into a new database that is thrown away, and again after that, when nothing has changed.
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
class Measured:
    """One run over a folder. Seconds by the clock, and of processor time."""

    files: int
    records: int
    bytes: int
    seconds: float
    main: float
    """Of the process that writes: its threads read files, store records and merge indexes."""
    programs: float
    """Of the programs that parse, cut and embed, and of the one that folds."""
    again: float
    """By the clock, when nothing has changed."""

    def __str__(self) -> str:
        return (
            f"{self.files:,} files, {self.bytes / MEGABYTE:.1f} MB, {self.records:,} records: {self.seconds:.1f} s, "
            f"{self.files / self.seconds:,.0f} files/s, {self.records / self.seconds:,.0f} records/s; "
            f"processor time {self.main:.1f} s here and {self.programs:.1f} s in programs; again {self.again:.2f} s"
        )


def measured(folder: Path, recipe: str | None = None) -> Measured:
    """Index a folder twice."""
    with tempfile.TemporaryDirectory() as place:
        database = Path(place) / "new.sennit"
        here, others = _spent(resource.RUSAGE_SELF), _spent(resource.RUSAGE_CHILDREN)
        began = time.perf_counter()
        with sennit.open(database) as db:
            report = db.index(folder, recipe=recipe)
        seconds = time.perf_counter() - began
        # Programs are counted once they have ended, and the one that folds ends with the database.
        here, others = _spent(resource.RUSAGE_SELF) - here, _spent(resource.RUSAGE_CHILDREN) - others
        with sennit.open(database) as db:
            began = time.perf_counter()
            db.index(folder, recipe=recipe)
            again = time.perf_counter() - began
    return Measured(report.added, report.records, report.bytes_read, seconds, here, others, again)


def _spent(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--recipe", help="as for `sennit index`; without it, files are read as text")
    given = parser.parse_args()
    print(measured(given.folder, given.recipe))


if __name__ == "__main__":
    main()
