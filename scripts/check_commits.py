"""Check the commit messages of a change: an imperative subject of at most 72 characters, and a body that says why.

Checks every commit after the one that introduced the rule, or the commits of a range: `check_commits.py main..HEAD`.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

RULE_BEGINS: Final = "6ddc7ee"
"""The last commit that was written before this rule."""

MAX_SUBJECT_CHARACTERS: Final = 72
NOT_IMPERATIVE: Final = re.compile(
    r"(?i)^(?:\w{3,}(?:ing|ed)|adds|fixes|makes|moves|removes|renames|changes|the|a|an)$"
)
IMPERATIVE_AFTER_ALL: Final = frozenset(
    {"bring", "embed", "feed", "need", "proceed", "shed", "speed", "string", "swing"}
)
_FIELD, _COMMIT = "\x1f", "\x1e"


def problems(subject: str, body: str) -> Iterator[str]:
    """Yield what is wrong with one commit message."""
    if len(subject) > MAX_SUBJECT_CHARACTERS:
        yield f"the subject has {len(subject)} characters; use at most {MAX_SUBJECT_CHARACTERS}"
    first = re.match(r"\w+", subject)
    if first is None or not first[0][0].isupper():
        yield "the subject must begin with a capital letter"
    elif NOT_IMPERATIVE.match(first[0]) and first[0].lower() not in IMPERATIVE_AFTER_ALL:
        yield f"the subject must be in the imperative ('Add', not '{first[0]}')"
    if subject.endswith("."):
        yield "the subject must not end with a full stop"
    if not body.strip():
        yield "the body is missing; say why the change is made"


def commits(revisions: str) -> Iterator[tuple[str, str, str]]:
    """Yield the hash, subject and body of each commit in a range, without merges."""
    log = subprocess.run(
        ["git", "log", "--no-merges", f"--format=%h{_FIELD}%s{_FIELD}%b{_COMMIT}", revisions, "--"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=True,
    ).stdout
    for entry in log.split(_COMMIT):
        if entry.strip():
            commit, subject, body = entry.strip("\n").split(_FIELD)
            yield commit, subject, body


def default_range() -> str:
    """Everything since the rule began; only the last commit where that history is not there."""
    known = subprocess.run(
        ["git", "merge-base", "--is-ancestor", RULE_BEGINS, "HEAD"],
        capture_output=True,
        check=False,
    )
    return f"{RULE_BEGINS}..HEAD" if known.returncode == 0 else "HEAD^!"


def main(arguments: list[str]) -> int:
    """Print every problem; 1 if there is one."""
    inside = subprocess.run(
        ["git", "rev-parse", "--is-inside-work-tree"],
        capture_output=True,
        check=False,
    )
    if inside.returncode != 0:
        print("not a git checkout, so there are no commits to check")
        return 0
    found = 0
    for commit, subject, body in commits(arguments[0] if arguments else default_range()):
        for problem in problems(subject, body):
            print(f"{commit} {subject!r}: {problem}")
            found += 1
    return int(found > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
