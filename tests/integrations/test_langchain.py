"""The LangChain adapter: LangChain's own suites, and what sennit adds to them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from integrations import need

need("langchain_tests", "langchain")

from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.structured_query import Comparator, Comparison, Operation, Operator, StructuredQuery
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

import sennit
from sennit.errors import FilterError, InvalidInput
from sennit.integrations.langchain import SennitRetriever, SennitTranslator, SennitVectorStore


@pytest.mark.anyio
class TestVectorStoreSuite(VectorStoreIntegrationTests):
    """LangChain's suite, as it is, with vectors that LangChain computes."""

    @pytest.fixture
    def vectorstore(self, db: sennit.Database) -> SennitVectorStore:
        return SennitVectorStore(db, self.get_embeddings())


@pytest.mark.slow
@pytest.mark.anyio
class TestVectorStoreSuiteWithOwnModel(VectorStoreIntegrationTests):
    """The same, with the embedding model of sennit."""

    @pytest.fixture
    def vectorstore(self, db: sennit.Database) -> SennitVectorStore:
        return SennitVectorStore(db)


@pytest.mark.anyio
class TestRetrieverSuite(RetrieversIntegrationTests):
    """LangChain's suite, as it is."""

    @pytest.fixture(autouse=True)
    def _fill(self, db: sennit.Database) -> None:
        db.add({"id": f"note-{n}", "text": f"Note {n} about bread."} for n in range(5))
        self.db = db

    @property
    def retriever_constructor(self) -> type[SennitRetriever]:
        return SennitRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"db": self.db}

    @property
    def retriever_query_example(self) -> str:
        return "bread"


@pytest.fixture
def store(tmp_path: Any) -> Iterator[SennitVectorStore]:
    with sennit.open(tmp_path / "db") as db:
        store = SennitVectorStore(db)
        store.add_texts(
            ["Bake the bread hot.", "The bread is baked hot.", "The ferry leaves at noon."],
            [{"room": "kitchen"}, {"room": "kitchen"}, {"room": "port"}],
            ids=["bake", "baked", "ferry"],
        )
        yield store


def test_relevance_scores_are_from_0_to_1(store: SennitVectorStore) -> None:
    scored = store.similarity_search_with_relevance_scores("when does the ferry leave", k=3)
    assert scored[0][0].id == "ferry"
    assert scored[0][1] > 0.5
    assert all(0 <= relevance <= 1 for _, relevance in scored)
    assert scored == asyncio.run(
        store.asimilarity_search_with_relevance_scores("when does the ferry leave", k=3)
    )
    few = store.similarity_search_with_relevance_scores("ferry at noon", k=3, score_threshold=0.5)
    assert [document.id for document, _ in few] == ["ferry"]


def test_scores_are_in_the_order_of_the_results(store: SennitVectorStore) -> None:
    scores = [score for _, score in store.similarity_search_with_score("hot bread", k=3)]
    assert scores == sorted(scores, reverse=True)


def test_filters_recipes_and_callers_reach_through(store: SennitVectorStore) -> None:
    found = store.similarity_search("bread", k=3, filter={"room": "port"})
    assert [document.id for document in found] == ["ferry"]
    assert store.similarity_search("ferry", recipe="keyword")[0].id == "ferry"
    hidden = store.similarity_search("ferry", caller=sennit.Caller(tenant="other"))
    assert hidden == []
    with pytest.raises(FilterError, match="Did you mean 'room'"):
        store.similarity_search("ferry", filter={"rooms": "port"})


def test_details_say_what_sennit_knows_about_a_hit(store: SennitVectorStore) -> None:
    (document,) = store.similarity_search("ferry", k=1, details=True, explain=True)
    details = document.metadata["sennit"]
    assert details["rank"] == 1
    assert details["recipe"] == "default"
    assert "keyword" in details["sources"]
    assert details["explanation"]
    result = store.search_result("ferry", k=1, explain=True)
    assert result.trace is not None


def test_maximal_marginal_relevance_prefers_what_differs(store: SennitVectorStore) -> None:
    plain = store.similarity_search("bake hot bread", k=2)
    assert {document.id for document in plain} == {"bake", "baked"}
    diverse = store.max_marginal_relevance_search("bake hot bread", k=2, fetch_k=3, lambda_mult=0.0)
    assert "ferry" in {document.id for document in diverse}
    assert diverse == asyncio.run(
        store.amax_marginal_relevance_search("bake hot bread", k=2, fetch_k=3, lambda_mult=0.0)
    )


def test_a_vector_finds_its_neighbours() -> None:
    embedding = DeterministicFakeEmbedding(size=8)
    store = SennitVectorStore.from_texts(["one", "two", "three"], embedding, ids=["1", "2", "3"])
    with store.db:
        assert store.similarity_search_by_vector(embedding.embed_query("two"), k=1)[0].id == "2"
        near = store.max_marginal_relevance_search_by_vector(embedding.embed_query("two"), k=2)
        assert near[0].id == "2"


def test_two_stores_of_one_database_have_ids_of_their_own(store: SennitVectorStore) -> None:
    other = SennitVectorStore(store.db, collection="other")
    other.add_documents([Document(id="ferry", page_content="Another ferry.")])
    assert [one.page_content for one in store.get_by_ids(["ferry"])] == ["The ferry leaves at noon."]
    assert [one.page_content for one in other.similarity_search("ferry", k=5)] == ["Another ferry."]
    other.delete()
    assert other.get_by_ids(["ferry"]) == []
    assert len(store.similarity_search("ferry", k=5)) == 3


