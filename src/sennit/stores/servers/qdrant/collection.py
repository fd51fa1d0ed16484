"""One collection of a database on Qdrant: what it holds, how it is filled and how it is searched.

A point has the record's key as its number, the dense vector of the model, a sparse vector of term weights
(`term_weights.py`) and the values that filters compare (`payload.py`). Point 0 holds the number of the last change that the
collection has. It is written after the points of a batch, which the server has confirmed, so it is never ahead of them.
Searches read it in the same request, at most once in CHECK_SECONDS while every node answers, so a collection that lost
points says so.

An alias with the name of the database leads to the collection of the active model. After a change of model it moves to the
new collection as soon as that one has what the old one has.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np
from qdrant_client import QdrantClient, models

from sennit.errors import SourceError
from sennit.settings.servers import QdrantSettings
from sennit.stores.contract import Document, Floats, KeywordQuery, ServerAnswer, ServerSearch
from sennit.stores.servers.qdrant.nodes import CollectionMissing, QdrantNodes
from sennit.stores.servers.qdrant.payload import QdrantFilters, index_schema
from sennit.stores.servers.qdrant.points import (
    KEYWORD,
    MARKER,
    NO_MARKER,
    VECTOR,
    Marker,
    batches,
    make_marker,
    make_point,
    read_marker,
    scored_keys,
)
from sennit.stores.servers.qdrant.statistics import TermStatistics
from sennit.stores.servers.qdrant.term_weights import (
    average_length,
    count_record,
    query_weights,
    records_holding,
    score_document,
)

log = logging.getLogger("sennit.store")

T = TypeVar("T")

INDEXED_PATHS: Final = (
    *("fields", "text.id", "text.collection", "text.kind", "text.parent", "text.sensitivity", "text.scope"),
    *("text.tenant", "number.timestamp"),
)
"""Payload indexes of every collection: the fields that audiences and recipes name. Others are made when a filter names
them."""


CHECK_SECONDS: Final = 1.0
"""How long searches rely on what a collection said of itself: reading it takes the server longer than many a search. A
server that lost points has been away, which requests notice, or it is not back so soon."""

MARKER_REQUEST: Final = {"filter": {"must": [{"has_id": [MARKER]}]}, "limit": 1, "with_payload": True}


class KnownMarker(NamedTuple):
    """A marker as a search read it."""

    marker: Marker
    read_at: float
    failures: int
    """How often nodes had failed before."""


class RoleRequest(Protocol):
    """One role's way to ask a collection."""

    def request(self, search: ServerSearch) -> dict[str, Any]:
        """The request for a search, without its filter and limit."""
        ...


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
        self.settings = settings
        self._alias = alias
        self._dimensions = dimensions
        self._has_words = has_words
        self._lock = threading.Lock()
        self._indexed = set(INDEXED_PATHS)
        self._is_published = False
        self._statistics = TermStatistics()
        self._known: KnownMarker | None = None

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
            for points in batches(self._point(one, marker.average) for one in documents):
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
        self._known = None
        self._is_published = False

    def _read_marker(self) -> Marker:
        try:
            found = self._call(lambda client: client.retrieve(self.name, [MARKER]))
        except CollectionMissing:
            return NO_MARKER
        return read_marker([one.payload for one in found])

    def _create(self, documents: Sequence[Document]) -> Marker:
        """Create the collection if it is missing, with its indexes and its marker."""
        settings = self.settings
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
        self._call(lambda client: client.upsert(self.name, [make_marker(marker)]))
        return marker

    def _point(self, document: Document, average: float) -> models.PointStruct:
        return make_point(document, average, has_vector=bool(self._dimensions), has_words=self._has_words)

    def _publish(self, through: int) -> bool:
        """Let the alias lead here, once the collection has what the one has that it leads to now."""
        aliases = self._call(lambda client: client.get_aliases()).aliases
        target = next((one.collection_name for one in aliases if one.alias_name == self._alias), None)
        if target == self.name:
            return True
        if target is not None:
            found = self._call(lambda client: client.retrieve(target, [MARKER]))
            if read_marker([one.payload for one in found]).applied > through:
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

    def search(self, asked: Sequence[tuple[ServerSearch, RoleRequest]]) -> list[ServerAnswer]:
        """The answers to searches of this collection in one request, with the marker where it is not known."""
        filters = QdrantFilters()
        requests: list[dict[str, Any]] = []
        for search, index in asked:
            where = filters.translate(search.where)
            narrowed = {} if where is None else {"filter": where.model_dump(mode="json", exclude_none=True)}
            requests.append({**index.request(search), **narrowed, "limit": search.limit})
        marker, found = self._query(requests, max(search.applied for search, _ in asked))
        self._index_what_filters_name(filters.paths)
        return [
            scored_keys(answer["points"])
            if marker.applied >= search.applied
            else SourceError(
                f"the collection {self.name} has lost changes: it has those up to {marker.applied:,} of "
                f"{search.applied:,}; the next flush (sennit migrate) applies them again"
            )
            for (search, _), answer in zip(asked, found, strict=True)
        ]

    def _query(self, requests: Sequence[Mapping[str, Any]], required: int) -> tuple[Marker, Sequence[Any]]:
        """The marker and the answers to requests. A known marker counts if it has the changes up to a number."""
        path = f"/collections/{self.name}/points/query/batch"
        known, failures, now = self._known, self._nodes.failures, time.monotonic()
        try:
            if (
                known is not None
                and known.marker.applied >= required
                and known.failures == failures
                and now - known.read_at < CHECK_SECONDS
            ):
                found = self._nodes.post(path, {"searches": requests})
                if self._nodes.failures == failures:
                    return known.marker, found
                # A node failed meanwhile. If it is the one that answers now, it may have lost points.
                failures = self._nodes.failures
            marked, *found = self._nodes.post(path, {"searches": [MARKER_REQUEST, *requests]})
        except CollectionMissing:
            self._known = None
            raise SourceError(
                f"the collection {self.name} is gone; the next flush (sennit migrate) builds it again"
            ) from None
        marker = read_marker([one["payload"] for one in marked["points"]])
        self._known = KnownMarker(marker, now, failures)
        self._statistics.note(marker.applied, marker.average)
        return marker, found

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
