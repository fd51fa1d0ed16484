"""Records whose meaning is near that of the question."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sennit.sources.base import Ask
from sennit.stores.contract import Found


class VectorSource:
    """Cosine between the question's vector and each record's."""

    def __init__(self, *, inline: bool) -> None:
        self.inline = inline

    def search(self, ask: Ask) -> Found:
        question = ask.question
        vector = question.vector
        if not np.count_nonzero(vector):
            return Found.nothing()
        return question.snapshot.vector_search(vector, ask.pool, ask.where)

    def scores(self, ask: Ask, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        return ask.question.snapshot.vector_scores(ask.question.vector, keys)
