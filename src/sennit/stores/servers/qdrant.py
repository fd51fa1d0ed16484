"""Qdrant as keyword and vector index: one collection per database and embedding model, asked for both in one request.

A point has the record's key as its number, the dense vector of the model, a sparse vector of term weights
(`term_weights.py`) and the values that filters compare (`qdrant_payload.py`). Point 0 holds the number of the last change
that the collection has. It is written after the points of a batch, which the server has confirmed, so it is never ahead of
them; and every search reads it in the same request, so a collection that lost points says so.

An alias with the name of the database leads to the collection of the active model. After a change of model it moves to the
new collection as soon as that one has what the old one has.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray
from qdrant_client import QdrantClient, models

from sennit.errors import SourceError
from sennit.settings.servers import QdrantSettings
from sennit.stores.buffered_index import cosine_scores
from sennit.stores.contract import (
    FILTER_OPERATORS,
    Capabilities,
    Document,
    Floats,
    IndexOf,
    KeywordQuery,
    Model,
    ScoredKeys,
    ServerAnswer,
    ServerSearch,
)
from sennit.stores.findings import Finding
from sennit.stores.servers.qdrant_nodes import CHECK, CollectionMissing, QdrantNodes
from sennit.stores.servers.qdrant_payload import QdrantFilters, index_schema, payload_of
from sennit.stores.servers.term_weights import (
    CountedTerms,
    average_length,
    count_record,
    inverse_frequency,
    query_weights,
    records_holding,
    score_document,
)

log = logging.getLogger("sennit.store")

T = TypeVar("T")

KEYWORD: Final = "keyword"
VECTOR: Final = "vector"
"""The names of the roles, and of the vectors of a point."""

MARKER: Final = 0
"""The number of the point that says how far the collection is. No record has this key, because changes count from 1."""

INDEXED_PATHS: Final = (
    *("fields", "text.id", "text.collection", "text.kind", "text.parent", "text.sensitivity", "text.scope"),
    *("text.tenant", "number.timestamp"),
)
"""Payload indexes of every collection: the fields that audiences and recipes name. Others are made when a filter names
them."""

NUMBERS_PER_REQUEST: Final = 400_000
"""About how many numbers one write holds; Qdrant refuses a request of more than 32 MB."""

STATISTICS_GROWTH: Final = 8
"""Document frequencies are asked for again when the number of changes has grown by one part in so many."""

MAX_BUFFERED_DOCUMENTS: Final = 4096
"""Documents of the buffer whose terms are remembered between searches."""


@dataclass(frozen=True, slots=True)
class Marker:
    """What a collection says of itself."""

    applied: int
    average: float
    """The average length of a document, which the sparse vectors are made with."""


NO_MARKER: Final = Marker(0, 0.0)


class QdrantServer:
    """The connection to the nodes of one Qdrant, and the indexes on it."""

    def __init__(self, settings: QdrantSettings, database: str) -> None:
        self.settings = settings
        self._nodes = QdrantNodes(settings)
        self._alias = f"{settings.collection_prefix}-{database}"
        self._roles: set[str] = set()
        self._lock = threading.Lock()
        self._collections: dict[str, QdrantCollection] = {}

    def keyword(self) -> IndexOf[KeywordQuery]:
        """The keyword role: BM25 with document weights of our own, and document frequencies of the server."""
        self._roles.add(KEYWORD)
        capabilities = Capabilities(
            scores="own",
            statistics="whole" if self.settings.shard_number == 1 else "shard",
            lags=True,
            waits=True,
            filters=FILTER_OPERATORS,
        )
        return IndexOf(self, capabilities, lambda model: QdrantKeyword(self, self._collection_of(model)))

    def vector(self) -> IndexOf[NDArray[np.float32]]:
        """The vector role: cosines."""
        self._roles.add(VECTOR)
        capabilities = Capabilities(statistics="none", lags=True, waits=True, filters=FILTER_OPERATORS)
        return IndexOf(
            self,
            capabilities,
            lambda model: None if model is None else QdrantVector(self, self._collection_of(model)),
        )

    def search_many(self, searches: Sequence[ServerSearch]) -> Sequence[ServerAnswer]:
        """The answers of the server: one request for each collection, and nearly always there is one."""
        answers: list[ServerAnswer] = [SourceError("it was not asked")] * len(searches)
        collections: dict[str, list[tuple[int, ServerSearch, _QdrantIndex]]] = {}
        for at, search in enumerate(searches):
            index = search.index
            assert isinstance(index, _QdrantIndex)
            collections.setdefault(index.collection.name, []).append((at, search, index))
        for asked in collections.values():
            try:
                found = asked[0][2].collection.search([(search, index) for _, search, index in asked])
            except SourceError as error:
                found = [error] * len(asked)
            for (at, _, _), answer in zip(asked, found, strict=True):
                answers[at] = answer
        return answers

    def check(self) -> list[Finding]:
        """Whether every node answers, is new enough and takes the key; and how the collections are."""
        try:
            findings = list(self._nodes.check())
            if any(finding.level == "ok" for finding in findings):
                findings += self._check_collections()
        except SourceError as error:
            findings = [Finding(CHECK, "problem", str(error))]
        return findings

    def close(self) -> None:
        """Close the connections."""
        self._nodes.close()

    def _collection_of(self, model: Model | None) -> QdrantCollection:
        """The collection of a model. It holds the vectors of both roles, where both are bound to this server."""
        name, dimensions = f"{self._alias}-{KEYWORD}", 0
        if model is not None and VECTOR in self._roles:
            digits = hashlib.blake2b(model.fingerprint.encode(), digest_size=6).hexdigest()
            name, dimensions = f"{self._alias}-{digits}", model.dimensions
        with self._lock:
            if name not in self._collections:
                self._collections[name] = QdrantCollection(
                    self._nodes,
                    self.settings,
                    self._alias,
                    name,
                    dimensions,
                    has_words=KEYWORD in self._roles,
                )
            return self._collections[name]

    def _check_collections(self) -> Iterator[Finding]:
        listed = self._nodes.call(lambda client: client.get_collections()).collections
        names = sorted(one.name for one in listed if one.name.startswith(f"{self._alias}-"))
        if not names:
            yield Finding(CHECK, "note", f"no collection {self._alias}-… yet; the first flush creates it")
        for name in names:
            info = self._nodes.call(lambda client, name=name: client.get_collection(name))  # type: ignore[misc]
            is_broken = info.status == models.CollectionStatus.RED
            yield Finding(
                CHECK,
                "problem" if is_broken else "ok",
                f"{name}: {(info.points_count or 1) - 1:,} records, status {info.status.value}",
            )
            dead = [
                shard.shard_id
                for shard in self._nodes.call(
                    lambda client, name=name: client.cluster_collection_info(name)  # type: ignore[misc]
                ).remote_shards
                if shard.state == models.ReplicaState.DEAD
            ]
            if dead:
                yield Finding(
                    CHECK, "problem", f"{name}: replicas of shards {dead} are on a node that is gone"
                )


class QdrantCollection:
    """One collection. Both indexes of a database share it, so what one has applied the other need not send again."""

    def __init__(
        self,
        nodes: QdrantNodes,
        settings: QdrantSettings,
        alias: str,
        name: str,
        dimensions: int,
        *,
        has_words: bool,
    ) -> None:
        self.name = name
        self._nodes = nodes
        self._settings = settings
        self._alias = alias
        self._dimensions = dimensions
        self._has_words = has_words
        self._lock = threading.Lock()
        self._indexed = set(INDEXED_PATHS)
        self._is_published = False
        self._statistics = _TermStatistics()

    # Writing.

    def applied(self) -> int:
        """The number in the marker; 0 for a collection that is empty or lost."""
        return self._read_marker().applied

    def apply(self, documents: Sequence[Document], deleted: Sequence[int], through: int) -> None:
        """Store and delete points, then the number. What the collection has already is not sent again."""
        marker = self._read_marker()
        if not marker.average:
            marker = self._create(documents)
        if marker.applied < through:
            for points in _requests(self._points(documents, marker.average)):
                self._call(lambda client, points=points: client.upsert(self.name, points))  # type: ignore[misc]
            if deleted:
                self._call(lambda client: client.delete(self.name, models.PointIdsList(points=list(deleted))))
            # Only ever upwards: another process may have applied more meanwhile.
            behind = models.FieldCondition(key="applied", range=models.Range(lt=through))
            self._call(
                lambda client: client.set_payload(
                    self.name,
                    {"applied": through},
                    points=models.Filter(must=[models.HasIdCondition(has_id=[MARKER]), behind]),
                )
            )
        self._statistics.note(max(marker.applied, through), marker.average)
        if not self._is_published:
            self._is_published = self._publish(through)

    def reset(self) -> None:
        """Delete the collection; the next batch creates it again."""
        self._call(lambda client: client.delete_collection(self.name))
        self._statistics.note(0, 0.0)
        self._is_published = False

    def _read_marker(self) -> Marker:
        try:
            found = self._call(lambda client: client.retrieve(self.name, [MARKER]))
        except CollectionMissing:
            return NO_MARKER
        return _marker(found)

    def _create(self, documents: Sequence[Document]) -> Marker:
        """Create the collection if it is missing, with its indexes and its marker."""
        settings = self._settings
        vectors = {}
        if self._dimensions:
            # Our vectors have length 1, so their dot product is their cosine, without a second rounding.
            vectors[VECTOR] = models.VectorParams(
                size=self._dimensions, distance=models.Distance.DOT, on_disk=settings.on_disk
            )
        words = {
            KEYWORD: models.SparseVectorParams(
                modifier=models.Modifier.IDF, index=models.SparseIndexParams(on_disk=settings.on_disk)
            )
        }
        if not self._call(lambda client: client.collection_exists(self.name)):
            try:
                self._call(
                    lambda client: client.create_collection(
                        self.name,
                        vectors_config=vectors,
                        sparse_vectors_config=words if self._has_words else None,
                        shard_number=settings.shard_number,
                        replication_factor=settings.replication_factor,
                        write_consistency_factor=settings.write_consistency_factor,
                        on_disk_payload=True,
                    )
                )
            except SourceError:
                # Another process may have created it at the same time.
                if not self._call(lambda client: client.collection_exists(self.name)):
                    raise
        for path in INDEXED_PATHS:
            self._create_index(path, wait=True)
        counted = [count_record(one.record) for one in documents] if self._has_words else []
        marker = Marker(0, average_length(counted))
        payload = {"applied": marker.applied, "average": marker.average}
        point = models.PointStruct(id=MARKER, vector={}, payload=payload)
        self._call(lambda client: client.upsert(self.name, [point]))
        return marker

    def _points(self, documents: Iterable[Document], average: float) -> Iterator[models.PointStruct]:
        for document in documents:
            vectors: dict[str, Any] = {}
            if self._dimensions and document.vector.any():
                vectors[VECTOR] = document.vector.tolist()
            if self._has_words:
                counted = count_record(document.record)
                if counted.frequencies:
                    vectors[KEYWORD] = models.SparseVector(
                        indices=list(counted.frequencies),
                        values=[counted.weight(at, average) for at in counted.frequencies],
                    )
            yield models.PointStruct(id=document.key, vector=vectors, payload=payload_of(document.record))

    def _publish(self, through: int) -> bool:
        """Let the alias lead here, once the collection has what the one has that it leads to now."""
        aliases = self._call(lambda client: client.get_aliases()).aliases
        target = next((one.collection_name for one in aliases if one.alias_name == self._alias), None)
        if target == self.name:
            return True
        if target is not None:
            found = self._call(lambda client: client.retrieve(target, [MARKER]))
            if _marker(found).applied > through:
                return False
        switch: list[models.CreateAliasOperation | models.DeleteAliasOperation] = [
            models.CreateAliasOperation(
                create_alias=models.CreateAlias(collection_name=self.name, alias_name=self._alias)
            )
        ]
        if target is not None:
            leave = models.DeleteAlias(alias_name=self._alias)
            switch.insert(0, models.DeleteAliasOperation(delete_alias=leave))
        self._call(lambda client: client.update_collection_aliases(switch))
        self._delete_former({self.name, target})
        return True

    def _delete_former(self, kept: set[str | None]) -> None:
        """Delete the collections of former models but the last, which searches of a moment ago may still use."""
        listed = self._call(lambda client: client.get_collections()).collections
        for one in listed:
            if one.name.startswith(f"{self._alias}-") and one.name not in kept:
                log.info("the collection %s of a former model is deleted", one.name)
                self._call(lambda client, name=one.name: client.delete_collection(name))  # type: ignore[misc]

    def _create_index(self, path: str, *, wait: bool) -> None:
        schema: models.PayloadSchemaType | models.KeywordIndexParams = index_schema(path)
        if path == "text.tenant":
            schema = models.KeywordIndexParams(type=models.KeywordIndexType.KEYWORD, is_tenant=True)
        self._call(lambda client: client.create_payload_index(self.name, path, schema, wait=wait))

    def _call(self, request: Callable[[QdrantClient], T]) -> T:
        return self._nodes.call(request)

    # Searching.

    def search(self, asked: Sequence[tuple[ServerSearch, _QdrantIndex]]) -> list[ServerAnswer]:
        """The answers to searches of this collection, in one request with the marker."""
        filters = QdrantFilters()
        requests = [
            models.QueryRequest(
                filter=models.Filter(must=[models.HasIdCondition(has_id=[MARKER])]),
                limit=1,
                with_payload=True,
            ),
            *(index.request(search, filters.translate(search.where)) for search, index in asked),
        ]
        try:
            responses = self._call(lambda client: client.query_batch_points(self.name, requests))
        except CollectionMissing:
            raise SourceError(
                f"the collection {self.name} is gone; the next flush (sennit optimise) builds it again"
            ) from None
        self._index_what_filters_name(filters.paths)
        marker = _marker(responses[0].points)
        self._statistics.note(marker.applied, marker.average)
        return [
            _scored_keys(response.points)
            if marker.applied >= search.applied
            else SourceError(
                f"the collection {self.name} has lost changes: it has those up to {marker.applied:,} of "
                f"{search.applied:,}; the next flush (sennit optimise) applies them again"
            )
            for (search, _), response in zip(asked, responses[1:], strict=True)
        ]

    def _index_what_filters_name(self, paths: Iterable[str]) -> None:
        """Create missing payload indexes; the server fills them in the background."""
        for path in set(paths) - self._indexed:
            self._indexed.add(path)
            try:
                self._create_index(path, wait=False)
            except SourceError as error:
                # Searches are right without the index, only slower. The key may allow reading only.
                log.warning("no payload index for %s in %s: %s", path, self.name, error)

    # Scores in this process.

    def score(self, query: KeywordQuery, documents: Sequence[Document]) -> Floats:
        """The scores of documents with the document frequencies of the server and of the buffer together."""
        weights = query_weights(query.terms)
        counted = self._statistics.count(documents)
        average, inverse = self._statistics.measure(list(weights), self._ask_frequencies)
        return np.array([score_document(weights, inverse, one, average) for one in counted], np.float64)

    def _ask_frequencies(self, terms: Sequence[int]) -> tuple[int, list[float]]:
        """How many records the server has, and how many of them have each term.

        A search for a single term returns its weight in the best document times the inverse document frequency.
        """
        try:
            records = self._call(lambda client: client.count(self.name, exact=False)).count - 1
            probes = [
                models.QueryRequest(
                    query=models.SparseVector(indices=[term], values=[1.0]),
                    using=KEYWORD,
                    limit=1,
                    with_vector=[KEYWORD],
                )
                for term in terms
            ]
            answers = self._call(lambda client: client.query_batch_points(self.name, probes))
        except CollectionMissing:
            return 0, [0.0] * len(terms)
        out = []
        for term, answer in zip(terms, answers, strict=True):
            holding = 0.0
            for point in answer.points:
                vector = point.vector[KEYWORD] if isinstance(point.vector, dict) else None
                if isinstance(vector, models.SparseVector) and term in vector.indices:
                    weight = vector.values[vector.indices.index(term)]
                    holding = records_holding(records, point.score / weight)
            out.append(holding)
        return records, out


class _TermStatistics:
    """Document frequencies of the server, remembered until it has clearly more records; and the terms of the buffer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._applied = 0
        self._average = 0.0
        self._asked_at = 0
        self._records = 0
        self._holding: dict[int, float] = {}
        self._buffer: dict[int, CountedTerms] = {}

    def note(self, applied: int, average: float) -> None:
        """Take notice of how far the server is."""
        with self._lock:
            self._applied, self._average = applied, average
            grown = applied > self._asked_at + self._asked_at // STATISTICS_GROWTH
            if grown or applied < self._asked_at:
                self._holding.clear()
                self._asked_at = applied
            for key in [key for key in self._buffer if key <= applied]:
                del self._buffer[key]

    def count(self, documents: Sequence[Document]) -> list[CountedTerms]:
        """The terms of documents. Those of the buffer, which the server does not have, are remembered."""
        with self._lock:
            known = [self._buffer.get(document.key) for document in documents]
        counted = [
            one or count_record(document.record) for one, document in zip(known, documents, strict=True)
        ]
        with self._lock:
            for document, one in zip(documents, counted, strict=True):
                if document.key > self._applied:
                    self._buffer[document.key] = one
            while len(self._buffer) > MAX_BUFFERED_DOCUMENTS:
                del self._buffer[next(iter(self._buffer))]
        return counted

    def measure(
        self, terms: Sequence[int], ask: Callable[[Sequence[int]], tuple[int, list[float]]]
    ) -> tuple[float, dict[int, float]]:
        """The average length of a document, and the inverse document frequency of each term."""
        with self._lock:
            unknown = [term for term in terms if term not in self._holding]
        if unknown:
            records, holding = ask(unknown)
            with self._lock:
                self._records = max(0, records)
                self._holding.update(zip(unknown, holding, strict=True))
        with self._lock:
            buffer = list(self._buffer.values())
            total = self._records + len(buffer)
            inverse = {
                term: inverse_frequency(
                    total, self._holding.get(term, 0.0) + sum(term in one.frequencies for one in buffer)
                )
                for term in terms
            }
            return self._average or average_length(buffer), inverse


