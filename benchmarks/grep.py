"""How much sennit's grep costs beside ripgrep alone, over 10,000 files of the installed packages and of Python.

    python -m benchmarks.grep [--files 10000] [--rounds 15]

Both are asked in turn, in the same process and over the same tree, which is in the file cache. ripgrep alone prints
the matched lines; sennit's grep answers with ranked passages, cut out of the files.
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
from sennit.folders.ripgrep import binary

TEXT = frozenset({".py", ".pyi", ".md", ".txt", ".h", ".json", ".rst", ".toml", ".js", ".css"})
QUERIES: dict[str, list[str]] = {
    "nothing": ["zyzzyvaquark"],
    "rare": ["CancelledError"],
    "common": ["deprecated"],
    "everywhere": ["import"],
    "several, rare": ["zipfile", "mmap", "tokenizer"],
    "several, common": ["deprecated", "warning", "removed"],
}
"""From a word that is in no file to one that is in nearly all."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=15)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        tree = Path(name) / "tree"
        count, size = plant(tree, asked.files)
        print(f"{count:,} files, {size / 1e6:.0f} MB, medians of {asked.rounds} rounds, ms\n")
        print("| query | files | matches | ripgrep alone | sennit grep | ratio | ratio of CPU time |")
        print("|---|---|---|---|---|---|---|")
        for label, keywords in QUERIES.items():
            print(measured(tree, label, keywords, asked.rounds), flush=True)


def plant(tree: Path, wanted: int) -> tuple[int, int]:
    """Copy text files of the installed packages, then of Python itself; gives their number and their bytes."""
    count = size = 0
    for source in ("purelib", "stdlib"):
        folder = Path(sysconfig.get_path(source))
        for path in sorted(folder.rglob("*")):
            if path.suffix in TEXT and path.is_file() and not path.is_symlink():
                target = tree / source / path.relative_to(folder)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, target)
                count, size = count + 1, size + target.stat().st_size
                if count == wanted:
                    return count, size
    return count, size


class Cost(NamedTuple):
    """Milliseconds of one run: by the clock, and of all cores, ripgrep's included."""

    wall: float
    cpu: float


def measured(tree: Path, label: str, keywords: list[str], rounds: int) -> str:
    """A row of the table; a ratio is the median of the ratios of neighbouring runs."""
    patterns = [part for keyword in keywords for part in ("-e", keyword)]
    command = [
        binary(),
        "--no-config",
        "--smart-case",
        "--fixed-strings",
        "--line-number",
        *patterns,
        str(tree),
    ]

    def alone() -> None:
        subprocess.run(command, stdout=subprocess.PIPE, check=False)

    def ours() -> None:
        grep([tree], keywords)

    answer = grep([tree], keywords)
    alone()
    pairs = [(cost(alone), cost(ours)) for _ in range(rounds)]
    theirs = statistics.median(bare.wall for bare, _ in pairs)
    mine = statistics.median(own.wall for _, own in pairs)
    wall = statistics.median(own.wall / bare.wall for bare, own in pairs)
    cpu = statistics.median(own.cpu / bare.cpu for bare, own in pairs)
    words = ", ".join(f"`{keyword}`" for keyword in keywords)
    return (
        f"| {label}: {words} | {answer.files:,} | {answer.matches:,} | {theirs:.0f} | {mine:.0f} "
        f"| {wall:.2f} | {cpu:.2f} |"
    )


def cost(run: Callable[[], None]) -> Cost:
    before, started = os.times(), time.perf_counter()
    run()
    wall, after = time.perf_counter() - started, os.times()
    return Cost(wall * 1000, (sum(after[:4]) - sum(before[:4])) * 1000)


if __name__ == "__main__":
    main()
