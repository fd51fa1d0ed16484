"""Indexes of OpenSearch that somebody else owns: the common rules, and what only OpenSearch has."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from scripts.servers.opensearch import OpenSearchCluster

from sennit.filters import EVERYTHING, field
from sennit.settings.servers import OpenSearchSettings
from sennit.stores.attached import AttachedSearch, to_record
from sennit.stores.contract import BM25, KeywordQuery
from sennit.stores.servers.opensearch import OpenSearchServer

from .. import attached_kit as kit

pytestmark = pytest.mark.servers

OWN = {"vector": "embedding", "keyword": "content"}


def embedding(space: str) -> dict[str, Any]:
    method = {"name": "hnsw", "engine": "lucene", "space_type": space}
    return {"type": "knn_vector", "dimension": kit.DIMENSIONS, "method": method}


@pytest.fixture(scope="module")
def owner(single: OpenSearchCluster) -> Iterator[httpx.Client]:
    """The program that owns the indexes."""
    with httpx.Client(base_url=single.urls[0], timeout=60) as client:
        for name, space in (("handbook", "cosinesimil"), ("distances", "l2")):
            fields = {
                "name": {"type": "keyword"},
                "content": {"type": "text", "analyzer": "english"},
                "heading": {
                    "type": "text",
                    "fields": {"raw": {"type": "keyword", "ignore_above": 256}},
                },
                "level": {"type": "keyword"},
                "words": {"type": "integer"},
                "rating": {"type": "float"},
                "done": {"type": "boolean"},
                "written": {"type": "double" if name == "distances" else "date"},
                "author": {"properties": {"name": {"type": "keyword"}}},
                "embedding": embedding(space),
            }
            settings = {"index": {"knn": True, "number_of_shards": 2, "number_of_replicas": 0}}
            body = {"settings": settings, "mappings": {"properties": fields}}
            client.put(f"/{name}", json=body).raise_for_status()
            for number in range(len(kit.TEXTS)):
                values = kit.document(number) | {
                    "embedding": kit.vector(number, length=1.0 + number),
                    "author": {"name": f"a{number}"},
                }
                if name == "handbook":
                    values["written"] = int(values["written"] * 1000)
                client.put(f"/{name}/_doc/key-{number}", json=values).raise_for_status()
            client.post(f"/{name}/_refresh").raise_for_status()
        yield client
        for name in ("handbook", "distances"):
            client.delete(f"/{name}")


@pytest.fixture
def attach_on(single: OpenSearchCluster, owner: httpx.Client) -> Iterator[kit.Attach]:
    assert owner
    server = OpenSearchServer(OpenSearchSettings(hosts=tuple(single.urls)), "test")
    yield server.attach
    server.close()


class TestAttachedIndex(kit.AttachedConformance):
    server = "opensearch"
    changes = OWN

    @pytest.fixture
    def attach(self, attach_on: kit.Attach) -> kit.Attach:
        return attach_on


def words(text: str) -> KeywordQuery:
    return KeywordQuery([], BM25(), text)


def test_words_are_searched_by_the_fields_own_analysis(attach_on: kit.Attach) -> None:
    mapping = kit.mapping_of("opensearch", **{**OWN, "id": "_id"})
    rows = attach_on(mapping)
    found = rows.search(AttachedSearch(words("rotate log"), 10, EVERYTHING))
    # English stems on one side and the other; the document with both words comes first.
    assert [row.values["_id"] for row in found] == ["key-2", "key-5"]
    assert all(row.score > 0 for row in found)
    record = to_record(mapping, found[0], "private")
    assert record.id == "handbook/key-2"
    assert record.timestamp == datetime(2026, 3, 3, 12, tzinfo=UTC)
    narrowed = rows.search(AttachedSearch(words("rotate log"), 10, field("title") == "Logs"))
    assert [row.values["_id"] for row in narrowed] == ["key-5"]
    assert list(rows.search(AttachedSearch(words("   "), 10, EVERYTHING))) == []
    assert len(rows.search(AttachedSearch(words("log " * 3000), 10, EVERYTHING))) == 2


def test_a_field_inside_an_object_is_read_and_filtered(attach_on: kit.Attach) -> None:
    mapping = kit.mapping_of("opensearch", **OWN, metadata={"author": "author.name"})
    rows = attach_on(mapping)
    (found,) = rows.search(AttachedSearch(kit.QUERY, 9, field("author") == "a4"))
    assert to_record(mapping, found, "private").metadata == {"author": "a4"}


def test_another_distance_is_ranked_by_cosine_and_said(attach_on: kit.Attach) -> None:
    rows = attach_on(kit.mapping_of("opensearch", source="distances", **OWN))
    found = rows.search(AttachedSearch(kit.QUERY, 50, EVERYTHING))
    assert [row.score for row in found] == pytest.approx(sorted(kit.COSINES, reverse=True), abs=1e-4)
    since = datetime(2026, 3, 4, tzinfo=UTC).timestamp()
    assert len(rows.search(AttachedSearch(kit.QUERY, 50, field("timestamp") >= since))) == 3
    (ok, note) = rows.check(kit.DIMENSIONS)
    assert (ok.level, note.level) == ("ok", "note")
    assert "l2" in note.message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keyword": "level"}, "the field level is of the type keyword; words are searched in a text"),
        ({"vector": "words"}, "the field words is of the type integer, not a knn_vector"),
        ({"title": "caption"}, "has no field caption; it has author, author.name, content"),
        ({"source": "../_cluster"}, "there is no index ../_cluster"),
    ],
)
def test_a_check_says_what_is_wrong_with_a_mapping(
    attach_on: kit.Attach, change: dict[str, Any], message: str
) -> None:
    (finding,) = attach_on(kit.mapping_of("opensearch", **{**OWN, **change})).check(kit.DIMENSIONS)
    assert finding.level == "problem"
    assert message in finding.message
