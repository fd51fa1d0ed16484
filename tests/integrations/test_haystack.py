"""The Haystack adapter: Haystack's own suites, and what sennit adds to them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations import need

need("haystack", "haystack")

from haystack import Document, Pipeline
from haystack.dataclasses import ByteStream, SparseEmbedding
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.errors import FilterError
from haystack.testing import document_store as suites
from haystack.testing import document_store_async as async_suites
from haystack.utils import Secret
from haystack.utils.filters import document_matches_filter

import sennit
from sennit.errors import InvalidInput
from sennit.filters import matches, parse_filter
from sennit.integrations.haystack import (
    SennitDocumentStore,
    SennitEmbeddingRetriever,
    SennitHybridRetriever,
    SennitKeywordRetriever,
    translate_filter,
)


class InOrderOfIds:
    """A store of sennit returns documents in the order of their ids, so the suites compare them in that order."""

    @staticmethod
    def assert_documents_are_equal(received: list[Document], expected: list[Document]) -> None:
        assert received == sorted(expected, key=lambda document: document.id)


class TestDocumentStoreSuite(
    InOrderOfIds,
    suites.DocumentStoreBaseExtendedTests,
    suites.CountDocumentsByFilterTest,
    suites.CountUniqueMetadataByFilterTest,
    suites.GetMetadataFieldsInfoTest,
    suites.GetMetadataFieldMinMaxTest,
    suites.GetMetadataFieldUniqueValuesTest,
):
    """Haystack's suite, as it is, and those for what stores may offer beyond it."""

    @pytest.fixture
    def document_store(self, db: sennit.Database) -> SennitDocumentStore:
        return SennitDocumentStore(db, return_embedding=True)

    def test_write_documents(self, document_store: SennitDocumentStore) -> None:
        """The suite leaves the default policy to each store: here a duplicate is an error."""
        documents = [Document(content="test doc")]
        assert document_store.write_documents(documents) == 1
        self.assert_documents_are_equal(document_store.filter_documents(), documents)
        self.test_write_documents_duplicate_fail(SennitDocumentStore(document_store.db, collection="other"))


@pytest.mark.slow
class TestAsyncDocumentStoreSuite(
    InOrderOfIds,
    async_suites.CountDocumentsAsyncTest,
    async_suites.CountDocumentsByFilterAsyncTest,
    async_suites.CountUniqueMetadataByFilterAsyncTest,
    async_suites.DeleteAllAsyncTest,
    async_suites.DeleteByFilterAsyncTest,
    async_suites.DeleteDocumentsAsyncTest,
    async_suites.FilterDocumentsAsyncTest,
    async_suites.GetMetadataFieldsInfoAsyncTest,
    async_suites.GetMetadataFieldMinMaxAsyncTest,
    async_suites.GetMetadataFieldUniqueValuesAsyncTest,
    async_suites.UpdateByFilterAsyncTest,
    async_suites.WriteDocumentsAsyncTest,
):
    """The same, awaited."""

    @pytest.fixture
    def document_store(self, tmp_path: Path) -> Iterator[SennitDocumentStore]:
        with sennit.open(tmp_path / "db") as db:
            yield SennitDocumentStore(db, return_embedding=True)

    @pytest.mark.asyncio
    async def test_write_documents_async(self, document_store: SennitDocumentStore) -> None:
        """The suite leaves the default policy to each store: here a duplicate is an error."""
        documents = [Document(content="test doc")]
        assert await document_store.write_documents_async(documents) == 1
        with pytest.raises(DuplicateDocumentError):
            await document_store.write_documents_async(documents)
        self.assert_documents_are_equal(await document_store.filter_documents_async(), documents)


NOTES = [
    Document(id="bread", content="Bake the bread in a closed pot.", meta={"room": "kitchen", "year": 2024}),
    Document(id="ferry", content="The ferry leaves at noon.", meta={"room": "port", "year": 2025}),
    Document(id="boiler", content="Refill the boiler below 1.2 bar.", meta={"room": "cellar", "year": 2026}),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SennitDocumentStore]:
    store = SennitDocumentStore(str(tmp_path / "db"))
    store.write_documents(NOTES)
    yield store
    store.close()


