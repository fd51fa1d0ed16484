"""One moment of the embedded store as one audience sees it, for the length of one search.

What the audience may not see does not exist here: it is neither found nor counted, and the statistics of keyword
scores are those of a database that never held it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sennit.errors import SourceError
from sennit.filters import EVERYTHING, Filter
from sennit.ranking.fusion import order
from sennit.records import Record
from sennit.stores.contract import BM25, Found
from sennit.stores.embedded.bm25 import NOTHING, Scorer, Statistics, document_frequency
from sennit.stores.embedded.codec import SELECT, from_values
from sennit.stores.embedded.fields import FieldIndex
from sennit.stores.embedded.graph import Graph, GraphIndex
from sennit.stores.embedded.layer import Layers
from sennit.stores.embedded.models import Model
from sennit.stores.embedded.parts import Part
from sennit.stores.embedded.products import similarity
from sennit.stores.embedded.rowvalues import RowValues
from sennit.stores.embedded.selection import Mask, Passing, Rows, visible
from sennit.stores.embedded.sqlite import marks
from sennit.stores.embedded.vector import VectorTail, nearest
from sennit.stores.embedded.vector_segment import VectorSegment

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
        graph: GraphIndex,
        values: RowValues,
        audience: Filter = EVERYTHING,
        *,
        apart: bool = False,
    ) -> None:
        """`audience` is what may be seen, when that is not all; `keyword` is of it already.

        `apart`: nearest are those of an exact scan, in which the rest has no part."""
        self.seq = seq
        self.audience = audience
        self._apart = apart
        self.model = model
        self.abandon = abandon
        """To be called when a thread that reads here is not waited for: its moment then stays as it is."""
        self._connection = connection
        self._keyword = keyword
        self._vector = vector
        self._fields = fields
        self._graph = graph
        self._values = values
        self._answered: dict[tuple[tuple[tuple[int, float], ...], BM25, Filter], tuple[int, Found]] = {}
        """Keyword searches of this moment: one source searches, another starts from the best it found."""
        self._last: tuple[tuple[tuple[tuple[int, float], ...], BM25], Scorer] | None = None

    # Searching.

    def keyword_search(self, terms: Terms, bm25: BM25, k: int, where: Filter = EVERYTHING) -> Found:
        """The k best records by BM25."""
        asked = (tuple(terms), bm25, where)
        known = self._answered.get(asked)
        if known is None or known[0] < k:
            known = self._answered[asked] = (k, self._keyword_best(terms, bm25, k, where))
        return Found(known[1].keys[:k], known[1].scores[:k])

    def _keyword_best(self, terms: Terms, bm25: BM25, k: int, where: Filter) -> Found:
        parts, _ = self._keyword
        scorer = self._scorer(terms, bm25)
        # Parts know already what the audience sees.
        allowed = None if where == EVERYTHING else self._fields.mask(self._connection, where, self.seq)
        found = []
        least = NOTHING
        for index, part in enumerate(parts):
            rows, scores = scorer.best(index, k, visible(part.rows, part.live, allowed), least)
            if len(rows):
                found.append((rows, scores))
            if len(rows) >= k:
                # What scores less than all of these is not among the best of all.
                least = max(least, scores.min())
        return self._best(found, k)

    def vector_search(self, query: NDArray[np.float32], k: int, where: Filter = EVERYTHING) -> Found:
        """The k nearest records by cosine."""
        layers = self._vector()
        if layers is None:
            raise SourceError("no vectors: this database has no embedding model")
        return self._best([nearest(layers, query, k, self._mask(where), exact=self._apart)], k)

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
        vectors = self.vectors(keys)
        scores: NDArray[Any] = similarity(vectors, query) if vectors.shape[1] else np.zeros(len(keys))
        # What has no vector is among those that are not like the query at all.
        for place in np.flatnonzero(scores == 0.0).tolist():
            if not vectors[place].any():
                scores[place] = np.nan
        return scores

    def vectors(self, keys: Rows) -> NDArray[np.float32]:
        """The vector of each record, a row of zeros where it has none."""
        layers = self._vector()
        if layers is None:
            return np.zeros((len(keys), 0), np.float32)
        out = np.zeros((len(keys), layers.tail.dimensions), np.float32)
        for layer in layers.layers:
            at = layer.segment.find(keys)
            (here,) = (at >= 0).nonzero()
            if len(here) == len(keys):
                return layer.segment.at(at)
            out[here] = layer.segment.at(at[here])
        if layers.tail_count:
            for place, key in enumerate(keys.tolist()):
                position = layers.tail.places.get(key, layers.tail_count)
                if position < layers.tail_count:
                    out[place] = layers.tail.vectors[position]
        return out

    @property
    def graph(self) -> Graph:
        """Names and facts; not kept, because it knows the snapshot, and both would outlive the search."""
        return Graph(self._connection, self.seq, self._graph, self._sees)

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
        return self._read("row IN (SELECT value FROM json_each(?))", str(list(keys)))

    def columns(self, keys: Rows, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """Some fields of records that were found: built-in ones, and those of the metadata's first level."""
        mask = self._mask(EVERYTHING)
        if mask is not None and not mask[keys].all():
            raise SourceError("a record was asked for that may not be seen")
        return self._values.read(self._connection, keys.tolist(), names)

    def siblings(self, record: Record, first: int, last: int) -> list[Record]:
        """The parts of the whole that a record is a part of, at these positions, in order."""
        found = self._read(
            "parent = ? AND position BETWEEN ? AND ? AND collection = ?",
            *(record.parent, first, last, record.collection),
        )
        return sorted(found.values(), key=lambda record: (record.position or 0, record.id))

    def chunks_of(self, record: Record, kinds: Sequence[str]) -> list[Record]:
        """The parts of the whole that a record is a part of which are of these kinds, in order."""
        of_kind = f"parent = ? AND collection = ? AND kind IN ({marks(kinds)})"
        found = self._read(of_kind, record.parent, record.collection, *kinds)
        return sorted(found.values(), key=lambda part: (part.position or 0, part.id))

    def parts_of(self, whole: str, collection: str) -> list[Record]:
        """Every part of a whole in a collection, in order."""
        found = self._read("parent = ? AND collection = ?", whole, collection)
        return sorted(found.values(), key=lambda part: (part.position or 0, part.id))

    def passing(self, where: Filter) -> list[Record]:
        """The records that pass a filter, by id."""
        return sorted(self.records(self._keys(where).tolist()).values(), key=lambda record: record.id)

    def sample(self, where: Filter, most: int) -> Rows:
        """The keys of some of the records that pass a filter, at even distances."""
        keys = np.sort(self._keys(where))
        return keys[np.unique(np.linspace(0, len(keys) - 1, min(most, len(keys))).astype(np.intp))]

    def beside(self, keys: Rows, where: Filter = EVERYTHING) -> dict[int, list[int]]:
        """For each part of a whole, the parts right before and after it that pass a filter."""
        found = self._connection.execute(
            """
            SELECT r.row, n.row FROM json_each(?) AS k JOIN records r ON r.row = k.value
            JOIN records n ON n.parent = r.parent AND n.position IN (r.position - 1, r.position + 1)
            AND n.collection = r.collection ORDER BY n.position
            """,
            (str([key for key in keys.tolist() if key >= 0]),),
        )
        mask = self._mask(where)
        out: dict[int, list[int]] = {}
        for key, near in found:
            if mask is None or mask[near]:
                out.setdefault(key, []).append(near)
        return out

    def hides(self, path: str) -> bool:
        """Whether something that is indexed of a file may not be seen."""
        mask = self._mask(EVERYTHING)
        if mask is None:
            return False
        found = self._connection.execute("SELECT row FROM records WHERE parent = ?", (path,))
        return not all(mask[row] for (row,) in found)

    def key_of(self, name: str) -> int | None:
        """The key of the record with this full id."""
        found = self._connection.execute("SELECT row FROM records WHERE id = ?", (name,)).fetchone()
        return found[0] if found and self.passes(found[0], EVERYTHING) else None

    def passes(self, key: int, where: Filter) -> bool:
        """Whether a record passes a filter."""
        mask = self._mask(where)
        return mask is None or mask.has(key)

    def count(self, where: Filter = EVERYTHING) -> int:
        """How many records pass a filter."""
        parts, stats = self._keyword
        if where == EVERYTHING:
            return stats.count
        mask = self._fields.mask(self._connection, where, self.seq)
        # Parts know already what the audience sees.
        passing = (mask[part.rows] if part.live is None else mask[part.rows] & part.live for part in parts)
        return sum(int(np.count_nonzero(here)) for here in passing)

    def document_share(self, term: int) -> float:
        """The share of records that a term occurs in."""
        parts, stats = self._keyword
        return document_frequency(parts, term) / max(stats.count, 1)

    def _keys(self, where: Filter) -> Rows:
        parts, _ = self._keyword
        mask = self._fields.mask(self._connection, where, self.seq)
        # Parts know already what the audience sees.
        passing = (mask[part.rows] if part.live is None else mask[part.rows] & part.live for part in parts)
        rows = [part.rows[here] for part, here in zip(parts, passing, strict=True)]
        return np.concatenate([np.empty(0, np.int64), *rows])

    def _scorer(self, terms: Terms, bm25: BM25) -> Scorer:
        """Kept for the length of a search, which may first find by it and then score by it."""
        key = (tuple(terms), bm25)
        if self._last is None or self._last[0] != key:
            self._last = (key, Scorer(*self._keyword, terms, bm25))
        return self._last[1]

    def _read(self, condition: str, *values: object) -> dict[int, Record]:
        found = self._connection.execute(f"{SELECT} WHERE {condition}", values)
        mask = self._mask(EVERYTHING)
        return {row[0]: from_values(row) for row in found if mask is None or mask.has(row[0])}

    def _mask(self, where: Filter) -> Passing | None:
        """Which rows pass the filter and may be seen; None when all do."""
        if self.audience != EVERYTHING:
            where = self.audience if where == EVERYTHING else self.audience & where
        return None if where == EVERYTHING else self._fields.mask(self._connection, where, self.seq)

    def _sees(self, rows: Rows, where: Filter) -> Mask:
        """Which of the rows are of records that may be seen and pass the filter."""
        seen = self.exist(rows)
        mask = self._mask(where)
        if mask is not None:
            # Rows of a later moment do not exist in this one, and its masks do not reach them.
            seen[seen] = mask[rows[seen]]
        return seen

    def _best(self, found: Sequence[tuple[Rows, NDArray[np.float32]]], k: int) -> Found:
        if not found:
            return Found.nothing()
        keys, values = found[0]
        if len(found) > 1:
            keys = np.concatenate([rows for rows, _ in found])
            values = np.concatenate([values for _, values in found])
        scores = values.astype(np.float64)
        if len(found) > 1 or len(keys) > k:
            keys, first = np.unique(keys, return_index=True)
            scores = scores[first]
        best = order(keys, scores, self.ids, limit=k)
        return Found(keys[best], scores[best])


def _locate(rows: Rows, keys: Rows) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Positions in ascending `rows`, and which of the keys they are for."""
    if not len(rows):
        return np.empty(0, np.intp), np.empty(0, np.intp)
    at = np.minimum(rows.searchsorted(keys), len(rows) - 1)
    (here,) = (rows[at] == keys).nonzero()
    return at[here], here
