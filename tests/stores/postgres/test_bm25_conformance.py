"""The conformance kit on keyword indexes that an extension of Postgres ranks by BM25."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import numpy as np
import psycopg
import pytest
from scripts.servers.common import ServerUnavailable
from scripts.servers.postgres import PostgresServer

import sennit
from sennit.analysis import query_terms
from sennit.stores.contract import BM25, KeywordQuery
from sennit.testing import KeywordConformance

from ..naughty_kit import assert_survives
from .test_index_conformance import OnPostgres, indexes_on

pytestmark = pytest.mark.servers


@pytest.fixture(scope="session", params=["pg_search", "pg_textsearch"])
def server(request: pytest.FixtureRequest, leave_out: Callable[[str], NoReturn]) -> Iterator[PostgresServer]:
    """A server with one of the extensions in every new database. The two cannot be in one database."""
    try:
        running = PostgresServer(preload=request.param)
        running.start()
    except ServerUnavailable as error:
        leave_out(str(error))
    try:
        with psycopg.connect(running.dsn("template1"), autocommit=True) as connection:
            connection.execute(f"CREATE EXTENSION {request.param}".encode())
        yield running
    finally:
        running.close()


class TestKeywordByBm25(OnPostgres, KeywordConformance):
    pass


def test_the_extension_is_found_and_named_tables_hold_its_index(dsn: str, tmp_path: Path) -> None:
    with sennit.open(indexes_on(dsn, tmp_path / "db")) as db:
        db.add([sennit.Record(id="a", text="river valley")])
        db.admin.flush()
        assert db.backend.keyword.capabilities.statistics == "whole"
        assert [hit.id for hit in db.search("river", recipe="keyword")] == ["a"]
    with psycopg.connect(dsn) as connection:
        (definition,) = connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE indexname LIKE '%_bm25'"
        ).fetchone() or ("",)
    assert "USING bm25" in definition


def test_a_document_in_the_buffer_is_scored_as_on_the_server(dsn: str, tmp_path: Path) -> None:
    words = ["river", "valley", "oboe", "clay", "yeast", "glacier"]
    texts = [" ".join(words[(n * k) % 6] for k in range(1, 4 + n % 9)) for n in range(200)]
    with sennit.open(indexes_on(dsn, tmp_path / "db")) as db:
        db.add([sennit.Record(id=f"r{n}", text=text) for n, text in enumerate(texts)])
        db.admin.flush()
        query = KeywordQuery([(one.hash, 1.0) for one in query_terms("oboe glacier")], BM25())
        with db.store.snapshot() as snapshot:
            found = db.backend.keyword.search(snapshot, query, 50)
            computed = db.backend.keyword.scores(snapshot, query, found.keys)
    # The extensions store the length of a text in one byte.
    assert np.allclose(computed, found.scores, rtol=0.12)


def test_no_key_is_returned_twice_after_many_batches(dsn: str, tmp_path: Path) -> None:
    texts = [" ".join(f"word{(n * k) % 97}" for k in range(1, 60)) for n in range(4000)]
    with sennit.open(indexes_on(dsn, tmp_path / "db")) as db:
        for start in range(0, len(texts), 500):
            part = texts[start : start + 500]
            db.add([sennit.Record(id=f"r{start + at}", text=text) for at, text in enumerate(part)])
        db.admin.flush()
        for number in range(0, 97, 8):
            query = KeywordQuery([(one.hash, 1.0) for one in query_terms(f"word{number} word3")], BM25())
            with db.store.snapshot() as snapshot:
                found = db.backend.keyword.search(snapshot, query, 100)
            assert len(found.keys) == len(set(found.keys.tolist())) == 100


def test_every_naughty_string_in_every_field_filter_and_identifier(
    dsn: str, tmp_path: Path, naughty_strings: list[str]
) -> None:
    with sennit.open(indexes_on(dsn, tmp_path / "db")) as db:
        assert_survives(db, naughty_strings, "keyword")