def test_retrievers_by_keyword_and_by_both(store: SennitDocumentStore) -> None:
    found = SennitKeywordRetriever(store, top_k=1).run("ferry")
    assert [document.id for document in found["documents"]] == ["ferry"]
    assert found["degraded"] == []
    hybrid = SennitHybridRetriever(store).run("when does the boat leave", options={"explain": True})
    (first, *_) = hybrid["documents"]
    assert first.id == "ferry"
    assert first.score == first.meta["sennit"]["score"]
    assert 0 <= first.meta["sennit"]["relevance"] <= 1
    assert first.meta["sennit"]["explanation"]
    assert first.meta["room"] == "port"


def test_retrievers_take_filters_recipes_and_callers(store: SennitDocumentStore) -> None:
    since = {"field": "meta.year", "operator": ">=", "value": 2025}
    port = {"field": "meta.room", "operator": "==", "value": "port"}
    retriever = SennitHybridRetriever(store, filters=since, filter_policy="merge", recipe="rrf")
    assert {document.id for document in retriever.run("bread")["documents"]} == {"ferry", "boiler"}
    assert [document.id for document in retriever.run("bread", filters=port)["documents"]] == ["ferry"]
    assert retriever.run("bread")["documents"][0].meta["sennit"]["recipe"] == "rrf"
    stranger = {"caller": sennit.Caller(tenant="other")}
    assert retriever.run("bread", options=stranger)["documents"] == []
    nothing = {"field": "meta.nothing", "operator": "==", "value": 1}
    assert retriever.run("bread", filters=nothing)["documents"] == []
    either = {"operator": "OR", "conditions": [nothing, port]}
    assert [document.id for document in retriever.run("bread", filters=either)["documents"]] == ["ferry"]


def test_retrievers_by_embedding_name_what_failed(tmp_path: Path) -> None:
    store = SennitDocumentStore(str(tmp_path / "db"))
    store.write_documents(
        [
            Document(id="a", content="one", embedding=[1.0, 0.0, 0.0]),
            Document(id="b", content="two", embedding=[0.0, 1.0, 0.0]),
        ]
    )
    found = SennitEmbeddingRetriever(store, top_k=1).run([0.1, 0.9, 0.0])
    assert [document.id for document in found["documents"]] == ["b"]
    assert found["documents"][0].embedding is None
    assert found == asyncio.run(SennitEmbeddingRetriever(store, top_k=1).run_async([0.1, 0.9, 0.0]))
    hybrid = SennitHybridRetriever(store)
    assert hybrid.run("two", query_embedding=[1.0, 0.0, 0.0])["degraded"] == []
    assert [source["source"] for source in hybrid.run("two")["degraded"]] == ["vector"]
    store.close()


def test_a_pipeline_survives_being_written_and_read(store: SennitDocumentStore) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", SennitHybridRetriever(store, top_k=1, recipe="default"))
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["sennit.integrations.haystack"])
    (document,) = again.run({"retriever": {"query": "ferry"}})["retriever"]["documents"]
    assert document.id == "ferry"
    again.get_component("retriever").document_store.close()
    for kind in (SennitKeywordRetriever, SennitEmbeddingRetriever):
        values = kind(store, filters={}, top_k=3).to_dict()
        assert kind.from_dict(values).to_dict() == values


def test_a_secret_stays_out_of_a_serialised_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MY_DATABASE", str(tmp_path / "db"))
    store = SennitDocumentStore(
        Secret.from_env_var("MY_DATABASE"), caller=sennit.Caller(scopes=frozenset({"team"}), tenant="a")
    )
    values = store.to_dict()
    assert str(tmp_path) not in str(values)
    again = SennitDocumentStore.from_dict(values)
    assert again.to_dict() == values
    assert again.count_documents() == 0
    again.close()
    with sennit.open(":memory:") as db, pytest.raises(InvalidInput, match="cannot be serialised"):
        SennitDocumentStore(db).to_dict()


