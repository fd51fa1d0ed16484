"""sennit in Haystack: a document store, and retrievers by keyword, by embedding and by both."""

from __future__ import annotations

import asyncio
import base64
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Literal

import numpy as np

from sennit.errors import FilterError, InvalidInput, MissingExtra

try:
    from haystack import Document, component, default_from_dict, default_to_dict
    from haystack.dataclasses import ByteStream, SparseEmbedding
    from haystack.document_stores.errors import DuplicateDocumentError
    from haystack.document_stores.types import DuplicatePolicy, FilterPolicy, apply_filter_policy
    from haystack.errors import FilterError as HaystackFilterError
    from haystack.utils import Secret
except ModuleNotFoundError as missing:
    raise MissingExtra("sennit.integrations.haystack", "haystack") from missing

import sennit
from sennit.engine import Database
from sennit.filters import EVERYTHING, NOTHING, And, Equal, Exists, Filter, In, Not, Or, Range
from sennit.integrations.collection import DETAILS_KEY, FrameworkCollection, check_options, describe_hit
from sennit.privacy import Caller
from sennit.records import Record
from sennit.results import SearchResult

OWN_FIELDS_KEY: Final = "_haystack"
"""The key of the metadata under which a record has the fields of a document that a record does not know."""

CONTENT_FIELDS: Final = ("content", "blob", "score", "embedding", "sparse_embedding")
"""Fields of a document that a filter cannot compare."""

SEARCH_NAMES: Final = {"limit": "top_k", "k": "top_k", "filter": "filters"}
"""What an argument of a search is called here that has another name in sennit or in another framework."""

_BOUNDS: Final[Mapping[str, Callable[[str, Any], Filter]]] = {
    ">": lambda name, value: Range(name, low=value, include_low=False),
    ">=": lambda name, value: Range(name, low=value),
    "<": lambda name, value: Range(name, high=value, include_high=False),
    "<=": lambda name, value: Range(name, high=value),
}


