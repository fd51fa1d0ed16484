"""Document frequencies of a Qdrant collection, for scores that are computed in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Final

from sennit.stores.contract import Document
from sennit.stores.servers.qdrant.term_weights import (
    CountedTerms,
    average_length,
    count_record,
    inverse_frequency,
)

STATISTICS_GROWTH: Final = 8
"""Document frequencies are asked for again when the number of changes has grown by one part in so many."""

MAX_BUFFERED_DOCUMENTS: Final = 4096
"""Documents of the buffer whose terms are remembered between searches."""


class TermStatistics:
    """Document frequencies of the server, remembered until it has clearly more records; and the terms of the buffer."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._applied = 0
        self._average = 0.0
        self._asked_at = 0
        self._records = 0
        self._holding: dict[int, float] = {}
        self._buffer: dict[int, CountedTerms] = {}

    def note(self, applied: int, average: float) -> None:
        """Take notice of how far the server is."""
        with self._lock:
            self._applied, self._average = applied, average
            grown = applied > self._asked_at + self._asked_at // STATISTICS_GROWTH
            if grown or applied < self._asked_at:
                self._holding.clear()
                self._asked_at = applied
            for key in [key for key in self._buffer if key <= applied]:
                del self._buffer[key]

    def count(self, documents: Sequence[Document]) -> list[CountedTerms]:
        """The terms of documents. Those of the buffer, which the server does not have, are remembered."""
        with self._lock:
            known = [self._buffer.get(document.key) for document in documents]
        counted = [
            one or count_record(document.record) for one, document in zip(known, documents, strict=True)
        ]
        with self._lock:
            for document, one in zip(documents, counted, strict=True):
                if document.key > self._applied:
                    self._buffer[document.key] = one
            while len(self._buffer) > MAX_BUFFERED_DOCUMENTS:
                del self._buffer[next(iter(self._buffer))]
        return counted

    def measure(
        self, terms: Sequence[int], ask: Callable[[Sequence[int]], tuple[int, list[float]]]
    ) -> tuple[float, dict[int, float]]:
        """The average length of a document, and the inverse document frequency of each term."""
        with self._lock:
            unknown = [term for term in terms if term not in self._holding]
        if unknown:
            records, holding = ask(unknown)
            with self._lock:
                self._records = max(0, records)
                self._holding.update(zip(unknown, holding, strict=True))
        with self._lock:
            buffer = list(self._buffer.values())
            total = self._records + len(buffer)
            inverse = {
                term: inverse_frequency(
                    total, self._holding.get(term, 0.0) + sum(term in one.frequencies for one in buffer)
                )
                for term in terms
            }
            return self._average or average_length(buffer), inverse
