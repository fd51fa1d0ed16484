"""sennit in LlamaIndex: a vector store and a retriever."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sennit.errors import InvalidInput, MissingExtra

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.bridge.pydantic import PrivateAttr
    from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
    from llama_index.core.vector_stores.types import (
        BasePydanticVectorStore,
        FilterCondition,
        FilterOperator,
        MetadataFilter,
        MetadataFilters,
        VectorStoreQuery,
        VectorStoreQueryMode,
        VectorStoreQueryResult,
    )
    from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict
except ModuleNotFoundError as missing:
    raise MissingExtra("sennit.integrations.llamaindex", "llamaindex") from missing

from sennit.engine import Database
from sennit.filters import EVERYTHING, And, Equal, Exists, Filter, In, Not, Or, field
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
from sennit.ranking.fusion import Weighted
from sennit.recipes import Recipe, find_recipe
from sennit.records import Record
from sennit.results import SearchResult

DOCUMENT_FIELD: Final = "ref_doc_id"
"""The field of the metadata that names the document of a node."""

_COUNT_NAMES: Final = dict.fromkeys(("k", "top_k"), "similarity_top_k")
QUERY_NAMES: Final = {**_COUNT_NAMES, "filter": "query.filters", "filters": "query.filters"}
RETRIEVER_NAMES: Final = {**_COUNT_NAMES, "filter": "filters"}
"""What an argument is called here that has another name in sennit or in another framework."""

RETRIEVER_FIELDS: Final = (
    *("similarity_top_k", "recipe", "filters", "caller", "options"),
    *("callback_manager", "object_map", "objects", "verbose"),
)
"""The arguments of the retriever: its own, and those of LlamaIndex."""

DEFAULT_RESULTS: Final = 5
DEFAULT_DIVERSITY: Final = 0.5
"""The weight of relevance in a search for diverse results, where the query names none."""

_RECIPES: Final[Mapping[VectorStoreQueryMode, str | None]] = {
    VectorStoreQueryMode.DEFAULT: "vector",
    VectorStoreQueryMode.MMR: "vector",
    VectorStoreQueryMode.TEXT_SEARCH: "keyword",
    VectorStoreQueryMode.SPARSE: "keyword",
    VectorStoreQueryMode.HYBRID: None,
    VectorStoreQueryMode.SEMANTIC_HYBRID: None,
}
"""The recipe of each mode; None for that of the store."""


@dataclass
class SennitQueryResult(VectorStoreQueryResult):
    """The result of a query, with all that sennit knows about it: relevance, `degraded`, hints, the trace."""

    result: SearchResult | None = None


class SennitVectorStore(BasePydanticVectorStore):
    """A collection of a database as a LlamaIndex vector store. It keeps the text of nodes, so an index needs no other.

    The mode of a query chooses the recipe: `default` searches by meaning, `text_search` by keyword, and `hybrid` by the
    recipe of the store. `query(…, recipe=…, caller=…, explain=True)` and the `vector_store_kwargs` of a retriever take
    the arguments of `Database.search`. With `details=True`, the metadata of each node has what sennit knows about it.
    """

    stores_text: bool = True
    is_embedding_query: bool = True

    _collection: FrameworkCollection = PrivateAttr()
    _recipe: str | Recipe | None = PrivateAttr()

    def __init__(
        self,
        db: Database,
        *,
        collection: str = "llamaindex",
        recipe: str | Recipe | None = None,
        caller: Caller | None = None,
        **fields: Any,
    ) -> None:
        super().__init__(**fields)
        self._collection = FrameworkCollection(db, collection, caller)
        self._recipe = recipe

    @classmethod
    def class_name(cls) -> str:
        return "SennitVectorStore"

    @property
    def client(self) -> Database:
        """The database."""
        return self._collection.db

    # Writing.

    def add(self, nodes: Sequence[BaseNode], **_: Any) -> list[str]:
        """Add or replace nodes, all or none; return their ids. A node with an embedding is stored with it."""
        self._collection.add([self._record(node) for node in nodes])
        return [node.node_id for node in nodes]

    async def async_add(self, nodes: Sequence[BaseNode], **_: Any) -> list[str]:
        """The same as `add`, awaited."""
        return await asyncio.to_thread(self.add, nodes)

    def delete(self, ref_doc_id: str, **_: Any) -> None:
        """Remove the nodes of a document."""
        self._remove_where(Equal(DOCUMENT_FIELD, ref_doc_id))

    async def adelete(self, ref_doc_id: str, **_: Any) -> None:
        """The same as `delete`, awaited."""
        await asyncio.to_thread(self.delete, ref_doc_id)

    def delete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **_: Any
    ) -> None:
        """Remove nodes by their ids, by a filter, or by both."""
        if node_ids is None and filters is None:
            raise InvalidInput("delete_nodes() takes ids, a filter or both; clear() removes every node")
        self._remove_where(self._select(node_ids, filters))

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **_: Any
    ) -> None:
        """The same as `delete_nodes`, awaited."""
        await asyncio.to_thread(self.delete_nodes, node_ids, filters)

    def clear(self) -> None:
        """Remove every node of this store."""
        self._collection.remove_where()

    async def aclear(self) -> None:
        """The same as `clear`, awaited."""
        await asyncio.to_thread(self.clear)

    # Reading.

    def get_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Return the nodes with these ids that match a filter, in the order of their ids."""
        return [self._node(record) for record in self._collection.records(self._select(node_ids, filters))]

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """The same as `get_nodes`, awaited."""
        return await asyncio.to_thread(self.get_nodes, node_ids, filters)

    def query(self, query: VectorStoreQuery, *, details: bool = False, **options: Any) -> SennitQueryResult:
        """Return the best nodes with the scores that they are ordered by; higher is better."""
        check_options(options, QUERY_NAMES)
        # An index that keeps no nodes itself sends an empty list of ids, and means all.
        conditions = [self._select(query.node_ids or None, query.filters)]
        if query.doc_ids:
            conditions.append(In(DOCUMENT_FIELD, tuple(query.doc_ids)))
        hybrid = query.mode in (VectorStoreQueryMode.HYBRID, VectorStoreQueryMode.SEMANTIC_HYBRID)
        limit = query.hybrid_top_k if hybrid and query.hybrid_top_k else query.similarity_top_k
        result = self._collection.search(
            query.query_str or "",
            **{
                "recipe": self._choose_recipe(query),
                "vector": query.query_embedding,
                "limit": limit,
                **options,
                "filters": And(tuple(conditions)),
            },
        )
        nodes = [self._node(hit.record) for hit in result]
        if details:
            for node, hit in zip(nodes, result, strict=True):
                node.metadata[DETAILS_KEY] = describe_hit(hit, result)
        return SennitQueryResult(
            nodes=nodes,
            similarities=[hit.score for hit in result],
            ids=[node.node_id for node in nodes],
            result=result,
        )

    async def aquery(
        self, query: VectorStoreQuery, *, details: bool = False, **options: Any
    ) -> SennitQueryResult:
        """The same as `query`, awaited."""
        return await asyncio.to_thread(self.query, query, details=details, **options)

    def _choose_recipe(self, query: VectorStoreQuery) -> str | Recipe | None:
        if query.mode not in _RECIPES:
            known = ", ".join(mode.value for mode in _RECIPES)
            raise InvalidInput(f"There is no search in the mode {query.mode.value!r}. Modes: {known}")
        db = self._collection.db
        recipe = _RECIPES[query.mode] or self._recipe
        if query.mode == VectorStoreQueryMode.MMR:
            weight = DEFAULT_DIVERSITY if query.mmr_threshold is None else query.mmr_threshold
            depth = query.similarity_top_k * 4
            return diversified(db, recipe, relevance_weight=weight, depth=depth, cosine=True)
        if _RECIPES[query.mode] is None and query.alpha is not None:
            chosen = (
                recipe
                if isinstance(recipe, Recipe)
                else find_recipe(recipe or db.settings.search.recipe, db.recipes)
            )
            return weigh(chosen, query.alpha)
        return recipe

    def _select(self, node_ids: Sequence[str] | None, filters: MetadataFilters | None) -> Filter:
        condition = translate_filters(filters)
        if node_ids is None:
            return condition
        return In("id", tuple(map(self._collection.record_id, node_ids))) & condition

    def _remove_where(self, condition: Filter) -> None:
        # Nothing to remove is no error here, also where no node has the field yet.
        self._collection.remove_where(self._collection.forget_unknown_fields(condition))

    def _record(self, node: BaseNode) -> Record:
        metadata = node_to_metadata_dict(node, remove_text=True, flat_metadata=False)
        # Other stores need these names of the document; here one is enough.
        for repeated in ("document_id", "doc_id"):
            metadata[repeated] = node.metadata.get(repeated)
        text = node.get_content(metadata_mode=MetadataMode.NONE)
        kept = {name: value for name, value in metadata.items() if value is not None or name in node.metadata}
        return self._collection.make_record(node.node_id, text, kept, node.embedding)

    def _node(self, record: Record) -> BaseNode:
        return metadata_dict_to_node(dict(record.metadata), text=record.text)


