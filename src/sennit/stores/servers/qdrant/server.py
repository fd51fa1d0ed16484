"""Qdrant as keyword and vector index: one collection per database and embedding model, asked for both in one request."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from qdrant_client import models

from sennit.errors import SourceError
from sennit.settings.attached import AttachedMapping
from sennit.settings.servers import QdrantSettings
from sennit.stores.contract import (
    FILTER_OPERATORS,
    Capabilities,
    IndexOf,
    KeywordQuery,
    Model,
    ServerAnswer,
    ServerSearch,
)
from sennit.stores.findings import Finding
from sennit.stores.servers.qdrant.attached import AttachedPoints
from sennit.stores.servers.qdrant.collection import QdrantCollection
from sennit.stores.servers.qdrant.indexes import QdrantIndex, QdrantKeyword, QdrantVector
from sennit.stores.servers.qdrant.nodes import CHECK, QdrantNodes
from sennit.stores.servers.qdrant.points import KEYWORD, VECTOR

FILTERS: Final = FILTER_OPERATORS - {"like"}
PARTLY: Final = ("ranges of texts", "numbers from 2^53")


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
            filters=FILTERS,
            partly=PARTLY,
        )
        return IndexOf(self, capabilities, lambda model: QdrantKeyword(self, self._collection_of(model)))

    def vector(self) -> IndexOf[NDArray[np.float32]]:
        """The vector role: cosines."""
        self._roles.add(VECTOR)
        capabilities = Capabilities(statistics="none", lags=True, waits=True, filters=FILTERS, partly=PARTLY)
        return IndexOf(
            self,
            capabilities,
            lambda model: None if model is None else QdrantVector(self, self._collection_of(model)),
        )

    def attach(self, mapping: AttachedMapping) -> AttachedPoints:
        """A collection that somebody else owns."""
        return AttachedPoints(self._nodes, self.settings, mapping)

    def search_many(self, searches: Sequence[ServerSearch]) -> Sequence[ServerAnswer]:
        """The answers of the server: one request for each collection, and nearly always there is one."""
        answers: list[ServerAnswer] = [SourceError("it was not asked")] * len(searches)
        collections: dict[str, list[tuple[int, ServerSearch, QdrantIndex]]] = {}
        for at, search in enumerate(searches):
            index = search.index
            assert isinstance(index, QdrantIndex)
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
            # By the interface of the server: the name of the client's method depends on its version.
            cluster = self._nodes.call(
                lambda client, name=name: client.http.distributed_api.collection_cluster_info(name)  # type: ignore[misc]
            ).result
            dead = [
                shard.shard_id for shard in cluster.remote_shards if shard.state == models.ReplicaState.DEAD
            ]
            if dead:
                yield Finding(
                    CHECK, "problem", f"{name}: replicas of shards {dead} are on a node that is gone"
                )
