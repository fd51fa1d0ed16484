"""Units of code without a database, and a small project in Go with one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import sennit
from sennit.hydration import CodeUnit
from sennit.ingest import IndexReport

GO = Path(__file__).resolve().parent.parent / "fixtures" / "goproject"


def unit(key: str, text: str = "", lines: tuple[int, int] | None = None, **more: object) -> CodeUnit:
    """Make a unit whose path, name and qualified name come from its key."""
    path, _, qualified = key.partition("::")
    known: dict[str, object] = {
        "path": path.partition("#")[0],
        "text": text or f"text of {key}",
        "lines": lines,
        "kind": "function",
        "name": qualified.rpartition(".")[2],
        "qualified": qualified,
    }
    return CodeUnit(key=key, **{**known, **more})  # type: ignore[arg-type]


@dataclass(frozen=True)
class ListCatalogue:
    """A catalogue of the given units."""

    units: Sequence[CodeUnit]

    def files_named(self, names: frozenset[str]) -> list[str]:
        return sorted({one.path for one in self.units if one.path.rpartition("/")[2] in names})

    def paths(self) -> list[str]:
        return sorted({one.path for one in self.units})

    def occurrences(self, word: str) -> tuple[int, int]:
        return sum(word in f"{one.qualified} {one.text}".lower() for one in self.units), len(self.units)

    def in_file(self, path: str) -> list[CodeUnit]:
        return [one for one in self.units if one.path == path]

    def entities_named(self, names: Iterable[str]) -> list[CodeUnit]:
        wanted = set(names)
        return sorted((one for one in self.units if one.name in wanted), key=lambda one: one.key)

    def callers_of(self, name: str) -> list[CodeUnit]:
        return sorted((one for one in self.units if name in one.calls), key=lambda one: one.key)

    def with_keys(self, keys: Iterable[str]) -> list[CodeUnit]:
        known = {one.key: one for one in self.units}
        return [known[key] for key in keys if key in known]


def index_code(db: sennit.Database, folder: Path) -> IndexReport:
    """Index a folder as code."""
    return db.index(folder, recipe="code")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project in Go."""
    return Path(shutil.copytree(GO, tmp_path / "shop"))


Open = Callable[..., sennit.Database]


@pytest.fixture
def shop(project: Path, tmp_path: Path) -> Iterator[Open]:
    """Open the database of the indexed project, with the given settings."""
    opened: list[sennit.Database] = []

    def call(**settings: Any) -> sennit.Database:
        db = sennit.open(tmp_path / "db", **settings)
        opened.append(db)
        index_code(db, project)
        return db

    yield call
    for db in opened:
        db.close()
