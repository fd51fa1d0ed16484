"""What it costs to index a folder again after it was moved, beside a run without changes.

python -m benchmarks.moved_folder --files 10000
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import sennit

FOLDERS: Final = 100
AGE_SECONDS: Final = 3600
"""Old enough that the modification time alone tells whether a file changed."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=10_000)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        before, after = Path(scratch) / "before", Path(scratch) / "after"
        write_files(before, options.files)
        print(
            "| run | seconds | CPU seconds | bytes read | added | unchanged | records |\n|---|---|---|---|---|---|---|"
        )
        with sennit.open(Path(scratch) / "db") as db:
            run(db, "first", before)
            # The status of a file that was just written is not trusted; the first of these runs settles it.
            time.sleep(2.1)
            run(db, "settling", before)
            run(db, "unchanged", before)
            before.rename(after)
            run(db, "moved", after)
            run(db, "unchanged", after)


def write_files(folder: Path, count: int) -> None:
    then = time.time() - AGE_SECONDS
    for number in range(count):
        path = folder / f"d{number % FOLDERS}" / f"f{number}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"# Title {number}\n\nText number {number} about topic {number % 37}.\n", encoding="utf-8"
        )
        os.utime(path, (then, then))


def run(db: sennit.Database, label: str, folder: Path) -> None:
    cpu = time.process_time()
    report = db.index(folder)
    cpu = time.process_time() - cpu
    print(
        f"| {label} | {report.seconds:.2f} | {cpu:.2f} | {report.bytes_read:,} | {report.added:,} "
        f"| {report.unchanged:,} | {len(db):,} |"
    )


if __name__ == "__main__":
    main()
