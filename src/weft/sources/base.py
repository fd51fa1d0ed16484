"""What a source is: something that finds records for a question, and answers in keys and scores."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from weft.analysis import QueryTerm, query_terms
from weft.filters import Filter
from weft.stores.contract import BM25, Found
from weft.stores.embedded.models import Model
from weft.stores.embedded.snapshot import Snapshot

EmbedQuery = Callable[[Model | None, str], NDArray[np.float32]]


class Question:
    """What is asked, with what several sources need of it worked out once."""

    def __init__(self, text: str, snapshot: Snapshot, embed: EmbedQuery) -> None:
        self.text = text
        self.snapshot = snapshot
        self._embed = embed

    @cached_property
    def terms(self) -> list[QueryTerm]:
        return query_terms(self.text)

    @cached_property
    def weighted_terms(self) -> list[tuple[int, float]]:
        """Term hashes with how often each was said."""
        return [(term.hash, float(term.count)) for term in self.terms]

    @cached_property
    def vector(self) -> NDArray[np.float32]:
        """By the model whose vectors the snapshot searches."""
        return self._embed(self.snapshot.model, self.text)


@dataclass(frozen=True, slots=True)
class Ask:
    """One call of one source."""

    question: Question
    pool: int
    where: Filter
    bm25: BM25


class Source(Protocol):
    """Finds records. Called from any thread."""

    @property
    def inline(self) -> bool:
        """True: takes about a millisecond and cannot hang, so it runs in the searching thread."""
        ...

    def search(self, ask: Ask) -> Found:
        """At most `pool` records that pass the filter, best first."""
        ...

    def scores(self, ask: Ask, keys: NDArray[np.int64]) -> NDArray[np.float64]:
        """The score of each record for the question; nan where the source does not have it."""
        ...
