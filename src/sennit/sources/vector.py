"""The vector source: records whose meaning is near that of the query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sennit.sources.base import SourceRequest
from sennit.stores.contract import ScoredKeys, VectorRole


class VectorSource:
    """Cosine of the query vector and the vector of each record."""

    def __init__(self, index: VectorRole, *, inline: bool) -> None:
        """`inline`: the query is embedded in this process, without waiting for a server."""
        self._index = index
        self.inline = inline and not index.capabilities.waits

    def search(self, request: SourceRequest) -> ScoredKeys:
        context = request.context
        vector = context.vector
        if not np.count_nonzero(vector):
            return ScoredKeys.empty()
        return self._index.search(context.snapshot, vector, request.limit, request.where)

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._index.scores(request.context.snapshot, request.context.vector, keys)
