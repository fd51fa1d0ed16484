"""Tables that somebody else owns, on a real server: the pages of a manual, and the segments of conversations."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import sennit
from sennit.embedding import EmbeddingSpec, create_embedder
from sennit.errors import SourceError
from sennit.filters import EVERYTHING, field
from sennit.privacy import Caller
from sennit.settings import load_settings
from sennit.settings.attached import read_mapping
from sennit.settings.servers import PostgresSettings
from sennit.stores.attached import AttachedSearch
from sennit.stores.contract import BM25, KeywordQuery
from sennit.stores.open import open_backend
from sennit.stores.servers.postgres.attached import AttachedTable
from sennit.stores.servers.postgres.indexes import PostgresIndexes
from sennit.testing.records import HOSTILE

pytestmark = pytest.mark.servers

PAGES = {
    "server": "postgres",
    "source": "manual.doc_embeddings",
    "id": "id",
    "text": "content",
    "title": "section_title",
    "url": "page_url",
    "parent": "page_name",
    "vector": "embedding",
    "keyword": "content_tsvector",
    "collection": "docs",
    "metadata": {"page_name": "page_name", "words": "words"},
}
SEGMENTS = {
    "server": "postgres",
    "id": "id",
    "text": "content",
    "time": "created_at",
    "sensitivity": "sensitivity",
    "keyword": "content_tsvector",
    "collection": "history",
}
TEXTS = (
    "Install the daemon with the package manager",
    "Restart the daemon after a change of the configuration",
    "Rotating the logs keeps the disk from filling",
    "The configuration file lists every port",
)


@cache
def embed(text: str) -> list[float]:
    embedder = create_embedder(EmbeddingSpec())
    assert embedder is not None
    found: list[float] = embedder.embed_documents([text])[0].tolist()
    return found


@pytest.fixture
def tables(dsn: str) -> str:
    """A database with both tables, as their owners made them."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
        connection.execute("CREATE SCHEMA manual")
        connection.execute(
            "CREATE TABLE manual.doc_embeddings (id serial PRIMARY KEY, page_name text, page_url text, "
            "section_title text, content text, embedding vector(256), words int, content_tsvector tsvector "
            "GENERATED ALWAYS AS (to_tsvector('english', coalesce(section_title, '') || ' ' || content)) STORED)"
        )
        for number, text in enumerate(TEXTS):
            connection.execute(
                "INSERT INTO manual.doc_embeddings (page_name, page_url, section_title, content, words, embedding) "
                "VALUES (%s, %s, %s, %s, %s, %s::vector)",
                (
                    f"page{number % 2}",
                    "https://example.org",
                    f"Part {number}",
                    text,
                    len(text.split()),
                    str(embed(text)),
                ),
            )
        connection.execute(
            "CREATE TABLE segments (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), content text, created_at timestamptz, "
            "sensitivity text, content_tsvector tsvector GENERATED ALWAYS AS (to_tsvector('simple', content)) STORED)"
        )
        for day, text, level in (
            (1, "we spoke about the daemon", "normal"),
            (2, "the daemon failed at night", "private"),
            (3, "lunch with Chloé", "normal"),
        ):
            connection.execute(
                "INSERT INTO segments (content, created_at, sensitivity) VALUES (%s, %s, %s)",
                (text, datetime(2026, 3, day, tzinfo=UTC), level),
            )
    return dsn


def open_db(url: str, folder: Path, **attached: dict[str, Any]) -> sennit.Database:
    lines = [f'[postgres]\nurl = "{url}"\n']
    for name, table in attached.items():
        lines.append(f"[attached.{name}]")
        for key, value in table.items():
            if isinstance(value, dict):
                inner = ", ".join(f'{one} = "{column}"' for one, column in value.items())
                lines.append(f"{key} = {{{inner}}}")
            else:
                lines.append(f'{key} = "{value}"')
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "sennit.toml"
    config.write_text("\n".join(lines))
    settings = load_settings(config, overrides={"privacy.open": True})
    return sennit.open(open_backend(folder / "db", settings), settings=settings)


def attach(url: str, mapping: dict[str, Any], name: str = "one") -> tuple[PostgresIndexes, AttachedTable]:
    server = PostgresIndexes(PostgresSettings(), "test", url=url)
    return server, server.attach(read_mapping(name, mapping))


def words(text: str) -> KeywordQuery:
    return KeywordQuery([], BM25(), text)


def test_the_pages_of_a_manual_are_found_by_words_and_by_vectors(tables: str, tmp_path: Path) -> None:
    with open_db(tables, tmp_path, pages=PAGES) as db:
        found = db.search("restart daemon configuration", recipe="docs")
        assert not found.degraded
        assert found.hits[0].id == "pages/2"
        assert found.hits[0].title == "Part 1"
        assert {hit.id for hit in db.search("rotate log", recipe="docs")} >= {"pages/3"}
        assert db.store.count() == 0


