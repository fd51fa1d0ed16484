"""One moment of the embedded store, for the length of one search."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from weft.errors import SourceError
from weft.filters import EVERYTHING, Filter
from weft.ranking.fusion import order
from weft.records import Record
from weft.stores.contract import BM25, Found
from weft.stores.embedded.bm25 import Scorer, Statistics
from weft.stores.embedded.codec import SELECT, from_values
from weft.stores.embedded.fields import FieldIndex
from weft.stores.embedded.keyword import Part
from weft.stores.embedded.layers import Layers, Mask, Rows, visible
from weft.stores.embedded.models import Model
from weft.stores.embedded.vector import VectorSegment, VectorTail, nearest, similarity

Terms = Sequence[tuple[int, float]]
"""Term hash and its weight in the query."""


class Snapshot:
    """Everything a search asks of the store; all answers are of one moment."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        seq: int,
        keyword: tuple[Sequence[Part], Statistics],
        vector: Callable[[], Layers[VectorSegment, VectorTail] | None],
        fields: FieldIndex,
        model: Model | None,
        abandon: Callable[[], None],
    ) -> None:
        self.seq = seq
        self.model = model
        self.abandon = abandon
        """To be called when a thread that reads here is not waited for: its moment then stays as it is."""
        self._connection = connection
        self._keyword = keyword
        self._vector = vector
        self._fields = fields
        self._last: tuple[tuple[tuple[tuple[int, float], ...], BM25], Scorer] | None = None

    # Searching.

    def keyword_search(self, terms: Terms, bm25: BM25, k: int, where: Filter = EVERYTHING) -> Found:
        """The k best records by BM25."""
        parts, _ = self._keyword
        scorer = self._scorer(terms, bm25)
        allowed = self._allowed(where)
        found = [
            scorer.best(index, k, visible(part.rows, part.live, allowed)) for index, part in enumerate(parts)
        ]
        return self._best(found, k)

    def vector_search(self, query: NDArray[np.float32], k: int, where: Filter = EVERYTHING) -> Found:
        """The k nearest records by cosine."""
        layers = self._vector()
        if layers is None:
            raise SourceError("no vectors: this database has no embedding model")
        return self._best([nearest(layers, query, k, self._allowed(where))], k)

    def keyword_scores(self, terms: Terms, bm25: BM25, keys: Rows) -> NDArray[np.float64]:
        """The BM25 score of each record, 0 where no term occurs."""
        parts, _ = self._keyword
        scorer = self._scorer(terms, bm25)
        out = np.zeros(len(keys), np.float64)
        for index, part in enumerate(parts):
            at, here = _locate(part.rows, keys)
            out[here] = scorer.score_at(index, at)
        return out

    def vector_scores(self, query: NDArray[np.float32], keys: Rows) -> NDArray[np.float64]:
        """The cosine of each record, nan where it has no vector."""
        out = np.full(len(keys), np.nan)
        layers = self._vector()
        if layers is None:
            return out
        for layer in layers.layers:
            at = layer.segment.find(keys)
            here = np.flatnonzero(at >= 0)
            out[here] = similarity(layer.segment.vectors[at[here]], query)
        for place, key in enumerate(keys.tolist()):
            position = layers.tail.places.get(key, layers.tail_count)
            if position < layers.tail_count:
                out[place] = similarity(layers.tail.vectors[position : position + 1], query)[0]
        return out

    # Records.

    def ids(self, keys: Rows) -> list[bytes]:
        """The id of each record as UTF-8, whose order is that of code points."""
        parts, _ = self._keyword
        out = [b""] * len(keys)
        for part in parts:
            at, here = _locate(part.rows, keys)
            for place, position in zip(here.tolist(), at.tolist(), strict=True):
                out[place] = part.id_at(position)
        return out

    def exist(self, keys: Rows) -> Mask:
        """Which of the keys are of records."""
        parts, _ = self._keyword
        out = np.zeros(len(keys), bool)
        for part in parts:
            at, here = _locate(part.rows, keys)
            out[here] = True if part.live is None else part.live[at]
        return out

    def records(self, keys: Iterable[int]) -> dict[int, Record]:
        """The records that still exist, by key."""
        wanted = list(keys)
        marks = ",".join("?" * len(wanted))
        found = self._connection.execute(f"{SELECT} WHERE row IN ({marks})", wanted)
        return {values[0]: from_values(values) for values in found}

    def key_of(self, record_id: str) -> int | None:
        """The key of the record with this id."""
        found = self._connection.execute("SELECT row FROM records WHERE id = ?", (record_id,)).fetchone()
        return found[0] if found else None

    def passes(self, key: int, where: Filter) -> bool:
        """Whether a record passes a filter."""
        return where == EVERYTHING or bool(self._fields.mask(self._connection, where, self.seq)[key])

    def count(self, where: Filter = EVERYTHING) -> int:
        """How many records pass a filter."""
        parts, stats = self._keyword
        if where == EVERYTHING:
            return stats.count
        mask = self._fields.mask(self._connection, where, self.seq)
        passing = (mask[part.rows] if part.live is None else mask[part.rows] & part.live for part in parts)
        return sum(int(np.count_nonzero(here)) for here in passing)

    def _scorer(self, terms: Terms, bm25: BM25) -> Scorer:
        """Kept for the length of a search, which may first find by it and then score by it."""
        key = (tuple(terms), bm25)
        if self._last is None or self._last[0] != key:
            self._last = (key, Scorer(*self._keyword, terms, bm25))
        return self._last[1]

    def _allowed(self, where: Filter) -> Callable[[Rows], Mask] | None:
        if where == EVERYTHING:
            return None
        mask = self._fields.mask(self._connection, where, self.seq)
        return lambda rows: mask[rows]

    def _best(self, found: Sequence[tuple[Rows, NDArray[np.float32]]], k: int) -> Found:
        if not found:
            return Found.nothing()
        keys = np.concatenate([rows for rows, _ in found])
        scores = np.concatenate([values for _, values in found]).astype(np.float64)
        if len(found) > 1 or len(keys) > k:
            keys, first = np.unique(keys, return_index=True)
            scores = scores[first]
        best = order(keys, scores, self.ids, limit=k)
        return Found(keys[best], scores[best])


def _locate(rows: Rows, keys: Rows) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions in ascending `rows`, and which of the keys they are for."""
    if not len(rows):
        return np.empty(0, np.intp), np.empty(0, np.intp)
    at = np.minimum(np.searchsorted(rows, keys), len(rows) - 1)
    here = np.flatnonzero(rows[at] == keys)
    return at[here], here
