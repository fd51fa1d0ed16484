"""Chroma as vector index: one collection per database and embedding model, on a server or in a folder.

A document has the record's key as its id, the vector and the values that filters compare (`chroma_metadata.py`), and no text.
The metadata of the collection hold the number of the last change that it has. They are written after the documents of a
batch, which the server has confirmed, and read before every search, so a collection that lost documents says so.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import chromadb
import httpx
import numpy as np
from chromadb.config import Settings as ClientSettings
from chromadb.errors import AuthorizationError, ChromaAuthError, ChromaError, NotFoundError
from numpy.typing import NDArray

from sennit.errors import SourceError
from sennit.filters import Filter
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
from sennit.stores.servers.chroma_metadata import metadata_of, to_where

T = TypeVar("T")

CHECK: Final = "chroma"
APPLIED: Final = "applied"
"""The key of the collection's metadata that says how far it is."""

MAX_VECTORS_READ: Final = 1000
"""Vectors read in one request."""

SPACE: Final = "ip"
"""Our vectors have length 1, so their inner product is their cosine; Chroma returns 1 minus it."""


class ChromaServer:
    """The connection to one Chroma, and the indexes on it."""

    def __init__(self, settings: ChromaSettings, database: str) -> None:
        self.settings = settings
        self.client = ChromaClient(settings)
        self._database = database

    def vector(self) -> IndexOf[NDArray[np.float32]]:
        """The vector role: cosines."""
        capabilities = Capabilities(statistics="none", lags=True, waits=True, filters=FILTER_OPERATORS)
        return IndexOf(
            self, capabilities, lambda model: None if model is None else ChromaVector(self, self._name(model))
        )

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
        digits = hashlib.blake2b(model.fingerprint.encode(), digest_size=6).hexdigest()
        return f"{self.settings.collection_prefix}-{self._database}-{digits}"


class CollectionMissing(SourceError):
    """A collection does not exist."""


class ChromaClient:
    """Opens the connection when it is first needed, and turns every failure into SourceError."""

    def __init__(self, settings: ChromaSettings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._client: Any = None
        self.place = settings.path or settings.url

    def call(self, request: Callable[[Any], T]) -> T:
        """Send a request."""
        try:
            return request(self._open())
        except NotFoundError as error:
            raise CollectionMissing(f"Chroma at {self.place} does not have it: {error}") from error
        except (AuthorizationError, ChromaAuthError) as error:
            raise SourceError(
                f"Chroma at {self.place} refuses the key, which comes from the environment variable that "
                f"chroma.api_key_env names: {self._settings.api_key_env or '(none)'}"
            ) from error
        except httpx.TimeoutException as error:
            raise SourceError(
                f"Chroma at {self.place} did not answer within {self._settings.timeout_seconds:g} s "
                "(chroma.timeout_seconds)"
            ) from error
        except httpx.TransportError as error:
            raise SourceError(f"Chroma at {self.place} cannot be reached: {error}. Is it running?") from error
        except (ChromaError, ValueError, httpx.HTTPError) as error:
            raise SourceError(f"Chroma at {self.place} failed: {str(error)[:300]}") from error

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            close = getattr(client, "close", None)
            if close is not None:
                close()

    def _open(self) -> Any:
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _connect(self) -> Any:
        settings = self._settings
        options = ClientSettings(anonymized_telemetry=False)
        names = {"tenant": settings.tenant, "database": settings.database}
        if settings.path:
            return chromadb.PersistentClient(settings.path, settings=options, **names)
        headers = {}
        if settings.api_key_env:
            key = os.environ.get(settings.api_key_env, "")
            if not key:
                raise SourceError(
                    f"the environment variable {settings.api_key_env}, which chroma.api_key_env names, is empty"
                )
            headers["x-chroma-token"] = key
        url = urlsplit(settings.url)
        is_secure = url.scheme.lower() == "https"
        client = chromadb.HttpClient(
            host=f"{url.scheme}://{url.hostname}{url.path}" if url.path.strip("/") else url.hostname or "",
            port=url.port or (443 if is_secure else 80),
            ssl=is_secure,
            headers=headers,
            settings=options,
            **names,
        )
        # The client has no setting for this, and waits for ever.
        session = getattr(getattr(client, "_server", None), "_session", None)
        if session is not None:
            session.timeout = httpx.Timeout(settings.timeout_seconds)
        return client


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
        try:
            collection = self._get()
        except CollectionMissing:
            raise SourceError(
                f"the collection {self.collection} is gone; the next flush (sennit optimise) builds it again"
            ) from None
        if _applied(collection) < search.applied:
            raise SourceError(
                f"the collection {self.collection} has lost changes: it has those up to {_applied(collection):,} of "
                f"{search.applied:,}; the next flush (sennit optimise) applies them again"
            )
        found = self.server.client.call(
            lambda _: collection.query(
                query_embeddings=[search.query], n_results=search.limit, where=where, include=["distances"]
            )
        )
        keys = np.array([int(one) for one in found["ids"][0]], np.int64)
        scores = similarities(np.array(found["distances"][0], np.float64), SPACE)
        if len(keys) < search.limit:
            keys, scores = self._complete(collection, search.query, where, keys, scores)
        return ScoredKeys(keys[: search.limit], scores[: search.limit])

    def _complete(
        self,
        collection: Any,
        query: NDArray[np.float32],
        where: dict[str, Any] | bool | None,
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


def _where(where: Filter) -> dict[str, Any] | bool | None:
    found = to_where(where)
    return None if found is True else found


def _applied(collection: Any) -> int:
    return int((collection.metadata or {}).get(APPLIED, 0))
