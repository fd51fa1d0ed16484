"""Records that hold the words of the question."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sennit.sources.base import Ask
from sennit.stores.contract import Found


class KeywordSource:
    """BM25 over text and title."""

    inline = True

    def search(self, ask: Ask) -> Found:
        question = ask.question
        return question.snapshot.keyword_search(question.weighted_terms, ask.bm25, ask.pool, ask.where)

    def scores(self, ask: Ask, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        question = ask.question
        return question.snapshot.keyword_scores(question.weighted_terms, ask.bm25, keys)
