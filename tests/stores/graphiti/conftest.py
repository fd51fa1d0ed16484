"""FalkorDB and Neo4j, each started once for all tests that need it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import NoReturn

import pytest
from scripts.servers.common import ServerUnavailable
from scripts.servers.falkordb import FalkorProcess
from scripts.servers.neo4j import Neo4jProcess
from scripts.servers.process import running

if find_spec("graphiti_core") is None and not os.environ.get("CI"):
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(scope="session")
def falkordb(leave_out: Callable[[str], NoReturn]) -> Iterator[FalkorProcess]:
    try:
        with running(FalkorProcess()) as server:
            yield server
    except ServerUnavailable as error:
        leave_out(str(error))


@pytest.fixture(scope="session")
def neo4j(leave_out: Callable[[str], NoReturn]) -> Iterator[Neo4jProcess]:
    try:
        with running(Neo4jProcess()) as server:
            yield server
    except ServerUnavailable as error:
        leave_out(str(error))
