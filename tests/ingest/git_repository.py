"""A real git repository for tests."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

AUTHOR = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "test"), ("EMAIL", "test@example.org"), ("DATE", "2026-01-01T00:00:00Z"))
}


def git(folder: Path, *arguments: str) -> str:
    """Run git without the user's own configuration; returns what it prints."""
    environment = {**os.environ, **AUTHOR, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", "-C", str(folder), *arguments], env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def commit_all(folder: Path, message: str) -> str:
    """Commit everything in the folder; returns the hash of the commit."""
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD")


def new_repository(folder: Path) -> Path:
    """An empty repository on the branch main."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--initial-branch", "main")
    return folder
