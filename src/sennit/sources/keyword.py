"""The keyword source: records that contain words of the query."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sennit.sources.base import SourceRequest
from sennit.stores.contract import ScoredKeys


class KeywordSource:
    """BM25 over text and title."""

    inline = True

    def search(self, request: SourceRequest) -> ScoredKeys:
        context = request.context
        return context.snapshot.keyword_search(
            request.weighted_terms, request.bm25, request.limit, request.where
        )

    def scores(self, request: SourceRequest, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        context = request.context
        return context.snapshot.keyword_scores(request.weighted_terms, request.bm25, keys)
