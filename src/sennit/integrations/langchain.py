"""sennit in LangChain: a vector store and a retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sennit.errors import FilterError, InvalidInput, MissingExtra

try:
    from langchain_core.callbacks import (
        AsyncCallbackManagerForRetrieverRun,
        CallbackManagerForRetrieverRun,
    )
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.structured_query import (
        Comparator,
        Comparison,
        FilterDirective,
        Operation,
        Operator,
        StructuredQuery,
        Visitor,
    )
    from langchain_core.vectorstores import VectorStore
    from pydantic import Field
except ModuleNotFoundError as missing:
    raise MissingExtra("sennit.integrations.langchain", "langchain") from missing

import sennit
from sennit.engine import Database
from sennit.filters import And, Filter, Not, Or, parse_filter
from sennit.integrations.collection import (
    DETAILS_KEY,
    FrameworkCollection,
    check_names,
    check_options,
    describe_hit,
    describe_record,
    diversified,
)
from sennit.privacy import Caller
from sennit.recipes import Recipe
from sennit.records import Record
from sennit.results import SearchResult

DEFAULT_RESULTS: Final = 4
"""The number of results where LangChain names none."""


STORE_NAMES: Final = dict.fromkeys(("limit", "top_k", "n_results"), "k")
RETRIEVER_NAMES: Final = {**STORE_NAMES, "filter": "filters"}
"""What an argument is called here that has another name in sennit or in another framework."""


class SennitTranslator(Visitor):
    """Translates a structured query, which a model has written about the metadata, to a filter of sennit.

    It is the `structured_query_translator` of a `SelfQueryRetriever`. A `filter` of the vector store and the `filters` of
    the retriever may also be such a query's filter itself.
    """

    def visit_operation(self, operation: Operation) -> Filter:
        """Return the parts joined by and or or, or the complement of one."""
        parts = [as_filter(one) for one in operation.arguments]
        if operation.operator == Operator.NOT:
            if len(parts) != 1:
                raise FilterError(f"not takes one condition, and has {len(parts)}")
            return Not(parts[0])
        return And(tuple(parts)) if operation.operator == Operator.AND else Or(tuple(parts))

    def visit_comparison(self, comparison: Comparison) -> Filter:
        """Return the comparison of a field."""
        name, value = comparison.attribute, _plain_value(comparison.value)
        match comparison.comparator:
            case Comparator.CONTAIN:
                # A field of texts has such an element, and a text such a part.
                part = {name: {"icontains": value}} if isinstance(value, str) else {name: {"has": value}}
                return parse_filter({"or": [{name: {"has": value}}, part]})
            case Comparator.LIKE:
                pattern = (
                    str(value).replace("%", "*").replace("_", "?") if "%" in str(value) else f"*{value}*"
                )
                return parse_filter({name: {"ilike": pattern}})
            case other:
                return parse_filter({name: {other.value: value}})

    def visit_structured_query(self, structured_query: StructuredQuery) -> tuple[str, dict[str, Any]]:
        """Return the text to search for, and the arguments of the search."""
        if structured_query.filter is None:
            return structured_query.query, {}
        return structured_query.query, {"filter": as_filter(structured_query.filter)}


def as_filter(condition: Any) -> Any:
    """Return a filter of sennit for one of LangChain's structured queries; any other value as it is."""
    return condition.accept(SennitTranslator()) if isinstance(condition, FilterDirective) else condition


def _plain_value(value: Any) -> Any:
    """A date or time is an object that says so."""
    if isinstance(value, Mapping) and value.get("type") in ("date", "datetime"):
        return value.get(str(value["type"]))
    return value


