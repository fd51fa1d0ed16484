"""The keyword source: records that contain words of the query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sennit.ranking.rank_scale import NO_SCALE, RankScale
from sennit.sources.base import SourceRequest
from sennit.stores.contract import KeywordRole, ScoredKeys, SteppedIndex, Steps


class KeywordSource:
    """Asks the keyword index."""

    def __init__(self, index: KeywordRole) -> None:
        self._index = index
        self._stepped = index if isinstance(index, SteppedIndex) else None
        self.server = None if self._stepped is None else self._stepped.server
        self.inline = not index.capabilities.waits
        self._counts_by_rank = index.capabilities.scores == "own"

    def search(self, request: SourceRequest) -> ScoredKeys:
        snapshot = request.context.snapshot
        found = self._index.search(snapshot, request.keyword_query, request.limit, request.where)
        return self._by_rank(request, found) if self._counts_by_rank else found

    def steps(self, request: SourceRequest) -> Steps[ScoredKeys]:
        assert self._stepped is not None
        snapshot = request.context.snapshot
        found = yield from self._stepped.steps(snapshot, request.keyword_query, request.limit, request.where)
        return self._by_rank(request, found) if self._counts_by_rank else found

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        scores = self._index.scores(request.context.snapshot, request.keyword_query, keys)
        if not self._counts_by_rank:
            return scores
        return request.context.scales.get(request.list_name, NO_SCALE).convert(scores)

    def _by_rank(self, request: SourceRequest, found: ScoredKeys) -> ScoredKeys:
        """Return what was found with scores by rank: those of a server mean nothing else to a fusion."""
        scale = request.context.scales.setdefault(request.list_name, RankScale(found.scores))
        return found.with_scores(scale.convert(found.scores))