def test_segments_are_read_with_their_times_and_levels(tables: str, tmp_path: Path) -> None:
    with open_db(tables, tmp_path, segments=SEGMENTS) as db:
        everything = db.search("daemon", recipe="memory")
        assert not everything.degraded
        assert {hit.text for hit in everything} == {"we spoke about the daemon", "the daemon failed at night"}
        public = db.search("daemon", recipe="memory", caller=Caller(clearance="normal"))
        assert {hit.text for hit in public} == {"we spoke about the daemon"}
        assert everything.hits[0].timestamp is not None


def test_words_are_those_of_the_columns_own_configuration(tables: str) -> None:
    server, pages = attach(tables, PAGES)
    # English stems on one side and the other.
    found = pages.search(AttachedSearch(words("logs rotated"), 10, EVERYTHING))
    assert [row.values["id"] for row in found] == [3]
    both = pages.search(AttachedSearch(words("daemon configuration"), 10, EVERYTHING))
    assert both[0].values["id"] == 2, "the page with every word comes first"
    assert len(both) == 3
    assert all(row.score > 0 for row in both)
    server.close()


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (field("page_name") == "page1", {2, 4}),
        (field("parent").is_in(["page0", "x"]), {1, 3}),
        (field("words") >= 8, {2, 3}),
        ((field("words") < 8) & (field("page_name") == "page0"), {1}),
        (field("page_name").between("page1", "page9"), {2, 4}),
        (field("page_name") == 7, set()),
    ],
)
def test_filters_are_applied_by_the_server(tables: str, where: Any, expected: set[int]) -> None:
    server, pages = attach(tables, PAGES)
    query = embed(TEXTS[0])
    found = pages.search(AttachedSearch(np.array(query, np.float32), 10, where))
    assert {row.values["id"] for row in found} == expected
    assert [row.score for row in found] == sorted((row.score for row in found), reverse=True)
    server.close()


def test_a_period_is_compared_in_seconds(tables: str) -> None:
    server, segments = attach(tables, SEGMENTS, "segments")
    where = field("timestamp") >= datetime(2026, 3, 2, tzinfo=UTC).timestamp()
    found = segments.search(AttachedSearch(words("daemon"), 10, where))
    assert [row.values["content"] for row in found] == ["the daemon failed at night"]
    server.close()


def test_rows_are_found_by_their_ids_whatever_is_given(tables: str) -> None:
    server, pages = attach(tables, PAGES)
    _, segments = attach(tables, SEGMENTS, "segments")
    assert [row.values["id"] for row in pages.get(["2", "x", "99999999999999999999", *HOSTILE])] == [2]
    (first, *_) = segments.search(AttachedSearch(words("lunch"), 1, EVERYTHING))
    assert len(segments.get([str(first.values["id"]), "no uuid", *HOSTILE])) == 1
    server.close()


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_a_query_or_a_filter_is_part_of_a_statement(tables: str, text: str) -> None:
    server, pages = attach(tables, PAGES)
    pages.search(AttachedSearch(words(text), 10, EVERYTHING))
    pages.search(AttachedSearch(words("daemon"), 10, field("page_name") == text))
    pages.search(AttachedSearch(words("daemon"), 10, field("page_name") >= text))
    assert len(pages.search(AttachedSearch(words("daemon"), 10, EVERYTHING))) == 2
    server.close()


def test_the_connection_can_only_read(tables: str) -> None:
    server, pages = attach(tables, PAGES)
    with pytest.raises(SourceError, match="read-only"):
        pages._client.fetch("DELETE FROM manual.doc_embeddings RETURNING 1", [])
    server.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"source": "nowhere"}, "there is no table nowhere"),
        ({"source": 'x"; DROP TABLE segments; --'}, "there is no table"),
        ({"title": "heading"}, "has no column heading"),
        ({"keyword": "words"}, "type integer"),
        ({"vector": "content"}, "vectors"),
    ],
)
def test_a_check_says_what_is_wrong_with_a_mapping(tables: str, change: dict[str, str], message: str) -> None:
    server, broken = attach(tables, PAGES | change)
    (finding,) = broken.check()
    assert finding.level == "problem"
    assert message in finding.message
    server.close()
    server, sound = attach(tables, PAGES)
    assert [one.level for one in sound.check()] == ["ok"]
    server.close()


def test_vectors_of_another_model_are_refused(tables: str) -> None:
    server, pages = attach(tables, PAGES)
    with pytest.raises(SourceError, match="256 dimensions"):
        pages.search(AttachedSearch(np.ones(3, np.float32), 5, EVERYTHING))
    server.close()