class SennitVectorStore(VectorStore):
    """A collection of a database as a LangChain vector store. A search is hybrid: by keyword and by meaning.

    With `embedding`, LangChain computes the vectors of texts and queries; without it, sennit does. Every search takes the
    options of `Database.search` besides LangChain's own: `recipe`, `filter`, `caller`, `explain`, `min_relevance` and so
    on. With `details=True`, the metadata of each document has what sennit knows about the hit under `sennit`.
    """

    def __init__(
        self,
        db: Database,
        embedding: Embeddings | None = None,
        *,
        collection: str = "langchain",
        recipe: str | Recipe | None = None,
        caller: Caller | None = None,
    ) -> None:
        self._collection = FrameworkCollection(db, collection, caller)
        self._embedding = embedding
        self._recipe = recipe

    @property
    def db(self) -> Database:
        """The database."""
        return self._collection.db

    @property
    def embeddings(self) -> Embeddings | None:
        """The model that computes vectors; None if sennit does."""
        return self._embedding

    # Writing.

    def add_documents(
        self, documents: Iterable[Document], ids: Sequence[str | None] | None = None, **_: Any
    ) -> list[str]:
        """Add or replace documents, all or none; return their ids.

        An id comes from `ids`, from the document, or from its content.
        """
        batch = list(documents)
        texts = [document.page_content for document in batch]
        vectors = self._embedding.embed_documents(texts) if self._embedding and texts else None
        return self._add(batch, ids, vectors)

    async def aadd_documents(
        self, documents: Iterable[Document], ids: Sequence[str | None] | None = None, **_: Any
    ) -> list[str]:
        """The same as `add_documents`, awaited."""
        batch = list(documents)
        texts = [document.page_content for document in batch]
        vectors = await self._embedding.aembed_documents(texts) if self._embedding and texts else None
        return await asyncio.to_thread(self._add, batch, ids, vectors)

    def _add(
        self,
        documents: Sequence[Document],
        ids: Sequence[str | None] | None,
        vectors: Sequence[Sequence[float]] | None,
    ) -> list[str]:
        for name, given in (("ids", ids), ("vectors", vectors)):
            if given is not None and len(given) != len(documents):
                raise InvalidInput(f"There are {len(documents):,} documents and {len(given):,} {name}")
        records = [
            self._collection.make_record(
                (ids[at] if ids is not None else None) or document.id or "",
                document.page_content,
                document.metadata,
                None if vectors is None else vectors[at],
            )
            for at, document in enumerate(documents)
        ]
        self._collection.add(records)
        return [self._collection.own_id(record) for record in records]

    def delete(self, ids: Sequence[str] | None = None, *, filter: Any = None, **_: Any) -> bool:  # noqa: A002
        """Remove documents by their ids, or by a filter; without either, all of this collection."""
        if ids is not None and filter is not None:
            raise InvalidInput("delete() takes ids or a filter, not both")
        if ids is None:
            self._collection.remove_where(as_filter(filter))
        else:
            self._collection.remove(ids)
        return True

    # Reading.

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Return the documents that exist."""
        return [self._document(record) for record in self._collection.get(ids)]

    def search_result(
        self,
        query: str,
        k: int = DEFAULT_RESULTS,
        *,
        filter: Any = None,  # noqa: A002
        **options: Any,
    ) -> SearchResult:
        """Return the result of a search as sennit gives it: hits, `degraded`, hints, and the trace with `explain`."""
        if "vector" not in options and self._embedding is not None:
            options["vector"] = self._embedding.embed_query(query)
        return self._search(query, k, filter, options)

    async def asearch_result(
        self,
        query: str,
        k: int = DEFAULT_RESULTS,
        *,
        filter: Any = None,  # noqa: A002
        **options: Any,
    ) -> SearchResult:
        """The same as `search_result`, awaited."""
        if "vector" not in options and self._embedding is not None:
            options["vector"] = await self._embedding.aembed_query(query)
        return await asyncio.to_thread(self._search, query, k, filter, options)

    def _search(self, query: str, k: int, filters: Any, options: dict[str, Any]) -> SearchResult:
        check_options(options, STORE_NAMES)
        options.setdefault("recipe", self._recipe)
        return self._collection.search(query, **{"filters": as_filter(filters), **options, "limit": k})

    def similarity_search(
        self, query: str, k: int = DEFAULT_RESULTS, *, details: bool = False, **options: Any
    ) -> list[Document]:
        """Return the best documents, in order."""
        return self._documents(self.search_result(query, k, **options), details=details)

    async def asimilarity_search(
        self, query: str, k: int = DEFAULT_RESULTS, *, details: bool = False, **options: Any
    ) -> list[Document]:
        """The same as `similarity_search`, awaited."""
        return self._documents(await self.asearch_result(query, k, **options), details=details)

    def similarity_search_with_score(
        self, query: str, k: int = DEFAULT_RESULTS, *, details: bool = False, **options: Any
    ) -> list[tuple[Document, float]]:
        """Return the best documents with the score that they are ordered by; higher is better."""
        result = self.search_result(query, k, **options)
        return _with(self._documents(result, details=details), [hit.score for hit in result])

    async def asimilarity_search_with_score(
        self, query: str, k: int = DEFAULT_RESULTS, *, details: bool = False, **options: Any
    ) -> list[tuple[Document, float]]:
        """The same as `similarity_search_with_score`, awaited."""
        result = await self.asearch_result(query, k, **options)
        return _with(self._documents(result, details=details), [hit.score for hit in result])

    def _similarity_search_with_relevance_scores(
        self, query: str, k: int = DEFAULT_RESULTS, *, details: bool = False, **options: Any
    ) -> list[tuple[Document, float]]:
        """The calibrated chance of each document to answer the query, from 0 to 1."""
        result = self.search_result(query, k, **options)
        return _with(self._documents(result, details=details), [hit.relevance for hit in result])

    async def _asimilarity_search_with_relevance_scores(
        self, query: str, k: int = DEFAULT_RESULTS, *, details: bool = False, **options: Any
    ) -> list[tuple[Document, float]]:
        result = await self.asearch_result(query, k, **options)
        return _with(self._documents(result, details=details), [hit.relevance for hit in result])

    def similarity_search_by_vector(
        self, embedding: list[float], k: int = DEFAULT_RESULTS, *, details: bool = False, **options: Any
    ) -> list[Document]:
        """Return the documents nearest to a vector."""
        result = self.search_result("", k, recipe="vector", vector=embedding, **options)
        return self._documents(result, details=details)

    def max_marginal_relevance_search(
        self,
        query: str,
        k: int = DEFAULT_RESULTS,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        details: bool = False,
        **options: Any,
    ) -> list[Document]:
        """Return documents that are relevant and unlike each other, from the best `fetch_k`."""
        options["recipe"] = self._diverse(options.get("recipe"), k, fetch_k, lambda_mult)
        return self.similarity_search(query, k, details=details, **options)

    async def amax_marginal_relevance_search(
        self,
        query: str,
        k: int = DEFAULT_RESULTS,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        details: bool = False,
        **options: Any,
    ) -> list[Document]:
        """The same as `max_marginal_relevance_search`, awaited."""
        options["recipe"] = self._diverse(options.get("recipe"), k, fetch_k, lambda_mult)
        return await self.asimilarity_search(query, k, details=details, **options)

    def max_marginal_relevance_search_by_vector(
        self,
        embedding: list[float],
        k: int = DEFAULT_RESULTS,
        fetch_k: int = 20,
        lambda_mult: float = 0.5,
        *,
        details: bool = False,
        **options: Any,
    ) -> list[Document]:
        """Return documents that are near to a vector and unlike each other, from the nearest `fetch_k`."""
        options["recipe"] = self._diverse("vector", k, fetch_k, lambda_mult)
        return self.similarity_search("", k, details=details, vector=embedding, **options)

    def _diverse(self, recipe: str | Recipe | None, k: int, fetch_k: int, lambda_mult: float) -> Recipe:
        return diversified(
            self.db, recipe or self._recipe, relevance_weight=lambda_mult, depth=max(k, fetch_k), cosine=True
        )

    def _documents(self, result: SearchResult, *, details: bool) -> list[Document]:
        documents = [self._document(hit.record) for hit in result]
        if details:
            for document, hit in zip(documents, result, strict=True):
                document.metadata[DETAILS_KEY] = describe_hit(hit, result)
        return documents

    def _document(self, record: Record) -> Document:
        own_id = self._collection.own_id(record)
        return Document(id=own_id, page_content=record.text, metadata=dict(record.metadata))

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        db: Database | None = None,
        path: str = ":memory:",
        **options: Any,
    ) -> SennitVectorStore:
        """Return a store with these texts, in an open database or in the one at `path`, which is created if missing."""
        store = cls(sennit.open(path) if db is None else db, embedding, **options)
        store.add_texts(texts, metadatas, ids=ids)
        return store


class SennitRetriever(BaseRetriever):
    """Any search of a database as a LangChain retriever: records, indexed files, conversations, with any recipe.

    The metadata of each document has the citation under `source`, and what sennit knows about the hit under `sennit`:
    `relevance`, `score`, `sources`, and with `explain` or a failed source also `explanation` and `degraded`.
    `retriever.invoke(query, k=3)` overrides a field for one call; `options` takes any other argument of a search.
    """

    db: Database
    k: int = DEFAULT_RESULTS
    recipe: str | Recipe | None = None
    filters: Any = None
    caller: Caller | None = None
    min_relevance: float = 0.0
    explain: bool = False
    options: dict[str, Any] = Field(default_factory=dict)
    """Further arguments of `Database.search`."""

    def __init__(self, **fields: Any) -> None:
        check_names(fields, type(self).model_fields, RETRIEVER_NAMES)
        super().__init__(**fields)

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002 - the interface
        **changes: Any,
    ) -> list[Document]:
        return self._retrieve(query, changes)

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002 - the interface
        **changes: Any,
    ) -> list[Document]:
        return await asyncio.to_thread(self._retrieve, query, changes)

    def _retrieve(self, query: str, changes: dict[str, Any]) -> list[Document]:
        limit = changes.pop("k", self.k)
        options = {
            "recipe": self.recipe,
            "filters": self.filters,
            "caller": self.caller,
            "min_relevance": self.min_relevance,
            "explain": self.explain,
            **self.options,
            **changes,
        }
        check_options(options, RETRIEVER_NAMES)
        options["filters"] = as_filter(options["filters"])
        result = self.db.search(query, **{**options, "limit": limit})
        return [
            Document(
                id=hit.id,
                page_content=hit.passage,
                metadata={**describe_record(hit), DETAILS_KEY: describe_hit(hit, result)},
            )
            for hit in result
        ]


def _with(documents: Sequence[Document], scores: Sequence[float]) -> list[tuple[Document, float]]:
    return list(zip(documents, scores, strict=True))
