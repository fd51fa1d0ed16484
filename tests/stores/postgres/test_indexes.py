"""Indexes on Postgres beyond the kit: row-level security, limits of pgvector and tsvector, errors, checks."""

from __future__ import annotations

import logging
import traceback
from pathlib import Path

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray
from scripts.servers.common import free_port
from scripts.servers.postgres import PostgresServer

import sennit
from sennit.analysis import query_terms
from sennit.engine import Database
from sennit.errors import SettingsError, SourceError
from sennit.filters import EVERYTHING, field
from sennit.settings import load_settings
from sennit.settings.servers import PostgresSettings
from sennit.stores.contract import BM25, Document, KeywordQuery, Model, ScoredKeys, ServerSearch
from sennit.stores.open import open_backend
from sennit.stores.servers.postgres import text_vectors
from sennit.stores.servers.postgres.indexes import PostgresIndexes

from .test_index_conformance import indexes_on

pytestmark = pytest.mark.servers

PASSWORD = "open-sesame-9"


def open_indexes(url: str, **values: object) -> PostgresIndexes:
    return PostgresIndexes(PostgresSettings(**values), "test", url=url)  # type: ignore[arg-type]


def keywords(text: str) -> KeywordQuery:
    return KeywordQuery([(one.hash, 1.0) for one in query_terms(text)], BM25(), text)


def model_of(dimensions: int) -> Model:
    return Model(1, f"test{dimensions}", "test", "test", dimensions, "active")


def unit_vectors(count: int, dimensions: int) -> NDArray[np.float32]:
    made: NDArray[np.float32] = (
        np.random.default_rng(1).standard_normal((count, dimensions)).astype(np.float32)
    )
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made.astype(np.float16).astype(np.float32)


def test_records_and_indexes_may_share_a_database(dsn: str) -> None:
    settings = load_settings(overrides={"roles.keyword": "postgres", "roles.vector": "postgres"})
    with sennit.open(open_backend(dsn, settings)) as db:
        db.add([sennit.Record(id="a", text="the river floods"), sennit.Record(id="b", text="dry bread")])
        db.admin.flush()
        found = db.search("river")
        assert not found.degraded
        assert found[0].id == "a"
    with psycopg.connect(dsn) as connection:
        tables = {row[0] for row in connection.execute("SELECT table_name FROM sennit_index.indexes")}
    assert {name.split("_")[0] for name in tables} == {"keyword", "vector"}


def test_both_indexes_are_asked_in_one_round_trip(dsn: str, tmp_path: Path) -> None:
    with sennit.open(indexes_on(dsn, tmp_path / "db")) as db:
        db.add([sennit.Record(id=f"r{n}", text=f"river number{n}") for n in range(50)])
        db.admin.flush()
        server = db.backend.servers["postgres"]
        trips: list[int] = []
        run_many = server._client.run_many  # type: ignore[attr-defined]
        server._client.run_many = lambda groups: trips.append(len(groups)) or run_many(groups)  # type: ignore[attr-defined, func-returns-value]
        assert not db.search("river").degraded
        assert trips == [2]


def test_another_tenant_is_hidden_by_the_server_too(server: PostgresServer, dsn: str) -> None:
    records = [
        sennit.Record(id=f"{tenant or 'none'}{n}", text="river", tenant=tenant)
        for tenant in ("acme", "other", "")
        for n in range(3)
    ]
    documents = [
        Document(key, record, np.eye(2, dtype=np.float32)[0]) for key, record in enumerate(records, 1)
    ]
    owner = open_indexes(dsn, row_security=True)
    for index in (owner.keyword().find(None), owner.vector().find(model_of(2))):
        assert index is not None
        index.apply(documents, [], 9)
    owner.close()
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader")
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("GRANT USAGE ON SCHEMA sennit_index TO reader")
        connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA sennit_index TO reader")
    url = dsn.replace("postgres@", "reader@")
    with psycopg.connect(url) as connection:
        (table,) = connection.execute(
            "SELECT table_name FROM sennit_index.indexes WHERE table_name LIKE 'keyword%'"
        ).fetchone() or ("",)
        # Whoever names no tenant sees no row.
        assert connection.execute(f"SELECT key FROM sennit_index.{table}".encode()).fetchall() == []
    reader = open_indexes(url, row_security=True)
    keyword, vector = reader.keyword().find(None), reader.vector().find(model_of(2))
    assert keyword is not None
    assert vector is not None
    query = np.eye(2, dtype=np.float32)[0]
    for where, expected in (
        (field("tenant") == "acme", [1, 2, 3]),
        (~field("tenant").exists(), [7, 8, 9]),
        # The fence is the tenant of the audience, whatever else the filter says.
        ((field("tenant") == "acme") & (field("id") == "other0"), []),
        (EVERYTHING, list(range(1, 10))),
    ):
        for search in (
            ServerSearch(keyword, keywords("river"), 100, where),
            ServerSearch(vector, query, 100, where),
        ):
            (answer,) = reader.search_many([search])
            assert isinstance(answer, ScoredKeys), answer
            assert sorted(answer.keys.tolist()) == expected
    reader.close()


