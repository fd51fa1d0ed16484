"""Chroma as vector index: one collection per database and embedding model, on a server or in a folder.

A document has the record's key as its id, the vector and the values that filters compare (`metadata.py`), and no text.
The metadata of the collection hold the number of the last change that it has. They are written after the documents of a
batch, which the server has confirmed. A search that is later than CHECK_SECONDS after the last one that read them reads them
first, so a collection that lost documents says so.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from typing import Any, Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.errors import SourceError
from sennit.filters import Filter
from sennit.settings.attached import AttachedMapping
from sennit.settings.servers import ChromaSettings
from sennit.stores.buffered_index import cosine_scores
from sennit.stores.contract import (
    FILTER_OPERATORS,
    Capabilities,
    Document,
    Floats,
    IndexOf,
    Keys,
    Model,
    ScoredKeys,
    ServerAnswer,
    ServerSearch,
)
from sennit.stores.findings import Finding
from sennit.stores.servers.chroma.attached import AttachedDocuments
from sennit.stores.servers.chroma.client import ChromaClient, CollectionMissing
from sennit.stores.servers.chroma.metadata import metadata_of, to_where

CHECK: Final = "chroma"
LAYOUT: Final = 2
"""Increase it when the metadata change: the collection then has another name, and is built again."""

APPLIED: Final = "applied"
"""The key of the collection's metadata that says how far it is."""

MAX_VECTORS_READ: Final = 1000
"""Vectors read in one request."""

CHECK_SECONDS: Final = 1.0
"""How long searches rely on what a collection said of itself; a server that lost documents is not back so soon."""

SPACE: Final = "ip"
"""Our vectors have length 1, so their inner product is their cosine; Chroma returns 1 minus it."""


class ChromaServer:
    """The connection to one Chroma, and the indexes on it."""

    def __init__(self, settings: ChromaSettings, database: str) -> None:
        self.settings = settings
        self.client = ChromaClient(settings)
        self.known: dict[str, KnownCollection] = {}
        self._database = database

    def vector(self) -> IndexOf[NDArray[np.float32]]:
        """The vector role: cosines."""
        capabilities = Capabilities(
            statistics="none",
            lags=True,
            waits=True,
            filters=FILTER_OPERATORS - {"like"},
            partly=("ranges of texts", "ranges of a field with several numbers", "numbers from 2^53"),
        )
        return IndexOf(
            self, capabilities, lambda model: None if model is None else ChromaVector(self, self._name(model))
        )

    def attach(self, mapping: AttachedMapping) -> AttachedDocuments:
        """A collection that somebody else owns."""
        return AttachedDocuments(self.client, mapping)

    def search_many(self, searches: Sequence[ServerSearch]) -> Sequence[ServerAnswer]:
        """The answer to each search; Chroma takes one search in a request."""
        answers: list[ServerAnswer] = []
        for search in searches:
            assert isinstance(search.index, ChromaVector)
            try:
                answers.append(search.index.search(search))
            except SourceError as error:
                answers.append(error)
        return answers

    def check(self) -> list[Finding]:
        """Whether the server answers, and which collections of the database it has."""
        prefix = f"{self.settings.collection_prefix}-{self._database}-"
        try:
            version = self.client.call(lambda client: client.get_version())
            found = self.client.call(lambda client: client.list_collections())
            sizes = {one.name: one.count() for one in found if one.name.startswith(prefix)}
        except SourceError as error:
            return [Finding(CHECK, "problem", str(error))]
        return [
            Finding(CHECK, "ok", f"{self.client.place} is Chroma {version}"),
            *(Finding(CHECK, "ok", f"{name}: {size:,} records") for name, size in sorted(sizes.items())),
        ]

    def close(self) -> None:
        """Close the connection."""
        self.client.close()

    def _name(self, model: Model) -> str:
        digits = hashlib.blake2b(f"{LAYOUT} {model.fingerprint}".encode(), digest_size=6).hexdigest()
        return f"{self.settings.collection_prefix}-{self._database}-{digits}"


class KnownCollection(NamedTuple):
    """A collection as the server described it."""

    collection: Any
    applied: int
    read_at: float


