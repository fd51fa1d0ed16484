"""Ignore rules compared with git and with pathspec: how often they disagree with git, and how long matching takes.

    python -m benchmarks.ignore_rules

Random pattern files are matched against random paths, and `git check-ignore` is the judge. The second part matches
ordinary paths, and the third one hostile pattern of a few stars.
"""

from __future__ import annotations

import random
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

from sennit.ingest.ignore import IgnoreRules

NAMES = ("a", "b", "ab", "a.log", "b.txt", "build", "x-y")
PIECES = ("a", "b", "*", "?", "**", "[ab]", "[!a]", "[a-c]", "*.log", "build", "a*b", "\\a", "x-y", "*b*")
PATTERN_FILES = 1000
PATHS_PER_FILE = 20

Decide = Callable[[str, bool], bool | None]


def our_rules(lines: Sequence[str]) -> Decide:
    rules = IgnoreRules(lines)
    return lambda path, is_folder: rules.decide(path, path.rpartition("/")[2], is_folder=is_folder)


def their_rules(lines: Sequence[str]) -> Decide:
    spec = GitIgnoreSpec.from_lines(lines)
    return lambda path, is_folder: spec.check_file(f"{path}/" if is_folder else path).include


def is_ignored(decide: Decide, path: str) -> bool:
    """Decide like a walk, which does not enter an ignored folder."""
    parts = path.split("/")
    return any(decide("/".join(parts[:depth]), depth < len(parts)) for depth in range(1, len(parts) + 1))


def random_pattern(rng: random.Random) -> str:
    parts = "/".join(rng.choice(PIECES) for _ in range(rng.randint(1, 3)))
    return rng.choice(("", "", "!", "/", "!/")) + parts + rng.choice(("", "", "/"))


def count_disagreements(makers: dict[str, Callable[[Sequence[str]], Decide]]) -> dict[str, int]:
    """The number of pattern files with at least one path that git decides otherwise."""
    rng = random.Random(1)
    wrong = dict.fromkeys(makers, 0)
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q", folder], check=True)
        for _ in range(PATTERN_FILES):
            lines = [random_pattern(rng) for _ in range(rng.randint(1, 5))]
            paths = ["/".join(rng.choices(NAMES, k=rng.randint(1, 4))) for _ in range(PATHS_PER_FILE)]
            Path(folder, ".gitignore").write_text("\n".join(lines) + "\n")
            judged = subprocess.run(
                ["git", "-C", folder, "check-ignore", "--no-index", "--stdin"],
                input="\n".join(paths),
                check=False,
                capture_output=True,
                text=True,
            )
            ignored = set(judged.stdout.splitlines())
            for name, make in makers.items():
                decide = make(lines)
                wrong[name] += any(is_ignored(decide, path) != (path in ignored) for path in paths)
    return wrong


def cpu_seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    warnings.simplefilter("ignore", FutureWarning)
    makers = {"sennit": our_rules, "pathspec": their_rules}
    print(f"pattern files of {PATTERN_FILES} with a decision other than git's:", count_disagreements(makers))
    lines = ["*.pyc", "__pycache__/", "/build/", "dist", "*.egg-info/", "docs/**/x", "!keep.log", "*.log"]
    paths = [f"src/package{number % 50}/module_{number}.py" for number in range(20_000)]
    for name, make in makers.items():
        decide = make(lines)
        ordinary = cpu_seconds(lambda decide=decide: [decide(path, False) for path in paths])  # type: ignore[misc]
        hostile = make(["*a" * 4 + "b"])
        slow = cpu_seconds(lambda hostile=hostile: hostile("a" * 200, False))  # type: ignore[misc]
        print(f"{name}: {1e6 * ordinary / len(paths):.1f} µs a path; *a*a*a*ab on 200 letters: {slow:.4f} s")


if __name__ == "__main__":
    main()
