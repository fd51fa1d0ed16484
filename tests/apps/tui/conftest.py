"""A small library of files, indexed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import sennit

from .stage import SECONDS, write_files

RECIPES = f"""
[search]
deadline = {SECONDS}
[recipes.both]
sources = ["keyword", "vector"]
fusion = {{ method = "rrf" }}
[recipes.gated]
sources = ["keyword", "gate"]
fusion = {{ method = "rrf" }}
"""
"""Of the tests' own, because the built-in ones may grow."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    write_files(tmp_path)
    (tmp_path / "sennit.toml").write_text(RECIPES)
    return tmp_path


@pytest.fixture
def library(folder: Path) -> Iterator[sennit.Database]:
    """A database that holds them."""
    with sennit.open(folder / ".sennit") as db:
        db.index([folder / "docs", folder / "src"])
        yield db