class ChromaVector:
    """One collection."""

    def __init__(self, server: ChromaServer, collection: str) -> None:
        self.server = server
        self.collection = collection
        self.name = f"chroma vector {collection}"

    def applied(self) -> int:
        """The number in the collection's metadata; 0 where there is none."""
        try:
            return _applied(self._get())
        except CollectionMissing:
            return 0

    def apply(self, documents: Sequence[Document], deleted: Sequence[int], through: int) -> None:
        """Store and delete documents, then the number."""

        def create(client: Any) -> Any:
            return client.get_or_create_collection(
                self.collection,
                metadata={APPLIED: 0},
                configuration={"hnsw": {"space": SPACE, "ef_search": self.server.settings.ef_search}},
                embedding_function=None,
            )

        try:
            collection = self._get()
        except CollectionMissing:
            collection = self.server.client.call(create)
        kept = [one for one in documents if one.vector.any()]

        def write(_client: Any) -> None:
            if kept:
                collection.upsert(
                    ids=[str(one.key) for one in kept],
                    embeddings=[one.vector for one in kept],
                    metadatas=[metadata_of(one.record) for one in kept],
                )
            if deleted:
                collection.delete(ids=[str(key) for key in deleted])
            collection.modify(metadata={APPLIED: through})

        self.server.client.call(write)

    def reset(self) -> None:
        """Delete the collection; the next batch creates it again."""
        try:
            self.server.client.call(lambda client: client.delete_collection(self.collection))
        except CollectionMissing:
            return

    def search(self, search: ServerSearch) -> ScoredKeys:
        """The nearest documents."""
        where = _where(search.where)
        if where is False:
            return ScoredKeys.empty()
        collection = self._checked(search.applied)
        try:
            found = self.server.client.query(collection, search.query, search.limit, where)
        except SourceError:
            self.server.known.pop(self.collection, None)
            raise
        keys = np.array([int(one) for one in found.ids], np.int64)
        scores = similarities(np.array(found.distances, np.float64), SPACE)
        if len(keys) < search.limit:
            keys, scores = self._complete(collection, search.query, where, keys, scores)
        return ScoredKeys(keys[: search.limit], scores[: search.limit])

    def _checked(self, required: int) -> Any:
        """The collection, which has all changes up to a number, or else SourceError."""
        known = self.server.known.get(self.collection)
        now = time.monotonic()
        if known is None or known.applied < required or now - known.read_at > CHECK_SECONDS:
            try:
                collection = self._get()
            except CollectionMissing:
                raise SourceError(
                    f"the collection {self.collection} is gone; the next flush (sennit migrate) builds it again"
                ) from None
            known = self.server.known[self.collection] = KnownCollection(
                collection, _applied(collection), now
            )
        if known.applied < required:
            raise SourceError(
                f"the collection {self.collection} has lost changes: it has those up to {known.applied:,} of "
                f"{required:,}; the next flush (sennit migrate) applies them again"
            )
        return known.collection

    def _complete(
        self,
        collection: Any,
        query: NDArray[np.float32],
        where: dict[str, Any] | None,
        keys: Keys,
        scores: Floats,
    ) -> ScoredKeys:
        """Add what the approximate index did not reach: it returns fewer documents than match where many are alike."""
        call = self.server.client.call
        every = call(lambda _: collection.get(where=where, include=[]))["ids"]
        known = set(keys.tolist())
        missing = [one for one in every if int(one) not in known]
        for start in range(0, len(missing), MAX_VECTORS_READ):
            ids = missing[start : start + MAX_VECTORS_READ]
            read = call(lambda _, ids=ids: collection.get(ids=ids, include=["embeddings"]))  # type: ignore[misc]
            vectors = np.asarray(read["embeddings"], np.float32)
            keys = np.concatenate([keys, np.array([int(one) for one in read["ids"]], np.int64)])
            scores = np.concatenate([scores, (vectors @ query).astype(np.float64)])
        best = np.argsort(-scores, kind="stable")
        return ScoredKeys(keys[best], scores[best])

    def score(self, query: NDArray[np.float32], documents: Sequence[Document]) -> Floats:
        """The cosines of documents."""
        return cosine_scores(query, documents)

    def _get(self) -> Any:
        return self.server.client.call(
            lambda client: client.get_collection(self.collection, embedding_function=None)
        )


def similarities(distances: Floats, space: str) -> Floats:
    """Distances of Chroma as cosines, for vectors of length 1: higher is better."""
    # The distance `l2` is squared: for vectors of length 1 it is 2 minus twice the cosine.
    return 1 - distances / 2 if space == "l2" else 1 - distances


def _where(where: Filter) -> dict[str, Any] | Literal[False] | None:
    found = to_where(where)
    return None if found is True else found


def _applied(collection: Any) -> int:
    return int((collection.metadata or {}).get(APPLIED, 0))
