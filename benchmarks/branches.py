"""What a branch switch of a repository costs: python -m benchmarks.branches [--files 10000 --changed 400 --branches 3]

Makes a real git repository of Python files whose branches differ in some hundred files, indexes it, and switches from
branch to branch and back, with an index run after each switch. A second worktree is indexed as a project of its own.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import sennit

FOLDERS: Final = 100
WORDS: Final = (
    "account",
    "buffer",
    "cache",
    "ledger",
    "parser",
    "queue",
    "route",
    "session",
    "token",
    "worker",
)
FUNCTIONS: Final = 6
"""Functions of a file, which make about 1.5 kB."""


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--changed", type=int, default=400, help="files that differ on each branch")
    parser.add_argument("--branches", type=int, default=3)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        repository = Path(scratch) / "service"
        make_repository(repository, options.files, options.changed, options.branches)
        names = [f"branch-{number}" for number in range(options.branches)]
        print(
            "| run | seconds | files changed | texts embedded | records written |\n|---|---:|---:|---:|---:|"
        )
        with sennit.open(Path(scratch) / "db") as db:
            run(db, "first index, main", repository)
            for name in names:
                switch(repository, name)
                run(db, f"to {name}", repository)
            for name in ("main", *reversed(names), "main"):
                switch(repository, name)
                run(db, f"back to {name}", repository)
            run(db, "unchanged", repository)
            worktree = Path(scratch) / "worktree"
            git(repository, "worktree", "add", "--quiet", "--detach", str(worktree), names[0])
            run(db, f"second worktree, {names[0]}", worktree)
            unused = db.admin.unused_vectors()
            print(f"\n{unused.count:,} unused vectors, {unused.bytes / 1e6:.1f} MB, are kept.")


def make_repository(folder: Path, files: int, changed: int, branches: int) -> None:
    """Write the files and commit them on main, and a change of other files on each branch."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main")
    for number in range(files):
        write(folder, number, "main")
    commit(folder)
    for branch in range(branches):
        git(folder, "switch", "--quiet", "--create", f"branch-{branch}", "main")
        for number in range(branch * changed, (branch + 1) * changed):
            write(folder, number % files, f"branch-{branch}")
        commit(folder)
    switch(folder, "main")


def write(folder: Path, number: int, branch: str) -> None:
    path = folder / f"part_{number % FOLDERS}" / f"module_{number}.py"
    path.parent.mkdir(exist_ok=True)
    functions = [
        f"def {WORDS[(number + step) % 10]}_{number}_{step}(value, limit={number % 97}):\n"
        f'    """Return the {WORDS[(number * 3 + step) % 10]} of {branch} for step {step} of module {number}."""\n'
        f"    total = value * {number} + {step}\n"
        f"    if total > limit:\n        return {WORDS[(number + step + 1) % 10]}_{number}_{step}(total - limit)\n"
        "    return total\n"
        for step in range(FUNCTIONS)
    ]
    path.write_text("\n\n".join(functions), encoding="utf-8")


def run(db: sennit.Database, label: str, folder: Path) -> None:
    started = time.perf_counter()
    report = db.index(folder)
    seconds = time.perf_counter() - started
    changed = report.added + report.updated + report.removed
    print(f"| {label} | {seconds:.2f} | {changed:,} | {report.embedded:,} | {report.records:,} |", flush=True)


def switch(folder: Path, branch: str) -> None:
    git(folder, "switch", "--quiet", branch)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(
        folder,
        "-c",
        "user.name=bench",
        "-c",
        "user.email=bench@example.org",
        "commit",
        "--quiet",
        "-m",
        "State",
    )


def git(folder: Path, *arguments: str) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    subprocess.run(["git", "-C", str(folder), *arguments], env=environment, check=True)


if __name__ == "__main__":
    main()