class SennitRetriever(BaseRetriever):
    """Any search of a database as a LlamaIndex retriever: records, indexed files, conversations, with any recipe.

    The metadata of each node has the citation under `source`, and what sennit knows about the hit under `sennit`:
    `relevance`, `score`, `sources`, and with `explain` or a failed source also `explanation` and `degraded`. `options`
    are further arguments of `Database.search`.
    """

    def __init__(
        self,
        db: Database,
        *,
        similarity_top_k: int = DEFAULT_RESULTS,
        recipe: str | Recipe | None = None,
        filters: Any = None,
        caller: Caller | None = None,
        options: Mapping[str, Any] | None = None,
        **fields: Any,
    ) -> None:
        check_names(fields, RETRIEVER_FIELDS, {**RETRIEVER_NAMES, "limit": "similarity_top_k"})
        self._db = db
        self._options: dict[str, Any] = {
            "limit": similarity_top_k,
            "recipe": recipe,
            "filters": translate_filters(filters) if isinstance(filters, MetadataFilters) else filters,
            "caller": caller,
            **(options or {}),
        }
        super().__init__(**fields)

    def search_result(self, query: str, **changes: Any) -> SearchResult:
        """Return the result of a search as sennit gives it."""
        options = {**self._options, **changes}
        check_options(options, RETRIEVER_NAMES)
        return self._db.search(query, **options)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        result = self.search_result(query_bundle.query_str)
        return [
            NodeWithScore(
                node=TextNode(
                    id_=hit.id,
                    text=hit.passage,
                    metadata={**describe_record(hit), DETAILS_KEY: describe_hit(hit, result)},
                    # A model that reads the node needs the citation, and not our numbers.
                    excluded_llm_metadata_keys=[DETAILS_KEY],
                    excluded_embed_metadata_keys=[DETAILS_KEY],
                ),
                score=hit.score,
            )
            for hit in result
        ]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await asyncio.to_thread(self._retrieve, query_bundle)


