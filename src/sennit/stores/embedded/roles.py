"""The indexes of this machine as the roles of the contract.

Their views belong to the snapshot, because all of them must be of its read version. So a role only hands the question to
the snapshot that it is asked with.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from sennit.filters import EVERYTHING, Filter
from sennit.stores.contract import Capabilities, Floats, Keys, KeywordQuery, ScoredKeys, Snapshot
from sennit.stores.embedded.graph import Graph
from sennit.stores.embedded.snapshot import EmbeddedSnapshot

_KEYWORD: Final = Capabilities()
_NO_STATISTICS: Final = Capabilities(statistics="none")


def _own(snapshot: Snapshot) -> EmbeddedSnapshot:
    if not isinstance(snapshot, EmbeddedSnapshot):
        raise TypeError(f"a local index needs a snapshot of its own store, not {type(snapshot).__name__}")
    return snapshot


class LocalKeyword:
    """BM25 over the segments and the buffer of this machine, with the statistics of the audience."""

    capabilities = _KEYWORD

    def applied(self, snapshot: Snapshot) -> int:
        return _own(snapshot).keyword_applied()

    def search(
        self, snapshot: Snapshot, query: KeywordQuery, limit: int, where: Filter = EVERYTHING
    ) -> ScoredKeys:
        return _own(snapshot).keyword_search(query.terms, query.bm25, limit, where)

    def scores(self, snapshot: Snapshot, query: KeywordQuery, keys: Keys) -> Floats:
        return _own(snapshot).keyword_scores(query.terms, query.bm25, keys)

    def coverage(self, snapshot: Snapshot, query: KeywordQuery, keys: Keys) -> Floats:
        return _own(snapshot).coverage(query.terms, query.bm25, keys)

    def document_share(self, snapshot: Snapshot, term: int) -> float:
        return _own(snapshot).document_share(term)


class LocalVector:
    """Cosine over the segments and the buffer of this machine."""

    capabilities = _NO_STATISTICS

    def applied(self, snapshot: Snapshot) -> int:
        return _own(snapshot).vector_applied()

    def search(
        self, snapshot: Snapshot, query: NDArray[np.float32], limit: int, where: Filter = EVERYTHING
    ) -> ScoredKeys:
        return _own(snapshot).vector_search(query, limit, where)

    def scores(self, snapshot: Snapshot, query: NDArray[np.float32], keys: Keys) -> Floats:
        return _own(snapshot).vector_scores(query, keys)


class LocalGraph:
    """The tables of names and facts, which each transaction keeps up to date."""

    capabilities = _NO_STATISTICS

    def applied(self, snapshot: Snapshot) -> int:
        return snapshot.seq

    def view(self, snapshot: Snapshot) -> Graph:
        return _own(snapshot).graph
