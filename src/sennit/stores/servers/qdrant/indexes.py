"""The keyword and the vector role on a collection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sennit.stores.buffered_index import cosine_scores
from sennit.stores.contract import Document, Floats, IndexServer, KeywordQuery, ServerSearch
from sennit.stores.servers.qdrant.collection import QdrantCollection
from sennit.stores.servers.qdrant.points import KEYWORD, VECTOR
from sennit.stores.servers.qdrant.term_weights import query_weights


class QdrantIndex:
    """One role on a collection."""

    role: str

    def __init__(self, server: IndexServer, collection: QdrantCollection) -> None:
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

    def request(self, search: ServerSearch) -> dict[str, Any]:
        """The request for a search, without its filter and limit."""
        raise NotImplementedError


class QdrantKeyword(QdrantIndex):
    """The sparse vectors of a collection."""

    role = KEYWORD

    def request(self, search: ServerSearch) -> dict[str, Any]:
        """A search for terms."""
        assert isinstance(search.query, KeywordQuery)
        weights = query_weights(search.query.terms)
        return {"query": {"indices": list(weights), "values": list(weights.values())}, "using": KEYWORD}

    def score(self, query: KeywordQuery, documents: Sequence[Document]) -> Floats:
        """The scores of documents, nan for one without any of the terms."""
        return self.collection.score(query, documents)


class QdrantVector(QdrantIndex):
    """The dense vectors of a collection."""

    role = VECTOR

    def request(self, search: ServerSearch) -> dict[str, Any]:
        """A search for the nearest vectors."""
        assert isinstance(search.query, np.ndarray)
        settings = self.collection.settings
        return {
            "query": search.query.tolist(),
            "using": VECTOR,
            "params": {"hnsw_ef": settings.hnsw_ef, "exact": settings.exact},
        }

    def score(self, query: NDArray[np.float32], documents: Sequence[Document]) -> Floats:
        """The cosines of documents."""
        return cosine_scores(query, documents)
