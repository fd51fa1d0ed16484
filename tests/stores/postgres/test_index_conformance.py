"""The conformance kit on the indexes of Postgres: keyword by tsvector, vectors by pgvector."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import ClassVar

import pytest
from scripts.servers.postgres import PostgresServer

from sennit.settings import load_settings
from sennit.stores.contract import Backend
from sennit.stores.open import open_backend
from sennit.testing import KeywordConformance, VectorConformance
from sennit.testing.indexes import Outage
from sennit.testing.records import NewTarget, Target

pytestmark = pytest.mark.servers


def indexes_on(url: str, folder: Path, **overrides: object) -> Backend:
    """Records in a folder, with keyword and vector index on Postgres."""
    named = {"roles.keyword": "postgres", "roles.vector": "postgres", "postgres.url": url}
    settings = load_settings(
        overrides={**named, **{f"postgres.{key}": value for key, value in overrides.items()}}
    )
    return open_backend(folder, settings)


class OnPostgres:
    """Records in a folder, indexes on the server."""

    overrides: ClassVar[dict[str, object]] = {}

    @pytest.fixture
    def new_target(self, dsn: str, tmp_path: Path) -> NewTarget:
        numbers = count()

        def new() -> Target:
            return partial(indexes_on, dsn, tmp_path / f"db{next(numbers)}", **self.overrides)

        return new

    @pytest.fixture
    def outage(self, server: PostgresServer) -> Outage:
        return partial(killed, server)


@contextlib.contextmanager
def killed(server: PostgresServer) -> Iterator[None]:
    """A block in which the server is gone, as after a crash."""
    server.kill()
    try:
        yield
    finally:
        server.start()


class TestKeyword(OnPostgres, KeywordConformance):
    pass


class TestVector(OnPostgres, VectorConformance):
    pass


class TestVectorInAGraph(OnPostgres, VectorConformance):
    """With an HNSW index from the first vector on."""

    overrides: ClassVar[dict[str, object]] = {"hnsw_from": 1}


class TestCoverDensity(OnPostgres, KeywordConformance):
    overrides: ClassVar[dict[str, object]] = {"rank": "ts_rank_cd", "match": "any"}
