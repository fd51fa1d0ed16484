"""Index servers in a dict, as unhelpful as real ones may be: they lag, know few filters, and can be down."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import count_terms
from sennit.errors import SourceError
from sennit.filters import Filter, matches
from sennit.stores.buffered_index import cosine_scores
from sennit.stores.contract import (
    Capabilities,
    Document,
    Floats,
    KeywordQuery,
    ScoredKeys,
    ServerAnswer,
    ServerSearch,
)
from sennit.stores.findings import Finding

QueryT = TypeVar("QueryT")


class DictServers:
    """One connection to servers that answer, or do not."""

    def __init__(self) -> None:
        self.are_down = False
        self.round_trips: list[list[str]] = []
        """The names of the indexes that each request asked."""

    @contextlib.contextmanager
    def outage(self) -> Iterator[None]:
        self.are_down = True
        try:
            yield
        finally:
            self.are_down = False

    def raise_if_down(self) -> None:
        if self.are_down:
            raise SourceError("the server does not answer")

    def search_many(self, searches: Sequence[ServerSearch]) -> list[ServerAnswer]:
        self.raise_if_down()
        self.round_trips.append([one.index.name for one in searches])
        return [self._search(one) for one in searches]

    def _search(self, search: ServerSearch) -> ServerAnswer:
        index = search.index
        assert isinstance(index, DictServer)
        return index.search(search.query, search.limit, search.where)

    def check(self) -> list[Finding]:
        if self.are_down:
            return [Finding("servers", "problem", "the server does not answer; start it")]
        return [Finding("servers", "ok", "the server answers")]

    def close(self) -> None:
        """Nothing is open."""


class DictServer(Generic[QueryT]):
    """Scores every document that it holds. Equal scores come in the order of keys, not of ids."""

    name = "dict"
    capabilities = Capabilities()

    def __init__(self, servers: DictServers) -> None:
        self.server = servers
        self.documents: dict[int, Document] = {}
        self._applied = 0
        self.requests: list[tuple[int, Filter]] = []

    def applied(self) -> int:
        self.server.raise_if_down()
        return self._applied

    def apply(self, documents: Sequence[Document], deleted: Sequence[int], through: int) -> None:
        self.server.raise_if_down()
        self.documents.update((one.key, one) for one in documents)
        for key in deleted:
            self.documents.pop(key, None)
        self._applied = through

    def reset(self) -> None:
        self.server.raise_if_down()
        self.documents.clear()
        self._applied = 0

    def search(self, query: QueryT, limit: int, where: Filter) -> ServerAnswer:
        self.requests.append((limit, where))
        found = [one for one in self.documents.values() if matches(where, one.record)]
        if not found:
            return ScoredKeys.empty()
        scores = self.score(query, found)
        keys = np.array([one.key for one in found], np.int64)
        known = ~np.isnan(scores)
        keys, scores = keys[known], scores[known]
        best = np.argsort(-scores, kind="stable")[:limit]
        return ScoredKeys(keys[best], scores[best])

    def score(self, query: QueryT, documents: Sequence[Document]) -> Floats:
        raise NotImplementedError


class DictVectorServer(DictServer[NDArray[np.float32]]):
    """A vector server that knows equality only."""

    name = "dict vector"
    capabilities = Capabilities(statistics="none", lags=True, waits=True, filters=frozenset({"equal", "and"}))

    def score(self, query: NDArray[np.float32], documents: Sequence[Document]) -> Floats:
        return cosine_scores(query, documents)


class DictKeywordServer(DictServer[KeywordQuery]):
    """A keyword server with a score of its own, and no filters at all."""

    name = "dict keyword"
    capabilities = Capabilities(scores="own", statistics="none", lags=True, waits=True, filters=frozenset())

    def score(self, query: KeywordQuery, documents: Sequence[Document]) -> Floats:
        out = np.full(len(documents), np.nan)
        for at, document in enumerate(documents):
            counts, length = count_terms(f"{document.record.title} {document.record.text}")
            total = sum(weight * counts[term] for term, weight in query.terms if term in counts)
            if total:
                out[at] = total / (total + 1 + length / 10)
        return out
