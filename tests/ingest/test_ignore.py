"""Ignore patterns match as in git, in bounded time."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sennit.ingest.ignore import MAX_PATTERN_CHARACTERS, MAX_PATTERNS, IgnoreRules

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is the judge here")

NAMES = ["a", "b", "ab", "a.log", "b.txt", "build", "x-y"]
PIECES = [
    "a",
    "b",
    "*",
    "?",
    "**",
    "[ab]",
    "[!a]",
    "[a-c]",
    "*.log",
    "build",
    "a*b",
    "\\a",
    "x-y",
    "[[:alpha:]]",
    "*b*",
]


@pytest.mark.parametrize(
    ("pattern", "path", "folder", "expected"),
    [
        ("*.log", "deep/down/x.log", False, True),
        ("/x.log", "deep/x.log", False, None),
        ("build/", "build", False, None),
        ("build/", "src/build", True, True),
        ("docs/*.md", "docs/a.md", False, True),
        ("docs/*.md", "docs/sub/a.md", False, None),
        ("docs/**/a.md", "docs/a.md", False, True),
        ("docs/**/a.md", "docs/x/y/a.md", False, True),
        ("docs/**", "docs", True, None),
        ("docs/**", "docs/x", True, True),
        ("!keep.log", "keep.log", False, False),
        ("# note", "# note", False, None),
        ("\\#note", "#note", False, True),
        ("trailing  ", "trailing", False, True),
        ("kept\\ ", "kept ", False, True),
        ("un[closed", "un[closed", False, None),
        ("[]x]", "]", False, True),
    ],
)
def test_pattern_matches_as_expected(pattern: str, path: str, folder: bool, expected: bool | None) -> None:
    assert IgnoreRules([pattern]).decide(path, path.rpartition("/")[2], is_folder=folder) is expected


def test_the_last_pattern_that_matches_decides() -> None:
    rules = IgnoreRules(["*.log", "!keep.log", "keep.log", "!keep.*"])
    assert rules.decide("keep.log", "keep.log", is_folder=False) is False
    assert rules.decide("other.log", "other.log", is_folder=False) is True


@st.composite
def patterns(draw: st.DrawFn) -> str:
    parts = draw(st.lists(st.sampled_from(PIECES), min_size=1, max_size=3))
    start = draw(st.sampled_from(["", "", "!", "/", "!/"]))
    return start + "/".join(parts) + draw(st.sampled_from(["", "", "/"]))


@needs_git
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lines=st.lists(patterns(), min_size=1, max_size=5),
    path=st.lists(st.sampled_from(NAMES), min_size=1, max_size=4),
)
def test_decisions_agree_with_git(tmp_path: Path, lines: list[str], path: list[str]) -> None:
    repository = tmp_path / "repository"
    if not (repository / ".git").exists():
        subprocess.run(["git", "init", "-q", str(repository)], check=True)
    (repository / ".gitignore").write_text("\n".join(lines) + "\n")
    asked = "/".join(path)
    answer = subprocess.run(
        ["git", "-C", str(repository), "check-ignore", "-q", "--no-index", asked], capture_output=True
    )
    rules = IgnoreRules(lines)
    # Like the walk, which does not enter an ignored folder.
    ignored = any(
        rules.decide("/".join(path[:depth]), path[depth - 1], is_folder=depth < len(path))
        for depth in range(1, len(path) + 1)
    )
    assert ignored == (answer.returncode == 0)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "pattern",
    [
        "*a" * 100 + "b",
        "**/a/" * 60 + "b",
        "[a-z]*" * 80 + "1",
        "*?" * 100 + "b/",
        "**a**a**a**a**a**a**a**b",
    ],
)
def test_no_pattern_makes_matching_slow(pattern: str) -> None:
    rules = IgnoreRules([pattern])
    path = "/".join(["a" * 200] * 100)
    # With backtracking, this test would run into its timeout.
    assert rules.decide(path, "a" * 200, is_folder=False) is None


def test_too_long_or_too_many_patterns_are_dropped() -> None:
    rules = IgnoreRules(["x" * (MAX_PATTERN_CHARACTERS + 1), *(f"name{n}" for n in range(MAX_PATTERNS + 5))])
    assert rules.dropped == 7
    assert rules.decide("name1", "name1", is_folder=False)