@pytest.mark.parametrize("dimensions", [4001, 5000])
def test_more_dimensions_than_an_index_takes_are_found_by_one_bit_of_each(dsn: str, dimensions: int) -> None:
    vectors = unit_vectors(60, dimensions)
    indexes = open_indexes(dsn, hnsw_from=1)
    index = indexes.vector().find(model_of(dimensions))
    assert index is not None
    documents = [
        Document(key, sennit.Record(id=str(key), text="x", kind="even" if key % 2 == 0 else ""), vector)
        for key, vector in enumerate(vectors, 1)
    ]
    index.apply(documents, [], 60)
    for where, expected in ((EVERYTHING, 17), (field("kind") == "even", 18)):
        (answer,) = indexes.search_many([ServerSearch(index, vectors[expected - 1], 20, where)])
        assert isinstance(answer, ScoredKeys)
        assert answer.keys[0] == expected
        assert len(answer.keys) == 20
        assert answer.scores[0] == pytest.approx(1, abs=1e-3)
    indexes.close()


def test_more_dimensions_than_pgvector_holds_are_refused_with_advice(dsn: str) -> None:
    indexes = open_indexes(dsn)
    index = indexes.vector().find(model_of(20_000))
    assert index is not None
    with pytest.raises(SourceError, match=r"16,000.*embedding\.dimensions"):
        index.apply([Document(1, sennit.Record(id="a", text="x"), np.ones(20_000, np.float32))], [], 1)
    indexes.close()


def test_a_filtered_search_in_the_graph_is_full(dsn: str) -> None:
    vectors = unit_vectors(3000, 8)
    indexes = open_indexes(dsn, hnsw_from=1, ef_search=10)
    index = indexes.vector().find(model_of(8))
    assert index is not None
    # The nearest to the query are those that the filter excludes.
    near = np.argsort(-(vectors @ vectors[0]))
    rare = {int(key) + 1 for key in near[-40:]}
    documents = [
        Document(key, sennit.Record(id=str(key), text="x", metadata={"rare": key in rare}), vector)
        for key, vector in enumerate(vectors, 1)
    ]
    for start in range(0, 3000, 900):
        index.apply(documents[start : start + 900], [], start + 900)
    (answer,) = indexes.search_many([ServerSearch(index, vectors[0], 40, field("rare") == True)])  # noqa: E712
    assert isinstance(answer, ScoredKeys)
    assert set(answer.keys.tolist()) == rare
    with psycopg.connect(dsn) as connection:
        found = connection.execute("SELECT 1 FROM pg_indexes WHERE indexdef LIKE '%USING hnsw%'").fetchall()
    assert found
    indexes.close()


def test_indexes_are_built_after_a_load_that_ends_with_a_full_batch(dsn: str) -> None:
    indexes = open_indexes(dsn)
    index = indexes.keyword().find(None)
    assert index is not None
    zeros = np.zeros(2, np.float32)
    documents = [Document(n, sennit.Record(id=str(n), text=f"river {n}"), zeros) for n in range(1, 1001)]
    index.apply(documents, [], 1000)

    def kinds() -> set[str]:
        with psycopg.connect(dsn) as connection:
            rows = connection.execute(
                "SELECT split_part(indexdef, ' USING ', 2) FROM pg_indexes WHERE schemaname = 'sennit_index'"
            ).fetchall()
        return {row[0].split()[0] for row in rows}

    assert "gin" not in kinds()
    # The next flush asks how far the index is.
    assert index.applied() == 1000
    assert kinds() >= {"gin", "hash", "btree"}
    indexes.close()


