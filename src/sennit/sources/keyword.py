"""The keyword source: records that contain words of the query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sennit.sources.base import SourceRequest
from sennit.stores.contract import KeywordRole, ScoredKeys


class KeywordSource:
    """Asks the keyword index."""

    def __init__(self, index: KeywordRole) -> None:
        self._index = index
        self.inline = not index.capabilities.waits

    def search(self, request: SourceRequest) -> ScoredKeys:
        snapshot = request.context.snapshot
        return self._index.search(snapshot, request.keyword_query, request.limit, request.where)

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._index.scores(request.context.snapshot, request.keyword_query, keys)
