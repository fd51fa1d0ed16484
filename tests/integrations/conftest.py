"""A database for each test, in a folder and on a real Postgres server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import sennit
from stores.postgres.conftest import new_database, server

__all__ = ["new_database", "server"]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["embedded", pytest.param("postgres", marks=pytest.mark.slow)])
def target(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a new database is: a folder, or a connection string."""
    if request.param == "embedded":
        return str(tmp_path / "db")
    monkeypatch.setenv("SENNIT_CACHE", str(tmp_path / "cache"))
    create: Callable[[], str] = request.getfixturevalue("new_database")
    return create()


@pytest.fixture
def db(target: str) -> Iterator[sennit.Database]:
    """An empty database."""
    with sennit.open(target) as opened:
        yield opened


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[sennit.Database]:
    """A database with an indexed folder."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "boiler.md").write_text("# Boiler\n\nRefill the boiler when the pressure is below 1.2 bar.\n")
    (folder / "ferry.md").write_text("# Ferry\n\nThe ferry leaves at noon, on Sundays at two.\n")
    (folder / "bread.md").write_text("# Bread\n\nBake the bread in a closed pot for forty minutes.\n")
    with sennit.open(tmp_path / "notes.sennit") as opened:
        opened.index(folder)
        yield opened