class _QdrantIndex:
    """One role on a collection."""

    role: str

    def __init__(self, server: QdrantServer, collection: QdrantCollection) -> None:
        self.server = server
        self.collection = collection
        self.name = f"qdrant {self.role} {collection.name}"

    def applied(self) -> int:
        """The number of the last change that the collection has."""
        return self.collection.applied()

    def apply(self, documents: Sequence[Document], deleted: Sequence[int], through: int) -> None:
        """Store and delete documents, then the number."""
        self.collection.apply(documents, deleted, through)

    def reset(self) -> None:
        """Delete everything. The other role notices by the number in the marker, and begins again too."""
        self.collection.reset()

    def request(self, search: ServerSearch, where: models.Filter | None) -> models.QueryRequest:
        """The request for a search."""
        raise NotImplementedError


class QdrantKeyword(_QdrantIndex):
    """The sparse vectors of a collection."""

    role = KEYWORD

    def request(self, search: ServerSearch, where: models.Filter | None) -> models.QueryRequest:
        """A search for terms."""
        assert isinstance(search.query, KeywordQuery)
        weights = query_weights(search.query.terms)
        return models.QueryRequest(
            query=models.SparseVector(indices=list(weights), values=list(weights.values())),
            using=KEYWORD,
            limit=search.limit,
            filter=where,
        )

    def score(self, query: KeywordQuery, documents: Sequence[Document]) -> Floats:
        """The scores of documents, nan for one without any of the terms."""
        return self.collection.score(query, documents)


