"""A real Postgres server for these tests, with a new database and a new cache folder for each of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import NoReturn

import pytest
from scripts.servers.common import ServerUnavailable
from scripts.servers.postgres import PostgresServer

_numbers = count(1)


@pytest.fixture(scope="session")
def server(leave_out: Callable[[str], NoReturn]) -> Iterator[PostgresServer]:
    """A running server, which a test may kill and must then start again."""
    if find_spec("psycopg") is None:
        leave_out("psycopg is not installed: pip install 'sennit[postgres]'")
    try:
        running = PostgresServer()
    except ServerUnavailable as error:
        leave_out(str(error))
    try:
        running.start()
        yield running
    except ServerUnavailable as error:
        leave_out(str(error))
    finally:
        running.close()


@pytest.fixture
def new_database(server: PostgresServer) -> Iterator[Callable[[], str]]:
    """Creates a new database and returns its connection string. A server that is killed must recover all there are."""
    import psycopg

    created = []

    def create() -> str:
        name = f"test_{next(_numbers)}"
        created.append(name)
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return server.dsn(name)

    yield create
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        for name in created:
            connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())


@pytest.fixture
def dsn(new_database: Callable[[], str]) -> str:
    """The connection string of a new database."""
    return new_database()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder for the indexes of this test."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("SENNIT_CACHE", str(folder))
    return folder
