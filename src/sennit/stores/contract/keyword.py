"""The role `keyword`: records by the words that they contain."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from sennit.errors import InvalidInput
from sennit.filters import EVERYTHING, Filter
from sennit.stores.contract.answers import Floats, Keys, ScoredKeys
from sennit.stores.contract.capabilities import Capabilities
from sennit.stores.contract.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class BM25:
    """The parameters of the keyword score; see docs/ranking-contract.md."""

    k1: float = 1.2
    b: float = 0.4
    """1.2 and 0.4 are near the optimum on every text collection that we measured; see docs/quality.md."""
    text_weight: float = 1.0
    title_weight: float = 2.0
    """A term in the title tells what a text is about; 2 helps or is neutral on every collection that we measured."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.k1) and self.k1 >= 0):
            raise InvalidInput(f"BM25 k1 must be a number of at least 0, not {self.k1!r}")
        if not 0 <= self.b <= 1:
            raise InvalidInput(f"BM25 b must be between 0 and 1, not {self.b!r}")
        for weight in self.field_weights:
            if not (math.isfinite(weight) and weight >= 0):
                raise InvalidInput(f"A BM25 field weight must be a number of at least 0, not {weight!r}")
        if not any(self.field_weights):
            raise InvalidInput("At least one BM25 field weight must be above 0")

    @property
    def field_weights(self) -> tuple[float, float]:
        """The weights, in the order of the keyword index's fields."""
        return (self.text_weight, self.title_weight)


class BufferStatistics(NamedTuple):
    """What a buffer adds to the statistics of an index that has not applied it yet."""

    records: int
    lengths: tuple[float, float]
    """The sum of the lengths of all texts, and of all titles."""
    holding: Mapping[int, int]
    """How many of the records have each term of the query."""


class KeywordQuery(NamedTuple):
    """What a keyword index is asked: terms by our analysis, and the text for an index that has its own."""

    terms: Sequence[tuple[int, float]]
    """Pairs of a term hash and the term's weight in the query."""
    bm25: BM25
    text: str = ""
    buffer: BufferStatistics | None = None
    """For an index on a server whose scores need statistics."""


class KeywordRole(Protocol):
    """Finds records that contain words."""

    @property
    def capabilities(self) -> Capabilities: ...

    def applied(self, snapshot: Snapshot) -> int:
        """The last change that the index itself covers; later ones come from the buffer."""
        ...

    def search(
        self, snapshot: Snapshot, query: KeywordQuery, limit: int, where: Filter = EVERYTHING
    ) -> ScoredKeys:
        """The best records with any of the terms."""
        ...

    def scores(self, snapshot: Snapshot, query: KeywordQuery, keys: Keys) -> Floats:
        """The score of each record, 0 for a record without any of the terms."""
        ...

    def coverage(self, snapshot: Snapshot, query: KeywordQuery, keys: Keys) -> Floats:
        """The share of the query's information that each record has: the idf of the terms that it has, of all terms.

        nan when the index cannot tell, and for a query without terms.
        """
        ...

    def document_share(self, snapshot: Snapshot, term: int) -> float:
        """The share of visible records that contain a term, given by its hash; 0 when the index cannot tell."""
        ...
