"""The words of a document on the server, and the score of the ranking contract from them.

The server chooses the candidates with its own BM25. Each candidate comes with the counts of its terms, so that its score
is computed here: exact lengths, any field weights, and the statistics of the whole index, whatever shard or replica
answered.
"""

from __future__ import annotations

import base64
import binascii
import math
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.stores.contract import BM25, Floats, KeywordQuery
from sennit.stores.document_terms import DocumentTerms

MAX_COUNT: Final = 0xFFFF
STATISTICS_SECONDS: Final = 30.0
"""How old document frequencies may be. What this process writes counts at once."""

MAX_KNOWN_TERMS: Final = 100_000

_TERM: Final = np.dtype([("term", "<u4"), ("text", "<u2"), ("title", "<u2")])
_LENGTHS: Final = np.dtype("<u4")
_MASK: Final = 0xFFFF_FFFF


def token(term: int) -> str:
    """A term as the server knows it, given by its hash."""
    return f"{term:016x}"


def term_field(terms: DocumentTerms, title_weight: int) -> str:
    """The text that the server indexes: each term as often as it counts."""
    words = [token(term) for term, count in terms.text.items() for _ in range(min(count, MAX_COUNT))]
    words += [token(term) for term, count in terms.title.items() for _ in range(count * title_weight)]
    return " ".join(words)


def pack(terms: DocumentTerms) -> str:
    """The counts of a document for its hit. Terms are known by 32 of their bits."""
    every = list({**terms.text, **terms.title})
    out = np.empty(len(every), _TERM)
    out["term"] = [term & _MASK for term in every]
    out["text"] = [min(terms.text.get(term, 0), MAX_COUNT) for term in every]
    out["title"] = [min(terms.title.get(term, 0), MAX_COUNT) for term in every]
    return base64.b64encode(np.array(terms.lengths, _LENGTHS).tobytes() + out.tobytes()).decode()


class Counts(NamedTuple):
    """The counts of documents for the terms of one query: [document, term, field] and [document, field]."""

    frequencies: Floats
    lengths: Floats


def unpack(packed: Sequence[str], terms: Sequence[int]) -> Counts:
    """The counts of hits."""
    wanted = np.array([term & _MASK for term in terms], np.uint32)
    order = np.argsort(wanted, kind="stable")
    # The server leaves the padding out, and more of it than needed does no harm.
    parts = [binascii.a2b_base64(one + "==") for one in packed]
    lengths = np.frombuffer(b"".join([part[:8] for part in parts]), _LENGTHS).reshape(-1, 2)
    frequencies = np.zeros((len(parts), len(terms), 2))
    entries = np.frombuffer(b"".join([part[8:] for part in parts]), _TERM)
    sizes = [(len(part) - 8) // _TERM.itemsize for part in parts]
    (found,) = np.isin(entries["term"], wanted).nonzero()
    entries, owners = entries[found], np.repeat(np.arange(len(parts)), sizes)[found]
    where = (owners, order[np.searchsorted(wanted[order], entries["term"])])
    frequencies[(*where, 0)] = entries["text"]
    frequencies[(*where, 1)] = entries["title"]
    return Counts(frequencies, lengths.astype(np.float64))


def count_documents(documents: Iterable[DocumentTerms], terms: Sequence[int]) -> Counts:
    """The counts of documents in this process."""
    counted = list(documents)
    frequencies = [[(one.text.get(term, 0), one.title.get(term, 0)) for term in terms] for one in counted]
    return Counts(
        np.array(frequencies, np.float64).reshape(len(counted), len(terms), 2),
        np.array([one.lengths for one in counted], np.float64).reshape(len(counted), 2),
    )


class Statistics(NamedTuple):
    """What BM25 knows of a collection."""

    records: float
    lengths: tuple[float, float]
    """The sum of the lengths of all texts, and of all titles."""
    holding: Mapping[int, int]
    """How many records have each term."""

    def __add__(self, other: Statistics) -> Statistics:  # type: ignore[override]
        holding = {
            term: self.holding.get(term, 0) + other.holding.get(term, 0)
            for term in self.holding.keys() | other.holding.keys()
        }
        lengths = (self.lengths[0] + other.lengths[0], self.lengths[1] + other.lengths[1])
        return Statistics(self.records + other.records, lengths, holding)


EMPTY: Final = Statistics(0, (0.0, 0.0), {})


def bm25_scores(query: KeywordQuery, counts: Counts, statistics: Statistics) -> Floats:
    """The score of each document by the ranking contract; nan for one that has none of the terms."""
    bm25: BM25 = query.bm25
    weights = np.array(bm25.field_weights)
    frequency = counts.frequencies @ weights
    length = counts.lengths @ weights
    records = max(statistics.records, 1)
    average = float(np.array(statistics.lengths) @ weights) / records
    norm = bm25.k1 * (1 - bm25.b + (bm25.b * length / average if average else 0.0))
    idf = np.array([_idf(records, statistics.holding.get(term, 0)) for term, _ in query.terms])
    asked: NDArray[np.float64] = np.array([weight for _, weight in query.terms])
    with np.errstate(invalid="ignore"):
        saturated = frequency * (bm25.k1 + 1) / (frequency + np.reshape(norm, (-1, 1)))
    score = np.where(frequency > 0, saturated, 0.0) @ (idf * asked)
    return np.where((counts.frequencies > 0).any(axis=(1, 2)), score, np.nan).astype(np.float64)


def _idf(records: float, holding: int) -> float:
    # What was deleted may still be counted as having a term.
    holding = min(holding, int(records))
    return math.log(1 + (records - holding + 0.5) / (holding + 0.5))


class KnownStatistics:
    """The statistics of an index on the server, as far as this process has asked for them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._totals: Statistics | None = None
        self._holding: dict[int, int] = {}
        self._since = 0.0

    def missing(self, terms: Iterable[int]) -> tuple[bool, list[int]]:
        """Whether the totals are unknown or old, and the terms that are."""
        with self._lock:
            if time.monotonic() - self._since > STATISTICS_SECONDS or len(self._holding) > MAX_KNOWN_TERMS:
                self._forget()
            return self._totals is None, [term for term in terms if term not in self._holding]

    def learn(self, totals: Statistics | None, holding: Mapping[int, int]) -> None:
        with self._lock:
            if totals is not None:
                self._totals, self._since = totals, time.monotonic()
            self._holding.update(holding)

    def get(self, terms: Iterable[int]) -> Statistics:
        """What is known of these terms."""
        with self._lock:
            totals = self._totals or EMPTY
            return Statistics(
                totals.records, totals.lengths, {term: self._holding.get(term, 0) for term in terms}
            )

    def forget(self) -> None:
        """The index has changed."""
        with self._lock:
            self._forget()

    def _forget(self) -> None:
        self._totals = None
        self._holding = {}
