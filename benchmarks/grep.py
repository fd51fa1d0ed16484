"""The cost of sennit's grep compared with ripgrep alone, over 10,000 files of the installed packages and of Python.

    python -m benchmarks.grep [--files 10000] [--rounds 15]

Both run alternately, in the same process and over the same tree, which is in the page cache. ripgrep prints the
matching lines; sennit's grep returns ranked passages from the files.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from sennit.folders import grep
from sennit.folders.ripgrep import find_ripgrep

TEXT_SUFFIXES = frozenset({".py", ".pyi", ".md", ".txt", ".h", ".json", ".rst", ".toml", ".js", ".css"})
QUERIES: dict[str, list[str]] = {
    "nothing": ["zyzzyvaquark"],
    "rare": ["CancelledError"],
    "common": ["deprecated"],
    "everywhere": ["import"],
    "several, rare": ["zipfile", "mmap", "tokenizer"],
    "several, common": ["deprecated", "warning", "removed"],
}
"""From a word that no file contains to one that nearly all files contain."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name) / "tree"
        count, size = copy_files(tree, options.files)
        print(f"{count:,} files, {size / 1e6:.0f} MB, medians of {options.rounds} rounds, ms\n")
        print("| query | files | matches | ripgrep alone | sennit grep | ratio | ratio of CPU time |")
        print("|---|---|---|---|---|---|---|")
        for label, keywords in QUERIES.items():
            print(measure_row(tree, label, keywords, options.rounds), flush=True)


def copy_files(tree: Path, max_files: int) -> tuple[int, int]:
    """Copy text files of the installed packages, then of Python. Returns their number and their bytes."""
    count = size = 0
    for source in ("purelib", "stdlib"):
        folder = Path(sysconfig.get_path(source))
        for path in sorted(folder.rglob("*")):
            if path.suffix in TEXT_SUFFIXES and path.is_file() and not path.is_symlink():
                target = tree / source / path.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
                count, size = count + 1, size + target.stat().st_size
                if count == max_files:
                    return count, size
    return count, size


class Cost(NamedTuple):
    """Milliseconds of one run: wall time, and CPU time of all cores including ripgrep's."""

    wall: float
    cpu: float


def measure_row(tree: Path, label: str, keywords: list[str], rounds: int) -> str:
    """A row of the table. A ratio is the median of the ratios of consecutive runs."""
    patterns = [part for keyword in keywords for part in ("-e", keyword)]
    command = [
        find_ripgrep(),
        "--no-config",
        "--smart-case",
        "--fixed-strings",
        "--line-number",
        *patterns,
        str(tree),
    ]

    def run_ripgrep() -> None:
        subprocess.run(command, stdout=subprocess.PIPE, check=False)

    def run_sennit() -> None:
        grep([tree], keywords)

    result = grep([tree], keywords)
    run_ripgrep()
    pairs = [(measure_cost(run_ripgrep), measure_cost(run_sennit)) for _ in range(rounds)]
    ripgrep_wall = statistics.median(ripgrep.wall for ripgrep, _ in pairs)
    sennit_wall = statistics.median(own.wall for _, own in pairs)
    wall_ratio = statistics.median(own.wall / ripgrep.wall for ripgrep, own in pairs)
    cpu_ratio = statistics.median(own.cpu / ripgrep.cpu for ripgrep, own in pairs)
    words = ", ".join(f"`{keyword}`" for keyword in keywords)
    return (
        f"| {label}: {words} | {result.files:,} | {result.matches:,} | {ripgrep_wall:.0f} | {sennit_wall:.0f} "
        f"| {wall_ratio:.2f} | {cpu_ratio:.2f} |"
    )


def measure_cost(run: Callable[[], None]) -> Cost:
    before, started = os.times(), time.perf_counter()
    run()
    wall, after = time.perf_counter() - started, os.times()
    return Cost(wall * 1000, (sum(after[:4]) - sum(before[:4])) * 1000)


if __name__ == "__main__":
    main()