class QdrantVector(_QdrantIndex):
    """The dense vectors of a collection."""

    role = VECTOR

    def request(self, search: ServerSearch, where: models.Filter | None) -> models.QueryRequest:
        """A search for the nearest vectors."""
        assert isinstance(search.query, np.ndarray)
        settings = self.server.settings
        return models.QueryRequest(
            query=search.query.tolist(),
            using=VECTOR,
            limit=search.limit,
            filter=where,
            params=models.SearchParams(hnsw_ef=settings.hnsw_ef, exact=settings.exact),
        )

    def score(self, query: NDArray[np.float32], documents: Sequence[Document]) -> Floats:
        """The cosines of documents."""
        return cosine_scores(query, documents)


def _marker(points: Sequence[models.Record | models.ScoredPoint]) -> Marker:
    """The marker among the points that were read; without one nothing was applied."""
    if not points or not points[0].payload:
        return NO_MARKER
    return Marker(int(points[0].payload["applied"]), float(points[0].payload["average"]))


def _scored_keys(points: Sequence[models.ScoredPoint]) -> ScoredKeys:
    return ScoredKeys(
        np.array([point.id for point in points], np.int64),
        np.array([point.score for point in points], np.float64),
    )


def _requests(points: Iterable[models.PointStruct]) -> Iterator[list[models.PointStruct]]:
    """Points in requests of a size that the server takes."""
    batch: list[models.PointStruct] = []
    size = 0
    for point in points:
        batch.append(point)
        size += _numbers_in(point)
        if size >= NUMBERS_PER_REQUEST:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _numbers_in(point: models.PointStruct) -> int:
    """About how large a point is, as so many numbers."""
    vectors: dict[str, Any] = point.vector if isinstance(point.vector, dict) else {}
    numbers = sum(
        2 * len(one.indices) if isinstance(one, models.SparseVector) else len(one) for one in vectors.values()
    )
    return numbers + len(str(point.payload)) // 8