def test_documents_are_removed_by_ids_or_by_a_filter(store: SennitVectorStore) -> None:
    store.delete(filter={"room": "kitchen"})
    assert [document.id for document in store.similarity_search("bread", k=5)] == ["ferry"]
    with pytest.raises(InvalidInput):
        store.delete(["ferry"], filter={"room": "port"})


def test_the_same_text_without_an_id_is_stored_once(store: SennitVectorStore) -> None:
    first = store.add_texts(["The same text."])
    assert store.add_texts(["The same text."]) == first


def test_as_many_ids_as_documents_are_needed(store: SennitVectorStore) -> None:
    with pytest.raises(InvalidInput, match="2 documents and 1 ids"):
        store.add_documents([Document(page_content="a"), Document(page_content="b")], ids=["1"])


def test_a_retriever_cites_files_and_names_what_failed(notes: sennit.Database) -> None:
    retriever = SennitRetriever(db=notes, k=1, explain=True)
    (document,) = retriever.invoke("when does the ferry leave")
    assert document.metadata["source"].endswith("ferry.md:1-3")
    assert document.metadata["title"] == "Ferry"
    assert document.metadata["sennit"]["explanation"]
    assert "degraded" not in document.metadata["sennit"]
    (other,) = retriever.invoke("when does the ferry leave", filters={"path": {"like": "bread*"}})
    assert "bread.md" in other.metadata["source"]
    assert SennitRetriever(db=notes, min_relevance=0.9).invoke("quantum chromodynamics") == []


def test_a_failed_source_is_named_in_the_metadata(tmp_path: Any) -> None:
    with sennit.open(tmp_path / "db") as db:
        store = SennitVectorStore(db, DeterministicFakeEmbedding(size=4))
        store.add_texts(["The ferry leaves at noon."])
        (document,) = SennitRetriever(db=db).invoke("ferry")
        assert document.metadata["sennit"]["degraded"][0]["source"] == "vector"


BOATS = [
    ("marlin", {"length": 12, "tags": ["fast", "red"], "built": "2019-04-01", "home": "Old Goa"}),
    ("tern", {"length": 3, "tags": ["slow"], "built": "2021-07-01", "home": "Porto"}),
    ("gull", {"length": 7, "tags": ["red"], "built": "2023-01-01", "home": "Goa"}),
]


def compare(comparator: Comparator, name: str, value: Any) -> Comparison:
    return Comparison(comparator, name, value)


def operate(operator: Operator, *parts: Any) -> Operation:
    return Operation(operator, list(parts))


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (compare(Comparator.EQ, "home", "Porto"), {"tern"}),
        (compare(Comparator.NE, "home", "Porto"), {"marlin", "gull"}),
        (compare(Comparator.GT, "length", 7), {"marlin"}),
        (compare(Comparator.GTE, "length", 7), {"marlin", "gull"}),
        (compare(Comparator.LT, "length", 7), {"tern"}),
        (compare(Comparator.LTE, "length", 7), {"tern", "gull"}),
        (compare(Comparator.IN, "home", ["Goa", "Porto"]), {"tern", "gull"}),
        (compare(Comparator.NIN, "home", ["Goa", "Porto"]), {"marlin"}),
        (compare(Comparator.CONTAIN, "tags", "red"), {"marlin", "gull"}),
        (compare(Comparator.CONTAIN, "home", "goa"), {"marlin", "gull"}),
        (compare(Comparator.LIKE, "home", "old%"), {"marlin"}),
        (compare(Comparator.LIKE, "home", "goa"), {"marlin", "gull"}),
        (compare(Comparator.GT, "built", {"type": "date", "date": "2021-01-01"}), {"tern", "gull"}),
        (
            operate(
                Operator.AND,
                compare(Comparator.CONTAIN, "tags", "red"),
                operate(Operator.NOT, compare(Comparator.GT, "length", 10)),
            ),
            {"gull"},
        ),
        (
            operate(Operator.OR, compare(Comparator.LT, "length", 5), compare(Comparator.GT, "length", 10)),
            {"marlin", "tern"},
        ),
    ],
)
def test_structured_queries_are_translated(condition: Any, found: set[str]) -> None:
    with sennit.open(":memory:") as db:
        store = SennitVectorStore(db)
        store.add_texts(["A boat."] * 3, [values for _, values in BOATS], ids=[name for name, _ in BOATS])
        query, arguments = SennitTranslator().visit_structured_query(StructuredQuery("boat", condition))
        assert {document.id for document in store.similarity_search(query, **arguments)} == found
        assert {document.id for document in store.similarity_search("boat", filter=condition)} == found
        retrieved = SennitRetriever(db=db, filters=condition).invoke("boat")
        assert {str(document.id).removeprefix("langchain/") for document in retrieved} == found
        assert SennitTranslator().visit_structured_query(StructuredQuery("boat", None)) == ("boat", {})


def test_a_wrong_argument_is_one_clear_error_with_the_right_name(store: SennitVectorStore) -> None:
    for name in ("limit", "top_k", "n_results"):
        wrong: dict[str, Any] = {name: 1}
        with pytest.raises(InvalidInput, match=f"no argument '{name}' here; it is called 'k'"):
            store.similarity_search("bread", **wrong)
    with pytest.raises(InvalidInput, match="Did you mean 'recipe'"):
        store.similarity_search_with_score("bread", recipes="keyword")
    retriever = SennitRetriever(db=store.db)
    with pytest.raises(InvalidInput, match="it is called 'filters'"):
        retriever.invoke("bread", filter={"room": "port"})
    with pytest.raises(InvalidInput, match="it is called 'k'"):
        SennitRetriever(db=store.db, top_k=3)
    with pytest.raises(InvalidInput, match="Did you mean 'explain'"):
        retriever.invoke("bread", explains=True)
