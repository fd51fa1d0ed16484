"""Units of code without a database, and a small project in Go with one."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import sennit
from sennit.hydration import Unit
from sennit.ingest import IndexReport

GO = Path(__file__).resolve().parent.parent / "fixtures" / "goproject"


def unit(key: str, text: str = "", lines: tuple[int, int] | None = None, **more: object) -> Unit:
    """A unit whose path, name and qualified name are those of its key."""
    path, _, qualified = key.partition("::")
    known: dict[str, object] = {
        "path": path.partition("#")[0],
        "text": text or f"text of {key}",
        "lines": lines,
        "kind": "function",
        "name": qualified.rpartition(".")[2],
        "qualified": qualified,
    }
    return Unit(key=key, **{**known, **more})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Listed:
    """A catalogue of these units."""

    units: Sequence[Unit]

    def files(self, names: frozenset[str]) -> list[str]:
        return sorted({one.path for one in self.units if one.path.rpartition("/")[2] in names})

    def in_file(self, path: str) -> list[Unit]:
        return [one for one in self.units if one.path == path]

    def named(self, names: Iterable[str]) -> list[Unit]:
        wanted = set(names)
        return sorted((one for one in self.units if one.name in wanted), key=lambda one: one.key)

    def calling(self, name: str) -> list[Unit]:
        return sorted((one for one in self.units if name in one.calls), key=lambda one: one.key)

    def with_keys(self, keys: Iterable[str]) -> list[Unit]:
        known = {one.key: one for one in self.units}
        return [known[key] for key in keys if key in known]


def take_in(db: sennit.Database, folder: Path) -> IndexReport:
    """Index a folder as code."""
    return db.index(folder, recipe="code")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of the project in Go."""
    return Path(shutil.copytree(GO, tmp_path / "shop"))


Open = Callable[..., sennit.Database]


@pytest.fixture
def shop(project: Path, tmp_path: Path) -> Iterator[Open]:
    """Opens the database of the project, with settings of one's own."""
    opened: list[sennit.Database] = []

    def call(**settings: Any) -> sennit.Database:
        db = sennit.open(tmp_path / "db", **settings)
        opened.append(db)
        take_in(db, project)
        return db

    yield call
    for db in opened:
        db.close()