class SennitDocumentStore:
    """A collection of a database as a Haystack document store.

    `target` is the folder of the database, the connection string of one on Postgres (a `Secret` keeps it out of
    serialised pipelines), or an open `Database`. Documents with an embedding are stored with it, and sennit then computes
    none; without embeddings, sennit computes them. `settings` are those of `sennit.open`, by name.
    """

    def __init__(
        self,
        target: str | Secret | Database = ":memory:",
        *,
        collection: str = "haystack",
        caller: Mapping[str, Any] | Caller | None = None,
        return_embedding: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        """With `return_embedding`, each record also keeps the embedding as it was given, and documents have it."""
        self._target = target
        self._name = collection
        self._caller = as_caller(caller)
        self._return_embedding = return_embedding
        self._settings = dict(settings or {})
        self._lock = threading.Lock()
        self._opened: FrameworkCollection | None = None

    @property
    def db(self) -> Database:
        """The database, which is opened when it is first needed."""
        return self._collection.db

    @property
    def _collection(self) -> FrameworkCollection:
        with self._lock:
            if self._opened is None:
                target = self._target
                if isinstance(target, Secret):
                    target = target.resolve_value()
                db = target if isinstance(target, Database) else sennit.open(target, **self._settings)
                self._opened = FrameworkCollection(db, self._name, self._caller)
            return self._opened

    def close(self) -> None:
        """Close the database, unless it was opened by somebody else."""
        with self._lock:
            if self._opened is not None and not isinstance(self._target, Database):
                self._opened.db.close()
            self._opened = None

    # Pipelines as files.

    def to_dict(self) -> dict[str, Any]:
        """Return the store for a serialised pipeline."""
        if isinstance(self._target, Database):
            raise InvalidInput(
                "A document store over an open Database cannot be serialised; make it with the path of the database"
            )
        values = default_to_dict(
            self,
            target=self._target.to_dict() if isinstance(self._target, Secret) else self._target,
            collection=self._name,
            caller=caller_to_dict(self._caller),
            return_embedding=self._return_embedding,
            settings=self._settings,
        )
        return dict(values)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> SennitDocumentStore:
        """Return the store of a serialised pipeline."""
        parameters = dict(data.get("init_parameters", {}))
        if isinstance(parameters.get("target"), Mapping):
            parameters["target"] = Secret.from_dict(parameters["target"])
        return cls(**parameters)

    # The protocol of a document store.

    def count_documents(self) -> int:
        """Return how many documents there are."""
        return self._collection.count()

    def filter_documents(self, filters: dict[str, Any] | None = None) -> list[Document]:
        """Return the documents that match a filter, in the order of their ids."""
        return [self._document(record) for record in self._matching(filters)]

    def write_documents(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Write documents, all or none; return how many. Without a policy, a duplicate is an error."""
        if not isinstance(documents, Iterable) or not all(isinstance(one, Document) for one in documents):
            raise ValueError("write_documents() takes a list of Document values")
        batch = {document.id: document for document in documents}
        if policy != DuplicatePolicy.OVERWRITE:
            known = {self._collection.own_id(record) for record in self._collection.get(batch)}
            repeated = [name for name in batch if name in known]
            if policy != DuplicatePolicy.SKIP and (repeated or len(batch) < len(documents)):
                names = repeated or [document.id for document in documents]
                raise DuplicateDocumentError(f"A document with the id {names[0]!r} exists already")
            batch = {name: document for name, document in batch.items() if name not in known}
        self._collection.add([self._record(document) for document in batch.values()])
        return len(batch) if policy == DuplicatePolicy.SKIP else len(documents)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Remove documents by their ids; those that do not exist are ignored."""
        self._collection.remove(document_ids)

    # What Haystack expects of stores beyond the protocol.

    def delete_all_documents(self, recreate_index: bool = False) -> None:
        """Remove every document of this store; `recreate_index` also merges the indexes, which frees their space now."""
        self._collection.remove_where()
        if recreate_index:
            self.db.admin.optimise()

    def delete_by_filter(self, filters: dict[str, Any]) -> int:
        """Remove the documents that match a filter; return how many there were."""
        return self._collection.remove_where(self._translate(filters))

    def update_by_filter(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        """Set fields of the meta of the documents that match a filter; return how many there were."""
        changed = [
            replace(record, metadata={**record.metadata, **meta}) for record in self._matching(filters)
        ]
        # A record that is written again with the same text keeps its vector.
        self._collection.add(changed)
        return len(changed)

    def count_documents_by_filter(self, filters: dict[str, Any]) -> int:
        """Return how many documents match a filter."""
        return self._collection.count(self._translate(filters))

    def count_unique_metadata_by_filter(
        self, filters: dict[str, Any], metadata_fields: list[str]
    ) -> dict[str, int]:
        """Return how many different values each field of the meta has in the documents that match a filter."""
        values: dict[str, set[Any]] = {_meta_key(name): set() for name in metadata_fields}
        for record in self._matching(filters):
            for name, seen in values.items():
                if record.metadata.get(name) is not None:
                    seen.add(_hashable(record.metadata[name]))
        return {name: len(seen) for name, seen in values.items()}

    def get_metadata_fields_info(self) -> dict[str, dict[str, str]]:
        """Return the type of each field of the meta."""
        types: dict[str, dict[str, str]] = {}
        for record in self._matching(None):
            for name, value in record.metadata.items():
                if name != OWN_FIELDS_KEY and value is not None:
                    types.setdefault(name, {"type": _type_name(value)})
        return types

    def get_metadata_field_min_max(self, metadata_field: str) -> dict[str, Any]:
        """Return the least and the greatest value of a field of the meta; None if no document has it."""
        values = [value for value in self._values(metadata_field, None) if not isinstance(value, bool)]
        numbers = [value for value in values if isinstance(value, (int, float))]
        ordered: list[Any] = numbers or [value for value in values if isinstance(value, str)]
        return {"min": min(ordered, default=None), "max": max(ordered, default=None)}

    def get_metadata_field_unique_values(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int | None = 10,
        filters: dict[str, Any] | None = None,
    ) -> tuple[list[Any], int]:
        """Return a page of the different values of a field of the meta, in order, and how many there are."""
        unique = {_hashable(value): value for value in self._values(metadata_field, filters)}
        wanted = (search_term or "").casefold()
        found = [value for value in unique.values() if wanted in str(value).casefold()]
        found.sort(key=lambda value: (str(value), type(value).__name__))
        return found[from_ : None if size is None else from_ + size], len(found)

    # Retrieval.

    def search(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int = 10, **options: Any
    ) -> SearchResult:
        """Return the result of a search as sennit gives it. The options are those of `Database.search`."""
        check_options(options, SEARCH_NAMES)
        return self._collection.search(query, filters=self._translate(filters), limit=top_k, **options)

    def documents_of(self, result: SearchResult) -> list[Document]:
        """Return the hits of a result as documents with their score; `meta["sennit"]` says the rest."""
        return [
            replace(
                document,
                score=hit.score,
                meta={**document.meta, DETAILS_KEY: describe_hit(hit, result)},
            )
            for hit, document in ((hit, self._document(hit.record)) for hit in result)
        ]

    def _translate(self, filters: dict[str, Any] | None) -> Filter:
        if not filters:
            return EVERYTHING
        condition = translate_filter(filters, self._collection.record_id)
        return self._collection.forget_unknown_fields(condition)

    def _matching(self, filters: dict[str, Any] | None) -> Iterator[Record]:
        return self._collection.records(self._translate(filters))

    def _values(self, metadata_field: str, filters: dict[str, Any] | None) -> Iterator[Any]:
        """The values of a field of the meta; an element of a list is a value."""
        name = _meta_key(metadata_field)
        for record in self._matching(filters):
            value = record.metadata.get(name)
            if isinstance(value, (list, tuple)):
                yield from value
            elif value is not None:
                yield value

    def _record(self, document: Document) -> Record:
        own: dict[str, Any] = {}
        if document.content is None:
            own["content"] = None
        if document.blob is not None:
            own["blob"] = {
                "data": base64.b64encode(document.blob.data).decode(),
                "meta": document.blob.meta,
                "mime_type": document.blob.mime_type,
            }
        if document.sparse_embedding is not None:
            own["sparse_embedding"] = document.sparse_embedding.to_dict()
        if self._return_embedding and document.embedding is not None:
            own["embedding"] = base64.b64encode(np.asarray(document.embedding, np.float64).tobytes()).decode()
        meta = {**document.meta, OWN_FIELDS_KEY: own} if own else document.meta
        return self._collection.make_record(document.id, document.content or "", meta, document.embedding)

    def _document(self, record: Record) -> Document:
        meta: dict[str, Any] = dict(record.metadata)
        own: dict[str, Any] = meta.pop(OWN_FIELDS_KEY, {})
        blob, sparse, embedding = own.get("blob"), own.get("sparse_embedding"), own.get("embedding")
        return Document(
            id=self._collection.own_id(record),
            content=None if "content" in own else record.text,
            meta=meta,
            blob=blob and ByteStream(base64.b64decode(blob["data"]), blob["meta"], blob["mime_type"]),
            sparse_embedding=sparse and SparseEmbedding.from_dict(sparse),
            embedding=np.frombuffer(base64.b64decode(embedding), np.float64).tolist() if embedding else None,
        )

    # Each method awaited, as Haystack names it.

    async def count_documents_async(self) -> int:
        return await asyncio.to_thread(self.count_documents)

    async def filter_documents_async(self, filters: dict[str, Any] | None = None) -> list[Document]:
        return await asyncio.to_thread(self.filter_documents, filters)

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        return await asyncio.to_thread(self.write_documents, documents, policy)

    async def delete_documents_async(self, document_ids: list[str]) -> None:
        await asyncio.to_thread(self.delete_documents, document_ids)

    async def delete_all_documents_async(self, recreate_index: bool = False) -> None:
        await asyncio.to_thread(self.delete_all_documents, recreate_index)

    async def delete_by_filter_async(self, filters: dict[str, Any]) -> int:
        return await asyncio.to_thread(self.delete_by_filter, filters)

    async def update_by_filter_async(self, filters: dict[str, Any], meta: dict[str, Any]) -> int:
        return await asyncio.to_thread(self.update_by_filter, filters, meta)

    async def count_documents_by_filter_async(self, filters: dict[str, Any]) -> int:
        return await asyncio.to_thread(self.count_documents_by_filter, filters)

    async def count_unique_metadata_by_filter_async(
        self, filters: dict[str, Any], metadata_fields: list[str]
    ) -> dict[str, int]:
        return await asyncio.to_thread(self.count_unique_metadata_by_filter, filters, metadata_fields)

    async def get_metadata_fields_info_async(self) -> dict[str, dict[str, str]]:
        return await asyncio.to_thread(self.get_metadata_fields_info)

    async def get_metadata_field_min_max_async(self, metadata_field: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.get_metadata_field_min_max, metadata_field)

    async def get_metadata_field_unique_values_async(
        self,
        metadata_field: str,
        search_term: str | None = None,
        from_: int = 0,
        size: int | None = 10,
        filters: dict[str, Any] | None = None,
    ) -> tuple[list[Any], int]:
        return await asyncio.to_thread(
            self.get_metadata_field_unique_values, metadata_field, search_term, from_, size, filters
        )


class _Retriever:
    """What the retrievers share: a store, filters and options, and how a pipeline is written to a file."""

    recipe: str | None

    def __init__(
        self,
        document_store: SennitDocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        filter_policy: str | FilterPolicy = FilterPolicy.REPLACE,
        options: dict[str, Any] | None = None,
    ) -> None:
        if not isinstance(document_store, SennitDocumentStore):
            raise InvalidInput("document_store must be a SennitDocumentStore")
        if top_k < 1:
            raise InvalidInput(f"top_k must be at least 1, not {top_k}")
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k
        self.filter_policy = (
            FilterPolicy.from_str(filter_policy) if isinstance(filter_policy, str) else filter_policy
        )
        self.options = dict(options or {})

    def to_dict(self) -> dict[str, Any]:
        """Return the component for a serialised pipeline."""
        return dict(
            default_to_dict(
                self,
                document_store=self.document_store.to_dict(),
                filters=self.filters,
                top_k=self.top_k,
                filter_policy=self.filter_policy.value,
                options=self.options,
                **self._own_parameters(),
            )
        )

    def _own_parameters(self) -> dict[str, Any]:
        return {}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Any:
        """Return the component of a serialised pipeline."""
        parameters = dict(data["init_parameters"])
        if isinstance(parameters["document_store"], dict):
            parameters["document_store"] = SennitDocumentStore.from_dict(parameters["document_store"])
        return default_from_dict(cls, {**data, "init_parameters": parameters})

    def _retrieve(
        self, query: str, filters: dict[str, Any] | None, top_k: int | None, options: dict[str, Any] | None
    ) -> dict[str, Any]:
        chosen = apply_filter_policy(self.filter_policy, self.filters, filters)
        recipe = {} if self.recipe is None else {"recipe": self.recipe}
        result = self.document_store.search(
            query,
            chosen,
            self.top_k if top_k is None else top_k,
            **{**recipe, **self.options, **(options or {})},
        )
        degraded = [source.to_dict() for source in result.degraded]
        return {"documents": self.document_store.documents_of(result), "degraded": degraded}


@component
class SennitKeywordRetriever(_Retriever):
    """Retrieves documents by keyword (BM25). The output `degraded` names sources that failed, as for all retrievers."""

    recipe = "keyword"

    @component.output_types(documents=list[Document], degraded=list[dict[str, Any]])
    def run(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Retrieve documents. `options` are further arguments of `Database.search`."""
        return self._retrieve(query, filters, top_k, options)

    @component.output_types(documents=list[Document], degraded=list[dict[str, Any]])
    async def run_async(
        self,
        query: str,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The same as `run`, awaited."""
        return await asyncio.to_thread(self._retrieve, query, filters, top_k, options)


@component
class SennitEmbeddingRetriever(_Retriever):
    """Retrieves documents by their embeddings, which came with them."""

    recipe = "vector"

    @component.output_types(documents=list[Document], degraded=list[dict[str, Any]])
    def run(
        self,
        query_embedding: list[float],
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Retrieve documents. `options` are further arguments of `Database.search`."""
        return self._retrieve("", filters, top_k, {**(options or {}), "vector": query_embedding})

    @component.output_types(documents=list[Document], degraded=list[dict[str, Any]])
    async def run_async(
        self,
        query_embedding: list[float],
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The same as `run`, awaited."""
        return await asyncio.to_thread(self.run, query_embedding, filters, top_k, options)


@component
class SennitHybridRetriever(_Retriever):
    """Retrieves documents by keyword and by meaning, fused by a recipe; without one, by that of the settings.

    `query_embedding` is for documents that came with embeddings; without them, sennit embeds the query.
    """

    def __init__(
        self,
        document_store: SennitDocumentStore,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        filter_policy: str | FilterPolicy = FilterPolicy.REPLACE,
        options: dict[str, Any] | None = None,
        recipe: str | None = None,
    ) -> None:
        # The decorator makes another class of this one, which super() does not know.
        _Retriever.__init__(self, document_store, filters, top_k, filter_policy, options)
        self.recipe = recipe

    def _own_parameters(self) -> dict[str, Any]:
        return {"recipe": self.recipe}

    @component.output_types(documents=list[Document], degraded=list[dict[str, Any]])
    def run(
        self,
        query: str,
        query_embedding: list[float] | None = None,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Retrieve documents. `options` are further arguments of `Database.search`."""
        return self._retrieve(query, filters, top_k, {**(options or {}), "vector": query_embedding})

    @component.output_types(documents=list[Document], degraded=list[dict[str, Any]])
    async def run_async(
        self,
        query: str,
        query_embedding: list[float] | None = None,
        filters: dict[str, Any] | None = None,
        top_k: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The same as `run`, awaited."""
        return await asyncio.to_thread(self.run, query, query_embedding, filters, top_k, options)


def as_caller(value: Mapping[str, Any] | Caller | None) -> Caller | None:
    """Return the caller of its fields, as a serialised pipeline has them."""
    if value is None or isinstance(value, Caller):
        return value
    return Caller(**{**value, "scopes": frozenset(value.get("scopes", ()))})


def caller_to_dict(caller: Caller | None) -> dict[str, Any] | None:
    """Return the fields of a caller as JSON values."""
    if caller is None:
        return None
    return {
        "clearance": caller.clearance,
        "scopes": sorted(caller.scopes),
        "tenant": caller.tenant,
        "name": caller.name,
        "everything": caller.everything,
    }


def translate_filter(filters: Any, record_id: Callable[[str], str]) -> Filter:
    """Return a Haystack filter as one of sennit. Raises Haystack's FilterError for one that is malformed."""
    try:
        return _translate(filters, record_id)
    except FilterError as error:
        raise HaystackFilterError(str(error)) from error


def _translate(filters: Any, record_id: Callable[[str], str]) -> Filter:
    if not isinstance(filters, Mapping):
        raise HaystackFilterError(f"A filter must be an object, not {type(filters).__name__}")
    if "field" in filters:
        return _comparison(filters, record_id)
    for key in ("operator", "conditions"):
        if key not in filters:
            raise HaystackFilterError(f"{key!r} is missing in the filter {dict(filters)!r:.200}")
    operator, conditions = filters["operator"], filters["conditions"]
    if operator not in ("AND", "OR", "NOT"):
        raise HaystackFilterError(f"Unknown operator {operator!r}; AND, OR and NOT combine conditions")
    if not isinstance(conditions, list):
        raise HaystackFilterError(f"'conditions' must be a list, not {type(conditions).__name__}")
    parts = tuple(_translate(condition, record_id) for condition in conditions)
    if operator == "OR":
        return Or(parts)
    return Not(And(parts)) if operator == "NOT" else And(parts)


def _comparison(condition: Mapping[str, Any], record_id: Callable[[str], str]) -> Filter:
    for key in ("operator", "value"):
        if key not in condition:
            raise HaystackFilterError(f"{key!r} is missing in the condition {dict(condition)!r:.200}")
    name, operator, value = condition["field"], condition["operator"], condition["value"]
    if name in CONTENT_FIELDS:
        raise HaystackFilterError(f"A filter compares id and meta, not {name!r}; search for it instead")
    field = "id" if name == "id" else f"metadata.{_meta_key(name)}"
    if field == "id":
        value = [record_id(one) for one in value] if isinstance(value, list) else value and record_id(value)
    if operator in ("==", "!="):
        equal = Not(Exists(field)) if value is None else Equal(field, _scalar(value))
        return equal if operator == "==" else Not(equal)
    if operator in ("in", "not in"):
        among = _among(field, operator, value)
        return among if operator == "in" else Not(among)
    if operator not in _BOUNDS:
        known = ", ".join(("==", "!=", "in", "not in", *_BOUNDS))
        raise HaystackFilterError(f"Unknown operator {operator!r}; a condition takes {known}")
    return NOTHING if value is None else _BOUNDS[operator](field, _bound(operator, value))


def _among(field: str, operator: str, values: object) -> Filter:
    if not isinstance(values, list):
        raise HaystackFilterError(f"{operator!r} takes a list of values, not {type(values).__name__}")
    some: Filter = In(field, tuple(_scalar(value) for value in values if value is not None))
    return some | Not(Exists(field)) if None in values else some


def _scalar(value: object) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, (list, tuple, Mapping)):
        raise HaystackFilterError(
            "A field cannot be compared with a list or an object; an element of a list is found by its own value"
        )
    return value


def _bound(operator: str, value: object) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise HaystackFilterError(f"{operator!r} takes a number or a date, not {type(value).__name__}")
    if isinstance(value, str):
        try:
            datetime.fromisoformat(value)
        except ValueError as error:
            raise HaystackFilterError(
                f"{operator!r} takes a number or a date in ISO 8601 form, not {value!r:.80}"
            ) from error
    return value


def _meta_key(name: str) -> str:
    return name.removeprefix("meta.")


def _hashable(value: Any) -> tuple[str, str]:
    """A key that tells 1, 1.0, "1" and True apart."""
    return type(value).__name__, repr(value)


def _type_name(value: Any) -> Literal["boolean", "int", "float", "text", "list", "object"]:
    match value:
        case bool():
            return "boolean"
        case int():
            return "int"
        case float():
            return "float"
        case str():
            return "text"
        case list() | tuple():
            return "list"
        case _:
            return "object"
