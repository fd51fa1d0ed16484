"""The vector source: records whose meaning is near that of the query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sennit.sources.base import SourceRequest
from sennit.stores.contract import ScoredKeys, SteppedIndex, Steps, VectorRole


class VectorSource:
    """Cosine of the query vector and the vector of each record."""

    def __init__(self, index: VectorRole, *, inline: bool) -> None:
        """`inline`: the query is embedded in this process, without waiting for a server."""
        self._index = index
        self._stepped = index if isinstance(index, SteppedIndex) else None
        # A model that is slow to answer must not hold up the sources that would share the request.
        self.server = self._stepped.server if self._stepped is not None and inline else None
        self.inline = inline and not index.capabilities.waits

    def search(self, request: SourceRequest) -> ScoredKeys:
        context = request.context
        vector = context.vector
        if not np.count_nonzero(vector):
            return ScoredKeys.empty()
        return self._index.search(context.snapshot, vector, request.limit, request.where)

    def steps(self, request: SourceRequest) -> Steps[ScoredKeys]:
        assert self._stepped is not None
        context = request.context
        vector = context.vector
        if not np.count_nonzero(vector):
            return ScoredKeys.empty()
        return (yield from self._stepped.steps(context.snapshot, vector, request.limit, request.where))

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        return self._index.scores(request.context.snapshot, request.context.vector, keys)
