"""Collections of Chroma that somebody else owns: the common rules, and what only Chroma has."""

from __future__ import annotations

from typing import Any

import chromadb
import pytest
from scripts.servers.chroma import ChromaProcess

from sennit.errors import SettingsError
from sennit.filters import EVERYTHING, field
from sennit.settings.servers import ChromaSettings
from sennit.stores.attached import AttachedSearch
from sennit.stores.servers.chroma import ChromaServer

from .. import attached_kit as kit

pytestmark = pytest.mark.servers

OWN = {"vector": "_vector", "text": "_document"}


@pytest.fixture(scope="module")
def owner(chroma: ChromaProcess) -> Any:
    """The program that owns the collections: one with each distance, and vectors of every length."""
    client = chromadb.HttpClient(host="127.0.0.1", port=chroma.port)
    for name, space in (("handbook", "cosine"), ("handbook-l2", "l2"), ("handbook-ip", "ip")):
        collection = client.create_collection(
            name, configuration={"hnsw": {"space": space}}, embedding_function=None
        )
        collection.add(
            ids=[f"key {number}" for number in range(len(kit.TEXTS))],
            embeddings=[kit.vector(number, length=1.0 + number) for number in range(len(kit.TEXTS))],
            documents=list(kit.TEXTS),
            metadatas=[
                {name: value for name, value in kit.document(number).items() if name != "content"}
                | {"tags": ["x", f"t{number}"], "counts": [number, number + 10]}
                for number in range(len(kit.TEXTS))
            ],
        )
    return client


@pytest.fixture
def attach_on(chroma: ChromaProcess, owner: Any) -> kit.Attach:
    assert owner
    return ChromaServer(ChromaSettings(url=chroma.url), "test").attach


class TestAttachedDocuments(kit.AttachedConformance):
    server = "chroma"
    changes = OWN

    @pytest.fixture
    def attach(self, attach_on: kit.Attach) -> kit.Attach:
        return attach_on


@pytest.mark.parametrize("space", ["l2", "ip"])
def test_another_distance_is_ranked_by_cosine_and_said(attach_on: kit.Attach, space: str) -> None:
    rows = attach_on(kit.mapping_of("chroma", source=f"handbook-{space}", id="_id", **OWN))
    found = rows.search(AttachedSearch(kit.QUERY, 50, EVERYTHING))
    assert [row.score for row in found] == pytest.approx(sorted(kit.COSINES, reverse=True), abs=1e-4)
    (ok, note) = rows.check(kit.DIMENSIONS)
    assert (ok.level, note.level) == ("ok", "note")
    assert space in note.message
    assert len(rows.get(["key 3", "key 9"])) == 1


def test_a_value_in_a_list_is_the_fields(attach_on: kit.Attach) -> None:
    rows = attach_on(
        kit.mapping_of("chroma", **OWN, metadata={"tags": "tags", "counts": "counts", "words": "words"})
    )
    assert len(rows.search(AttachedSearch(kit.QUERY, 50, field("tags") == "x"))) == len(kit.TEXTS)
    assert len(rows.search(AttachedSearch(kit.QUERY, 50, field("tags") == "t3"))) == 1
    assert len(rows.search(AttachedSearch(kit.QUERY, 50, field("counts") == 13))) == 1
    # Chroma does not order what is in a list, so the engine compares it.
    assert len(rows.search(AttachedSearch(kit.QUERY, 50, field("counts") > 12))) == len(kit.TEXTS)


def test_a_vector_with_a_name_is_refused_in_words(attach_on: kit.Attach) -> None:
    (finding,) = attach_on(kit.mapping_of("chroma", **{**OWN, "vector": "dense"})).check(kit.DIMENSIONS)
    assert "vector must be '_vector'" in finding.message
    with pytest.raises(SettingsError, match="chroma does not rank by words"):
        kit.mapping_of("chroma", **OWN, keyword="_document")
