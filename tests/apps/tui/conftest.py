"""A small folder of files, and a database of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import sennit

from .harness import TIMEOUT_SECONDS, write_files

RECIPES = f"""
[search]
deadline = {TIMEOUT_SECONDS}
[recipes.both]
sources = ["keyword", "vector"]
fusion = {{ method = "rrf" }}
[recipes.custom]
sources = ["keyword", "custom"]
fusion = {{ method = "rrf" }}
"""
"""Recipes for these tests, because the built-in ones may change."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with the sample files."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NO_COLOR", raising=False)
    write_files(tmp_path)
    (tmp_path / "sennit.toml").write_text(RECIPES)
    return tmp_path


@pytest.fixture
def database(folder: Path) -> Iterator[sennit.Database]:
    """A database of the sample files."""
    with sennit.open(folder / ".sennit") as db:
        db.index([folder / "docs", folder / "src"])
        yield db
