"""The vector source: records whose meaning is near that of the query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sennit.sources.base import SourceRequest
from sennit.stores.contract import ScoredKeys


class VectorSource:
    """Cosine of the query vector and the vector of each record."""

    def __init__(self, *, inline: bool) -> None:
        self.inline = inline

    def search(self, request: SourceRequest) -> ScoredKeys:
        context = request.context
        vector = context.vector
        if not np.count_nonzero(vector):
            return ScoredKeys.empty()
        return context.snapshot.vector_search(vector, request.limit, request.where)

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        return request.context.snapshot.vector_scores(request.context.vector, keys)
