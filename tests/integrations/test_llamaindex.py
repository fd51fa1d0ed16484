"""The LlamaIndex adapter: an index over the vector store, its filters and modes, and the retriever."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations import need

need("llama_index", "llamaindex")

from llama_index.core import MockEmbedding, StorageContext, VectorStoreIndex
from llama_index.core.schema import Document, TextNode
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
)
from llama_index.core.vector_stores.types import VectorStoreQueryMode
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

import sennit
from sennit.errors import InvalidInput
from sennit.filters import matches
from sennit.integrations.llamaindex import SennitRetriever, SennitVectorStore, translate_filters

NODES = [
    TextNode(
        id_="bread", text="Bake the bread hot.", metadata={"room": "kitchen"}, embedding=[1.0, 0.0, 0.0]
    ),
    TextNode(
        id_="cake", text="Bake the cake slowly.", metadata={"room": "kitchen"}, embedding=[0.9, 0.1, 0.0]
    ),
    TextNode(
        id_="ferry", text="The ferry leaves at noon.", metadata={"room": "port"}, embedding=[0.0, 0.0, 1.0]
    ),
]


def where(key: str, value: Any, operator: FilterOperator = FilterOperator.EQ) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


@pytest.fixture
def store(db: sennit.Database) -> SennitVectorStore:
    store = SennitVectorStore(db)
    assert store.add(NODES) == ["bread", "cake", "ferry"]
    return store


def test_each_mode_has_its_recipe(store: SennitVectorStore) -> None:
    def ids(mode: VectorStoreQueryMode, **fields: Any) -> list[str]:
        query = VectorStoreQuery(
            query_str="ferry", query_embedding=[1.0, 0.0, 0.0], similarity_top_k=2, mode=mode, **fields
        )
        found = store.query(query)
        assert (
            found.similarities == sorted(found.similarities, reverse=True) or mode == VectorStoreQueryMode.MMR
        )
        return list(found.ids)

    assert ids(VectorStoreQueryMode.DEFAULT) == ["bread", "cake"]
    assert ids(VectorStoreQueryMode.TEXT_SEARCH) == ["ferry"]
    assert ids(VectorStoreQueryMode.HYBRID, alpha=0.0)[0] == "ferry"
    assert ids(VectorStoreQueryMode.HYBRID, alpha=1.0)[0] == "bread"
    assert set(ids(VectorStoreQueryMode.HYBRID, hybrid_top_k=3)) == {"bread", "cake", "ferry"}
    assert ids(VectorStoreQueryMode.MMR, mmr_threshold=0.0) == ["bread", "ferry"]
    with pytest.raises(InvalidInput, match="svm"):
        ids(VectorStoreQueryMode.SVM)
    with pytest.raises(InvalidInput, match="alpha must be from 0 to 1"):
        ids(VectorStoreQueryMode.HYBRID, alpha=2.0)


def test_nodes_are_found_by_ids_documents_and_filters(store: SennitVectorStore) -> None:
    query = VectorStoreQuery(query_embedding=[0.0, 0.0, 1.0], similarity_top_k=3)
    assert store.query(VectorStoreQuery(**{**vars(query), "node_ids": ["bread"]})).ids == ["bread"]
    kitchen = VectorStoreQuery(**{**vars(query), "filters": where("room", "kitchen")})
    assert set(store.query(kitchen).ids) == {"bread", "cake"}
    assert asyncio.run(store.aquery(kitchen)).ids == store.query(kitchen).ids
    assert [node.node_id for node in store.get_nodes(filters=where("room", "port"))] == ["ferry"]
    assert store.get_nodes(["bread"])[0].get_content() == "Bake the bread hot."


def test_options_and_details_reach_through(store: SennitVectorStore) -> None:
    query = VectorStoreQuery(
        query_str="ferry", query_embedding=[0.0, 0.0, 1.0], mode=VectorStoreQueryMode.HYBRID
    )
    found = store.query(query, explain=True, details=True)
    assert found.result is not None
    assert found.result.trace is not None
    assert found.result.degraded == ()
    assert found.nodes[0].metadata["sennit"]["explanation"]
    assert store.query(query, caller=sennit.Caller(tenant="other")).ids == []
    without = VectorStoreQuery(query_str="ferry", mode=VectorStoreQueryMode.HYBRID)
    lame = store.query(without).result
    assert lame is not None
    assert [source.source for source in lame.degraded] == ["vector"]


def test_nodes_are_removed(store: SennitVectorStore) -> None:
    store.delete("no such document")
    store.delete_nodes(filters=where("room", "port"))
    assert [node.node_id for node in store.get_nodes()] == ["bread", "cake"]
    store.delete_nodes(["bread"])
    assert [node.node_id for node in store.get_nodes()] == ["cake"]
    with pytest.raises(InvalidInput):
        store.delete_nodes()
    store.clear()
    assert store.get_nodes() == []


def test_an_index_keeps_whole_nodes(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        store = SennitVectorStore(db)
        documents = [
            Document(
                id_="one", text="The ferry leaves at noon.", metadata={"room": "port", "tags": ["a", "b"]}
            ),
            Document(id_="two", text="Bake the bread hot.", metadata={"room": "kitchen", "doc_id": "mine"}),
        ]
        context = StorageContext.from_defaults(vector_store=store)
        embedding = MockEmbedding(embed_dim=4)
        index = VectorStoreIndex.from_documents(documents, storage_context=context, embed_model=embedding)
        retriever = index.as_retriever(similarity_top_k=2, vector_store_query_mode="hybrid")
        first = retriever.retrieve("when does the ferry leave")[0]
        assert first.node.get_content() == "The ferry leaves at noon."
        assert first.node.metadata == {"room": "port", "tags": ["a", "b"]}
        assert first.node.ref_doc_id == "one"
        again = VectorStoreIndex.from_vector_store(store, embed_model=embedding)
        assert len(again.as_retriever(similarity_top_k=5).retrieve("bread")) == 2
        index.delete_ref_doc("one")
        (left,) = store.get_nodes()
        assert left.metadata == {"room": "kitchen", "doc_id": "mine"}


def test_a_retriever_cites_files_and_takes_filters(notes: sennit.Database) -> None:
    retriever = SennitRetriever(notes, similarity_top_k=1, options={"explain": True})
    (found,) = retriever.retrieve("when does the ferry leave")
    assert found.node.metadata["source"].endswith("ferry.md:1-3")
    assert found.node.metadata["sennit"]["explanation"]
    assert "explanation" not in found.node.get_content(metadata_mode="llm")
    assert asyncio.run(retriever.aretrieve("when does the ferry leave"))[0].node.node_id == found.node.node_id
    narrowed = SennitRetriever(notes, filters={"path": {"like": "bread*"}}).retrieve("ferry")
    assert {"bread.md" in node.node.metadata["source"] for node in narrowed} == {True}


VALUES = st.sampled_from(["a", "b", "ab", "A"])
FILTERS = st.one_of(
    st.builds(
        lambda operator, value: MetadataFilter(key="x", operator=operator, value=value),
        st.sampled_from(
            [
                FilterOperator.EQ,
                FilterOperator.NE,
                FilterOperator.TEXT_MATCH,
                FilterOperator.TEXT_MATCH_INSENSITIVE,
            ]
        ),
        VALUES,
    ),
    st.builds(
        lambda operator, values: MetadataFilter(key="x", operator=operator, value=values),
        st.sampled_from([FilterOperator.IN, FilterOperator.NIN]),
        st.lists(VALUES, min_size=1, max_size=3),
    ),
    st.builds(
        lambda operator, value: MetadataFilter(key="n", operator=operator, value=value),
        st.sampled_from([FilterOperator.GT, FilterOperator.GTE, FilterOperator.LT, FilterOperator.LTE]),
        st.integers(-2, 2),
    ),
    st.builds(
        lambda operator, values: MetadataFilter(key="tags", operator=operator, value=values),
        st.sampled_from([FilterOperator.ANY, FilterOperator.ALL]),
        st.lists(VALUES, min_size=1, max_size=2),
    ),
    st.builds(
        lambda value: MetadataFilter(key="tags", operator=FilterOperator.CONTAINS, value=value), VALUES
    ),
    st.builds(
        lambda key: MetadataFilter(key=key, operator=FilterOperator.IS_EMPTY, value=None),
        st.sampled_from(["x", "tags", "nothing"]),
    ),
)


@given(
    filters=st.lists(FILTERS, min_size=1, max_size=3),
    condition=st.sampled_from(list(FilterCondition)),
    x=VALUES | st.none(),
    n=st.integers(-2, 2),
    tags=st.lists(VALUES, max_size=2),
)
def test_a_translated_filter_means_what_llamaindex_says(
    filters: Any, condition: FilterCondition, x: Any, n: int, tags: list[str]
) -> None:
    metadata = {"x": x, "n": n, "tags": tags}
    given_filters = MetadataFilters(filters=filters, condition=condition)
    expected = build_metadata_filter_fn(lambda _: metadata, given_filters)("id")
    record = sennit.Record(id="1", text="t", metadata=metadata)
    assert matches(translate_filters(given_filters), record) == expected


def test_a_wrong_argument_is_one_clear_error_with_the_right_name(store: SennitVectorStore) -> None:
    query = VectorStoreQuery(query_str="bread", mode=VectorStoreQueryMode.TEXT_SEARCH)
    for name, right in (("top_k", "similarity_top_k"), ("filters", "query.filters")):
        wrong: dict[str, Any] = {name: 1}
        with pytest.raises(InvalidInput, match=f"no argument '{name}' here; it is called '{right}'"):
            store.query(query, **wrong)
    with pytest.raises(InvalidInput, match="Did you mean 'explain'"):
        store.query(query, explains=True)
    with pytest.raises(InvalidInput, match="it is called 'similarity_top_k'"):
        SennitRetriever(store.client, top_k=3)
    with pytest.raises(InvalidInput, match="it is called 'filters'"):
        SennitRetriever(store.client).search_result("bread", filter={"room": "port"})