def test_terms_that_do_not_fit_into_a_tsvector_are_found(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_vectors, "MAX_VECTOR_BYTES", 2000)
    text_vectors.text_vector.cache_clear()
    text = " ".join(f"word{n}x" for n in range(400))
    indexes = open_indexes(dsn)
    index = indexes.keyword().find(None)
    assert index is not None
    document = Document(1, sennit.Record(id="a", text=text), np.zeros(2, np.float32))
    index.apply([document], [], 1)
    for word in ("word0x", "word399x"):
        (answer,) = indexes.search_many([ServerSearch(index, keywords(word), 10, EVERYTHING)])
        assert isinstance(answer, ScoredKeys)
        assert answer.keys.tolist() == [1]
        assert answer.scores.tolist() == index.score(keywords(word), [document]).tolist()
    indexes.close()
    text_vectors.text_vector.cache_clear()


def test_no_error_log_or_trace_shows_the_password(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    url = f"postgresql://ana:{PASSWORD}@127.0.0.1:{free_port()}/notes"
    with caplog.at_level(logging.DEBUG), sennit.open(indexes_on(url, tmp_path / "db")) as db:
        db.add([sennit.Record(id="a", text="river")])
        with pytest.raises(SourceError) as caught:
            db.admin.flush()
        shown = "".join(traceback.format_exception(caught.value)) + str(
            db.search("river", explain=True).to_dict()
        )
        findings = db.backend.servers["postgres"].check()
        assert [one.level for one in findings] == ["problem"]
        shown += findings[0].message + repr(load_settings(overrides={"postgres.url": url}))
    assert "does not answer" in shown
    assert PASSWORD not in shown + caplog.text


def test_a_check_says_how_many_changes_an_index_is_behind(dsn: str, tmp_path: Path) -> None:
    with Database(indexes_on(dsn, tmp_path / "db"), load_settings(), background=False) as db:
        db.add([sennit.Record(id="a", text="river")])
        db.admin.flush()
        assert "postgres: has applied every change" in [one.message for one in db.admin.check()]
        assert db.admin.behind() == {"keyword": 0, "vector": 0}
        db.add([sennit.Record(id="b", text="valley"), sennit.Record(id="c", text="oboe")])
        said = [one.message for one in db.admin.check() if "2 changes behind" in one.message]
        assert len(said) == 2
        assert db.admin.behind() == {"keyword": 2, "vector": 2}


def test_a_check_says_what_the_server_has(dsn: str, tmp_path: Path) -> None:
    with sennit.open(indexes_on(dsn, tmp_path / "db")) as db:
        server = db.backend.servers["postgres"]
        assert {one.level for one in server.check()} == {"ok"}
        db.add([sennit.Record(id="a", text="river")])
        db.admin.flush()
        said = " ".join(one.message for one in server.check())
        assert "Postgres 17" in said
        assert "pgvector 0.8" in said
        assert said.count("1 rows") == 2
        assert "changes" not in said
        with psycopg.connect(dsn, autocommit=True) as connection:
            (table,) = connection.execute(
                "SELECT table_name FROM sennit_index.indexes WHERE table_name LIKE 'keyword%'"
            ).fetchone() or ("",)
            connection.execute(f"DROP TABLE sennit_index.{table}".encode())
        assert "problem" in {one.level for one in server.check()}
        # What was lost is applied again.
        assert db.search("river", recipe="keyword").degraded
        db.add([sennit.Record(id="b", text="another river")])
        db.admin.flush()
        assert {hit.id for hit in db.search("river", recipe="keyword")} == {"a", "b"}


def test_a_binding_without_a_server_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"postgres\.url is not set"):
        open_backend(tmp_path / "db", load_settings(overrides={"roles.keyword": "postgres"}))