def weigh(recipe: Recipe, alpha: float) -> Recipe:
    """Return a recipe whose fusion weighs meaning with `alpha` and keywords with the rest."""
    if not isinstance(recipe.fusion, Weighted):
        raise InvalidInput(
            f"alpha needs a recipe with weights, and {recipe.name!r} has none; leave alpha out"
        )
    if not 0 <= alpha <= 1:
        raise InvalidInput(f"alpha must be from 0 to 1, not {alpha!r}")
    weights = {**recipe.fusion.weights, "keyword": 1 - alpha, "vector": alpha}
    return replace(recipe, fusion=replace(recipe.fusion, weights=weights))


def translate_filters(filters: MetadataFilters | None) -> Filter:
    """Return filters of LlamaIndex as one of sennit."""
    if filters is None or not filters.filters:
        return EVERYTHING
    parts = tuple(
        translate_filters(one) if isinstance(one, MetadataFilters) else _condition(one)
        for one in filters.filters
    )
    match filters.condition or FilterCondition.AND:
        case FilterCondition.OR:
            return Or(parts)
        case FilterCondition.NOT:
            # LlamaIndex: none of the filters holds.
            return Not(Or(parts))
        case _:
            return And(parts)


_OPERATORS: Final[Mapping[FilterOperator, Callable[[str, Any], Filter]]] = {
    FilterOperator.EQ: lambda name, value: field(name) == value,
    FilterOperator.NE: lambda name, value: field(name) != value,
    FilterOperator.GT: lambda name, value: field(name) > value,
    FilterOperator.GTE: lambda name, value: field(name) >= value,
    FilterOperator.LT: lambda name, value: field(name) < value,
    FilterOperator.LTE: lambda name, value: field(name) <= value,
    FilterOperator.IN: lambda name, value: field(name).is_in(value),
    FilterOperator.NIN: lambda name, value: Not(field(name).is_in(value)),
    FilterOperator.ANY: lambda name, value: field(name).has_any(value),
    FilterOperator.ALL: lambda name, value: field(name).has_all(value),
    FilterOperator.CONTAINS: lambda name, value: field(name).has(value),
    FilterOperator.TEXT_MATCH: lambda name, value: field(name).contains(value),
    FilterOperator.TEXT_MATCH_INSENSITIVE: lambda name, value: field(name).contains(value, ignore_case=True),
    FilterOperator.IS_EMPTY: lambda name, _: Not(Exists(name)),
}


def _condition(one: MetadataFilter) -> Filter:
    name = f"metadata.{one.key}"
    if one.value is None and one.operator in (FilterOperator.EQ, FilterOperator.NE):
        return Not(Exists(name)) if one.operator == FilterOperator.EQ else Exists(name)
    return _OPERATORS[one.operator](name, one.value)
