"""The keyword source: records that contain words of the query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sennit.sources.base import SourceRequest
from sennit.stores.contract import KeywordRole, ScoredKeys, SteppedIndex, Steps


class KeywordSource:
    """Asks the keyword index."""

    def __init__(self, index: KeywordRole) -> None:
        self._index = index
        self._stepped = index if isinstance(index, SteppedIndex) else None
        self.server = None if self._stepped is None else self._stepped.server
        self.inline = not index.capabilities.waits

    def search(self, request: SourceRequest) -> ScoredKeys:
        snapshot = request.context.snapshot
        return self._index.search(snapshot, request.keyword_query, request.limit, request.where)

    def steps(self, request: SourceRequest) -> Steps[ScoredKeys]:
        assert self._stepped is not None
        snapshot = request.context.snapshot
        return (yield from self._stepped.steps(snapshot, request.keyword_query, request.limit, request.where))

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._index.scores(request.context.snapshot, request.keyword_query, keys)
