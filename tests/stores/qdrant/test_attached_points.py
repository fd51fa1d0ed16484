"""Collections of Qdrant that somebody else owns: the common rules, and what only Qdrant has."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from qdrant_client import QdrantClient, models
from scripts.servers.qdrant import QdrantCluster

from sennit.errors import SettingsError
from sennit.filters import EVERYTHING, field
from sennit.settings.attached import read_mapping
from sennit.settings.servers import QdrantSettings
from sennit.stores.attached import AttachedSearch, to_record
from sennit.stores.servers.qdrant import QdrantServer

from .. import attached_kit as kit

pytestmark = pytest.mark.servers


def fill(
    client: QdrantClient, name: str, distance: models.Distance, *, length: float = 1.0, **more: Any
) -> None:
    """A collection with a named and an unnamed vector cannot be; so `dense` is the only one."""
    client.create_collection(
        name, {"dense": models.VectorParams(size=kit.DIMENSIONS, distance=distance)}, **more
    )
    client.upsert(
        name,
        [
            models.PointStruct(
                id=number + 1,
                vector={"dense": kit.vector(number, length=length + number)},
                payload=kit.document(number),
            )
            for number in range(len(kit.TEXTS))
        ],
    )


@pytest.fixture(scope="module")
def owner(qdrant: QdrantCluster) -> QdrantClient:
    """The program that owns the collections."""
    client = QdrantClient(url=qdrant.urls[0])
    fill(client, "handbook", models.Distance.COSINE)
    fill(client, "distances", models.Distance.EUCLID)
    client.create_collection("plain", models.VectorParams(size=kit.DIMENSIONS, distance=models.Distance.DOT))
    points = [
        models.PointStruct(
            id=f"00000000-0000-4000-8000-00000000000{number}",
            vector=kit.vector(number),
            payload={
                "meta": {"author": {"name": f"a{number}"}, "dotted.key": number, "tags": ["x", f"t{number}"]},
                "content": kit.TEXTS[number],
                "written": f"2026-03-0{1 + number}T12:00:00+00:00",
            },
        )
        for number in range(len(kit.TEXTS))
    ]
    client.upsert("plain", points)
    client.create_collection(
        "empty", models.VectorParams(size=kit.DIMENSIONS, distance=models.Distance.COSINE)
    )
    return client


@pytest.fixture
def attach_on(qdrant: QdrantCluster, owner: QdrantClient) -> kit.Attach:
    assert owner
    server = QdrantServer(QdrantSettings(urls=tuple(qdrant.urls)), "test")
    return server.attach


class TestAttachedPoints(kit.AttachedConformance):
    server = "qdrant"
    changes = {"vector": "dense"}  # noqa: RUF012

    @pytest.fixture
    def attach(self, attach_on: kit.Attach) -> kit.Attach:
        return attach_on


PLAIN = {
    "server": "qdrant",
    "source": "plain",
    "id": "_id",
    "text": "content",
    "time": "written",
    "vector": "_vector",
    "metadata": {"author": "meta.author.name", "number": 'meta."dotted.key"', "tags": "meta.tags"},
}


def test_a_path_into_the_payload_is_read_and_filtered(attach_on: kit.Attach) -> None:
    mapping = read_mapping("plain", PLAIN)
    rows = attach_on(mapping)
    (found,) = rows.search(AttachedSearch(kit.QUERY, 9, field("author") == "a2"))
    record = to_record(mapping, found, "private")
    assert record.id == "plain/00000000-0000-4000-8000-000000000002"
    assert record.metadata == {"author": "a2", "number": 2, "tags": ["x", "t2"]}
    assert record.timestamp == datetime(2026, 3, 3, 12, tzinfo=UTC)
    assert len(rows.search(AttachedSearch(kit.QUERY, 9, field("tags") == "x"))) == len(kit.TEXTS)
    assert len(rows.search(AttachedSearch(kit.QUERY, 9, field("number") >= 4))) == 2
    assert len(rows.get(["00000000-0000-4000-8000-000000000004", "7", "x"])) == 1


def test_a_period_is_found_in_texts_of_iso_8601(attach_on: kit.Attach) -> None:
    rows = attach_on(read_mapping("plain", PLAIN))
    since = datetime(2026, 3, 4, tzinfo=UTC).timestamp()
    assert len(rows.search(AttachedSearch(kit.QUERY, 9, field("timestamp") >= since))) == 3
    assert len(rows.search(AttachedSearch(kit.QUERY, 9, field("timestamp") < since))) == 3


def test_another_distance_is_ranked_by_cosine_and_said(attach_on: kit.Attach) -> None:
    rows = attach_on(kit.mapping_of("qdrant", source="distances", vector="dense"))
    found = rows.search(AttachedSearch(kit.QUERY, 50, EVERYTHING))
    assert [row.score for row in found] == pytest.approx(sorted(kit.COSINES, reverse=True), abs=1e-4)
    (ok, note) = rows.check(kit.DIMENSIONS)
    assert ok.level == "ok"
    assert note.level == "note"
    assert "Euclid" in note.message
    assert "other lengths than 1" in note.message


@pytest.mark.parametrize(
    ("change", "level", "message"),
    [
        ({"vector": "_vector"}, "problem", "has no vector _vector; it has dense"),
        (
            {"title": "caption"},
            "note",
            "none of 6 sampled rows of the collection handbook has the field caption",
        ),
        ({"id": "number"}, "problem", "has the field number"),
        ({"source": "empty", "vector": "_vector"}, "note", "is empty"),
    ],
)
def test_a_check_says_what_is_wrong_with_a_mapping(
    attach_on: kit.Attach, change: dict[str, Any], level: str, message: str
) -> None:
    found = attach_on(kit.mapping_of("qdrant", **{"vector": "dense", **change})).check(kit.DIMENSIONS)
    assert any(one.level == level and message in one.message for one in found), found


def test_words_are_refused_when_the_mapping_is_read() -> None:
    with pytest.raises(SettingsError, match="qdrant does not rank by words"):
        kit.mapping_of("qdrant", vector="dense", keyword="content")