def test_every_field_of_a_document_survives(tmp_path: Path) -> None:
    store = SennitDocumentStore(str(tmp_path / "db"), return_embedding=True)
    written = [
        Document(id="1", content=None, blob=ByteStream(b"\x00\xff", {"a": 1}, "image/png")),
        Document(id="2", content="", meta={"none": None, "list": [1, "a"], "deep": {"x": {"y": 1.5}}}),
        Document(id="3", content="x", sparse_embedding=SparseEmbedding([1, 5], [0.5, 0.25])),
        Document(id="4", content="x", embedding=[0.1, -1 / 3, 2.5]),
    ]
    store.write_documents(written)
    assert store.filter_documents() == written
    store.close()


@pytest.mark.parametrize(
    "filters",
    [
        {"field": "content", "operator": "==", "value": "x"},
        {"field": "meta.year", "operator": "~", "value": 1},
        {"field": "meta.year", "operator": "==", "value": [1]},
        {"field": "meta.year", "operator": ">", "value": True},
        {"operator": "XOR", "conditions": []},
        {"operator": "AND", "conditions": {}},
        "year = 2025",
    ],
)
def test_a_malformed_filter_is_refused(filters: Any) -> None:
    with pytest.raises(FilterError):
        translate_filter(filters, str)


VALUES = st.one_of(st.integers(-3, 3), st.sampled_from(["a", "b"]), st.none(), st.booleans())
NUMBERS = st.integers(-3, 3)
CONDITIONS = st.one_of(
    st.builds(
        lambda name, operator, value: {"field": name, "operator": operator, "value": value},
        st.sampled_from(["meta.x", "x", "meta.deep.z"]),
        st.sampled_from(["==", "!="]),
        VALUES,
    ),
    st.builds(
        lambda name, operator, values: {"field": name, "operator": operator, "value": values},
        st.sampled_from(["meta.x", "meta.deep.z"]),
        st.sampled_from(["in", "not in"]),
        st.lists(VALUES, max_size=3),
    ),
    st.builds(
        lambda operator, value: {"field": "meta.n", "operator": operator, "value": value},
        st.sampled_from([">", ">=", "<", "<="]),
        st.one_of(NUMBERS, st.none()),
    ),
)
FILTERS = st.recursive(
    CONDITIONS,
    lambda inner: st.builds(
        lambda operator, conditions: {"operator": operator, "conditions": conditions},
        st.sampled_from(["AND", "OR", "NOT"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=5,
)


@given(filters=FILTERS, x=VALUES, z=VALUES, n=NUMBERS | st.none())
def test_a_translated_filter_means_what_haystack_says(filters: Any, x: Any, z: Any, n: Any) -> None:
    meta = {"x": x, "deep": {"z": z}, "n": n}
    mine = parse_filter(translate_filter(filters, str))
    record = sennit.Record(id="1", text="t", metadata=meta)
    assert matches(mine, record) == _without_bools(filters, meta)


def _without_bools(filters: Any, meta: dict[str, Any]) -> bool:
    """What Haystack says if True and 1 differ, as they do in sennit."""

    def mark(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: mark(one) for key, one in value.items()}
        if isinstance(value, list):
            return [mark(one) for one in value]
        return f"bool:{value}" if isinstance(value, bool) else value

    return bool(document_matches_filter(mark(filters), Document(content="t", meta=mark(meta))))


def test_a_wrong_argument_is_one_clear_error_with_the_right_name(store: SennitDocumentStore) -> None:
    for name, right in (("limit", "top_k"), ("k", "top_k"), ("filter", "filters")):
        wrong: dict[str, Any] = {name: 1}
        with pytest.raises(InvalidInput, match=f"no argument '{name}' here; it is called '{right}'"):
            store.search("bread", **wrong)
    with pytest.raises(InvalidInput, match="Did you mean 'recipe'"):
        SennitHybridRetriever(store, options={"recipes": "keyword"}).run("bread")
