"""What the binding of Qdrant does beyond the conformance kit."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from qdrant_client import QdrantClient
from scripts.servers.common import free_port
from scripts.servers.qdrant import QdrantCluster, QdrantNode

import sennit
from sennit.errors import SourceError
from sennit.filters import field
from sennit.records import Record
from sennit.settings import load_settings
from sennit.settings.servers import QdrantSettings
from sennit.stores.servers.qdrant import QdrantServer

from ..naughty_kit import assert_survives
from .conftest import on_qdrant

pytestmark = pytest.mark.servers


@pytest.fixture
def client(qdrant: QdrantCluster) -> Iterator[QdrantClient]:
    client = QdrantClient(url=qdrant.urls[0], check_compatibility=False)
    yield client
    client.close()


def open_on(folder: Path, cluster: QdrantCluster, **settings: object) -> sennit.Database:
    overrides = {"privacy.open": True}
    return sennit.open(on_qdrant(folder, cluster, **settings)(), settings=load_settings(overrides=overrides))


def wait_until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        threading.Event().wait(0.05)


def aliases_of(client: QdrantClient) -> dict[str, str]:
    return {one.alias_name: one.collection_name for one in client.get_aliases().aliases}


def test_both_roles_are_points_of_one_collection_behind_an_alias(
    tmp_path: Path, qdrant: QdrantCluster, client: QdrantClient
) -> None:
    before = set(aliases_of(client))
    with open_on(tmp_path / "db", qdrant) as db:
        db.add([Record(id=f"n{n}", text=f"river {n}", kind="note") for n in range(5)])
        db.admin.flush()
        (alias,) = set(aliases_of(client)) - before
        points, _ = client.scroll(alias, limit=100, with_vectors=True, with_payload=True)
        assert len(points) == 6
        marker, *others = sorted(points, key=lambda point: int(point.id))
        with db.store.snapshot() as snapshot:
            assert marker.payload is not None
            assert marker.payload["applied"] == snapshot.seq
            assert {int(point.id) for point in others} == set(snapshot.keys(field("kind") == "note").tolist())
        for point in others:
            assert isinstance(point.vector, dict)
            assert set(point.vector) == {"keyword", "vector"}
            assert point.payload is not None
            assert point.payload["text"]["kind"] == ["note"]
        assert "river" not in json.dumps([point.payload for point in points])


def test_after_a_change_of_model_the_alias_moves_and_one_former_collection_stays(
    tmp_path: Path, qdrant: QdrantCluster, client: QdrantClient
) -> None:
    before = set(aliases_of(client))
    with open_on(tmp_path / "db", qdrant) as db:
        db.add([Record(id=f"n{n}", text=f"river {n}") for n in range(4)])
        db.admin.flush()
        (alias,) = set(aliases_of(client)) - before
        seen = [aliases_of(client)[alias]]
        for number in range(2):
            new = db.store.models.register(f"other{number}", "other/model", "other", 8)
            texts = db.store.models.pending_texts(new.number, 10)
            vectors = {
                digest: np.eye(8, dtype=np.float16)[at].tobytes() for at, (digest, _) in enumerate(texts)
            }
            db.store.models.add_late_vectors(new.number, vectors)
            assert db.store.models.activate_if_complete(new.number)
            db.admin.flush()
            seen.append(aliases_of(client)[alias])
            with db.store.snapshot() as snapshot:
                found = db.backend.vector.search(snapshot, np.eye(8, dtype=np.float32)[0], 10)
                assert found.scores.tolist() == [1.0, 0.0, 0.0, 0.0]
        assert len(set(seen)) == 3
        left = {one.name for one in client.get_collections().collections if one.name.startswith(alias)}
        assert left == set(seen[1:])


def test_a_collection_that_lost_its_points_degrades_the_answer_until_they_are_back(
    tmp_path: Path, qdrant: QdrantCluster, client: QdrantClient
) -> None:
    before = set(aliases_of(client))
    with open_on(tmp_path / "db", qdrant) as db:
        db.add([Record(id=f"n{n}", text=f"river {n}") for n in range(4)])
        db.admin.flush()
        (alias,) = set(aliases_of(client)) - before
        client.delete_collection(aliases_of(client)[alias])
        result = db.search("river")
        assert result.degraded
        assert not result
        db.admin.flush()
        result = db.search("river")
        assert not result.degraded
        assert len(result) == 4


def test_payload_indexes_are_made_for_what_filters_name(
    tmp_path: Path, qdrant: QdrantCluster, client: QdrantClient
) -> None:
    before = set(aliases_of(client))
    with open_on(tmp_path / "db", qdrant) as db:
        db.add([Record(id=f"n{n}", text=f"river {n}", metadata={"year": 2020 + n}) for n in range(4)])
        db.admin.flush()
        (alias,) = set(aliases_of(client)) - before
        assert "text.kind" in client.get_collection(alias).payload_schema
        assert [hit.id for hit in db.search("river", filters=field("year") == 2022)] == ["n2"]
        # The server makes the index in the background.
        wait_until(lambda: "number.year" in client.get_collection(alias).payload_schema)


KEYS_ONE_IN = 20
"""The server makes an index for each field that a filter names. It sees only a hash of the name."""


def test_every_naughty_string_in_every_field_filter_and_identifier(
    tmp_path: Path, qdrant: QdrantCluster, naughty_strings: list[str]
) -> None:
    with open_on(tmp_path / "db", qdrant) as db:
        assert_survives(db, naughty_strings, "keyword", "vector", keys_one_in=KEYS_ONE_IN)


def test_the_next_node_is_asked_when_one_does_not_answer(tmp_path: Path, qdrant: QdrantCluster) -> None:
    urls = [f"http://127.0.0.1:{free_port()}", *qdrant.urls]
    with open_on(tmp_path / "db", qdrant, qdrant__urls=urls) as db:
        db.add([Record(id="a", text="river")])
        db.admin.flush()
        assert not db.search("river").degraded


def test_a_check_says_what_is_wrong_in_words(qdrant: QdrantCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(**settings: object) -> list[tuple[str, str]]:
        server = QdrantServer(QdrantSettings(**settings), "00")  # type: ignore[arg-type]
        try:
            return [(finding.level, finding.message) for finding in server.check()]
        finally:
            server.close()

    assert check(urls=tuple(qdrant.urls))[0][0] == "ok"
    port = free_port()
    ((level, message),) = check(urls=(f"http://127.0.0.1:{port}",))
    assert level == "problem"
    assert f"http://127.0.0.1:{port} cannot be reached" in message
    ((level, message),) = check(urls=tuple(qdrant.urls), api_key_env="SENNIT_TEST_NO_KEY")
    assert "SENNIT_TEST_NO_KEY" in message


def test_a_key_comes_from_the_environment_and_a_wrong_one_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    node = QdrantNode(api_key="s3cret")
    try:
        node.start()
        monkeypatch.setenv("SENNIT_TEST_QDRANT_KEY", "wrong")
        settings = QdrantSettings(urls=(node.url,), api_key_env="SENNIT_TEST_QDRANT_KEY")
        messages = []
        for key in ("wrong", "s3cret"):
            monkeypatch.setenv("SENNIT_TEST_QDRANT_KEY", key)
            server = QdrantServer(settings, "00")
            index = server.keyword().find(None)
            assert index is not None
            try:
                assert index.applied() == 0
                messages.append("")
            except SourceError as error:
                messages.append(str(error))
            server.close()
        assert "refuses the API key" in messages[0]
        assert "wrong" not in messages[0]
        assert messages[1] == ""
    finally:
        node.close()
