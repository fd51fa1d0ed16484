"""A consistent snapshot of the embedded store, as one audience sees it.

For this audience, the snapshot behaves as if hidden records had never been stored: it neither finds nor counts them,
and the statistics of keyword scores leave them out.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from sennit.errors import ChangesLost, SourceError
from sennit.filters import EVERYTHING, Condition, Filter
from sennit.ranking.calibration import SAMPLE_RECORDS, CosineSample
from sennit.ranking.fusion import order
from sennit.records import Record
from sennit.stores.codec import record_from_row
from sennit.stores.contract import BM25, Change, Changes, Model, ScoredKeys
from sennit.stores.embedded.background import RARE_SHARE, BackgroundSamples, choose_among, choose_rows
from sennit.stores.embedded.bm25 import NO_SCORE, CorpusStatistics, Scorer, document_frequency
from sennit.stores.embedded.field_cache import FieldCache
from sennit.stores.embedded.field_index import FieldIndex
from sennit.stores.embedded.graph import Graph, GraphIndex
from sennit.stores.embedded.index_view import IndexView
from sennit.stores.embedded.segment_reader import SegmentReader
from sennit.stores.embedded.selection import FilterBitmap, Mask, Rows, find_ascending, select_positions
from sennit.stores.embedded.server_indexes import read_applied
from sennit.stores.embedded.vector_index import VectorBuffer, nearest_records, read_vectors
from sennit.stores.embedded.vector_math import stable_dot_products
from sennit.stores.embedded.vector_segment import VectorSegment
from sennit.stores.sql.connection import Connection, placeholders
from sennit.stores.sql.records import SELECT

Terms = Sequence[tuple[int, float]]
"""Pairs of a term hash and the term's weight in the query."""

FIRST_CHECKED_ROWS: Final = 64
"""Rows that `has_any` checks first; one of them is nearly always visible."""
MAX_NEWEST_READ: Final = 20_000
"""Records whose times `newest` reads. Times mostly follow the order of writing."""


_FEED: Final[tuple[tuple[Literal["put", "delete", "vector"], str], ...]] = (
    ("put", "SELECT row, row FROM records WHERE row"),
    ("delete", "SELECT seq, row FROM tombstones WHERE seq"),
    ("vector", "SELECT seq, row FROM late_vectors WHERE seq"),
)
"""Where the changes of each kind are, without the first number that is wanted."""


class EmbeddedSnapshot:
    """All reads of one search. They see the same read version."""

    def __init__(
        self,
        connection: Connection,
        seq: int,
        purged: int,
        keyword: tuple[Sequence[SegmentReader], CorpusStatistics],
        vector: Callable[[], IndexView[VectorSegment, VectorBuffer] | None],
        fields: FieldIndex,
        model: Model | None,
        abandon: Callable[[], None],
        graph_index: GraphIndex,
        field_cache: FieldCache,
        backgrounds: BackgroundSamples,
        audience: Filter = EVERYTHING,
        *,
        exact_vectors: bool = False,
        has_vectors: bool = True,
    ) -> None:
        """`audience` is a filter for the visible records; the readers in `keyword` have applied it already.

        `exact_vectors`: a vector search scans all visible vectors, so that hidden ones have no influence on the result.
        Without `has_vectors`, there is no index of them here, and vectors are read from the database.
        """
        self.seq = seq
        self.audience = audience
        self._exact_vectors = exact_vectors
        self._has_vectors = has_vectors
        self.model = model
        self.abandon = abandon
        """Call it when a reading thread is left behind: the read transaction then stays open for that thread."""
        self._connection = connection
        self._purged = purged
        self._keyword = keyword
        self._vector = vector
        self._fields = fields
        self._graph_index = graph_index
        self._field_cache = field_cache
        self._backgrounds = backgrounds
        self._keyword_results: dict[
            tuple[tuple[tuple[int, float], ...], BM25, Filter], tuple[int, ScoredKeys]
        ] = {}
        """Results by search: the keyword source and the link source run the same search."""
        self._cached_scorer: tuple[tuple[tuple[tuple[int, float], ...], BM25], Scorer] | None = None

    # Searching.

    def keyword_search(self, terms: Terms, bm25: BM25, k: int, where: Filter = EVERYTHING) -> ScoredKeys:
        """The k best records by BM25."""
        search = (tuple(terms), bm25, where)
        known = self._keyword_results.get(search)
        if known is None or known[0] < k:
            known = self._keyword_results[search] = (k, self._keyword_top_k(terms, bm25, k, where))
        return ScoredKeys(known[1].keys[:k], known[1].scores[:k])

    def _keyword_top_k(self, terms: Terms, bm25: BM25, k: int, where: Filter) -> ScoredKeys:
        readers, _ = self._keyword
        scorer = self._scorer(terms, bm25)
        # The readers have applied the audience already.
        allowed = None if where == EVERYTHING else self._fields.bitmap(self._connection, where, self.seq)
        found = []
        threshold = NO_SCORE
        for index, reader in enumerate(readers):
            rows, scores = scorer.top_k(
                index, k, select_positions(reader.rows, reader.live, allowed), threshold
            )
            if len(rows):
                found.append((rows, scores))
            if len(rows) >= k:
                # A record below the k-th score so far cannot be among the k best.
                threshold = max(threshold, scores.min())
        return self._top_k(found, k)

    def vector_search(self, query: NDArray[np.float32], k: int, where: Filter = EVERYTHING) -> ScoredKeys:
        """The k nearest records by cosine similarity."""
        view = self._vector()
        if view is None:
            raise SourceError("no vectors: this database has no embedding model")
        return self._top_k([nearest_records(view, query, k, self._mask(where), exact=self._exact_vectors)], k)

    def keyword_scores(self, terms: Terms, bm25: BM25, keys: Rows) -> NDArray[np.float64]:
        """The BM25 score of each record, 0 for a record without any of the terms."""
        readers, _ = self._keyword
        scorer = self._scorer(terms, bm25)
        out = np.zeros(len(keys), np.float64)
        for index, reader in enumerate(readers):
            positions, which = _locate(reader.rows, keys)
            out[which] = scorer.score_at(index, positions)
        return out

    def coverage(self, terms: Terms, bm25: BM25, keys: Rows) -> NDArray[np.float64]:
        """The share of the query's information (idf) that each record has, from 0 to 1; nan for a query without terms."""
        readers, _ = self._keyword
        scorer = self._scorer(terms, bm25)
        if not scorer.information:
            return np.full(len(keys), np.nan)
        out = [0.0] * len(keys)
        for index, reader in enumerate(readers):
            positions, which = _locate(reader.rows, keys)
            if not len(which):
                continue
            information = scorer.information_at(index, positions)
            if len(which) == len(keys):
                out = information
                break
            for at, found in zip(which.tolist(), information, strict=True):
                out[at] = found
        return np.array([min(found / scorer.information, 1.0) for found in out], np.float64)

    def vector_scores(self, query: NDArray[np.float32], keys: Rows) -> NDArray[np.float64]:
        """The cosine similarity of each record, nan for a record without a vector."""
        vectors = self.vectors(keys)
        scores: NDArray[Any] = (
            stable_dot_products(vectors, query) if vectors.shape[1] else np.zeros(len(keys))
        )
        # A record without a vector has a zero vector, and so a score of 0.
        if np.count_nonzero(scores) < len(scores):
            for index in np.flatnonzero(scores == 0.0).tolist():
                if not vectors[index].any():
                    scores[index] = np.nan
        return scores

    def vectors(self, keys: Rows) -> NDArray[np.float32]:
        """The vector of each record, a row of zeros for a record without one."""
        if not self._has_vectors and self.model is not None:
            return read_vectors(self._connection, self.model, keys)
        view = self._vector()
        if view is None:
            return np.zeros((len(keys), 0), np.float32)
        out: NDArray[np.float32] | None = None
        for segment_view in view.segments:
            positions = segment_view.segment.find_rows(keys)
            (which,) = (positions >= 0).nonzero()
            if len(which) == len(keys):
                return segment_view.segment.vectors_at(positions)
            if out is None:
                out = np.zeros((len(keys), view.buffer.dimensions), np.float32)
            out[which] = segment_view.segment.vectors_at(positions[which])
        if out is None:
            out = np.zeros((len(keys), view.buffer.dimensions), np.float32)
        if view.buffer_count:
            for index, key in enumerate(keys.tolist()):
                position = view.buffer.positions.get(key, view.buffer_count)
                if position < view.buffer_count:
                    out[index] = view.buffer.vectors[position]
        return out

    def cosine_sample(self, query: NDArray[np.float32]) -> CosineSample:
        """The mean cosine of a query with a sample of the visible records."""
        if self.model is None:
            return CosineSample(0.0, 0)
        mean, count = self._backgrounds.mean_vector(
            self.model.number, self.audience, self.seq, self._choose_sample, self.vectors
        )
        return CosineSample(float(mean @ query) if count else 0.0, count)

    def _choose_sample(self) -> tuple[int, ...]:
        readers, stats = self._keyword
        if stats.count < RARE_SHARE * sum(len(reader.rows) for reader in readers):
            return choose_among(self._connection, SAMPLE_RECORDS, self.keys(EVERYTHING))
        return choose_rows(self._connection, SAMPLE_RECORDS, self.exists)

    @property
    def graph(self) -> Graph:
        """Names and facts. Not cached: the reference cycle would keep the snapshot alive after the search."""
        return Graph(self._connection, self.seq, self._graph_index, self.select)

    # Records.

    def ids(self, keys: Rows) -> list[bytes]:
        """The id of each record as UTF-8, which sorts in the order of code points."""
        readers, _ = self._keyword
        out = [b""] * len(keys)
        for reader in readers:
            positions, which = _locate(reader.rows, keys)
            for index, position in zip(which.tolist(), positions.tolist(), strict=True):
                out[index] = reader.id_at(position)
        return out

    def exists(self, keys: Rows) -> Mask:
        """Which of the keys belong to visible records."""
        readers, _ = self._keyword
        out = np.zeros(len(keys), bool)
        for reader in readers:
            positions, which = _locate(reader.rows, keys)
            out[which] = True if reader.live is None else reader.live[positions]
        return out

    def records(self, keys: Iterable[int]) -> dict[int, Record]:
        """The visible records among these keys, by key."""
        dialect = self._connection.dialect
        rows = list(keys)
        return self._read(f"row {dialect.in_rows}", dialect.encode_rows(rows)) if rows else {}

    def columns(self, keys: Rows, names: Sequence[str]) -> list[tuple[Any, ...]]:
        """The values of some fields of visible records: built-in fields, and top-level keys of the metadata."""
        mask = self._mask(EVERYTHING)
        if mask is not None and not mask[keys].all():
            raise SourceError("a source requested a record that the caller may not see")
        return self._field_cache.read(self._connection, keys.tolist(), names)

    def siblings(self, record: Record, first: int, last: int) -> list[Record]:
        """The records with the same parent at these positions, in order; includes the record itself."""
        condition = f"{self._same_parent} AND position BETWEEN ? AND ? AND collection = ?"
        found = self._read(condition, *self._parent_values(record.parent), first, last, record.collection)
        return sorted(found.values(), key=lambda record: (record.position or 0, record.id))

    def siblings_of_kind(self, record: Record, kinds: Sequence[str]) -> list[Record]:
        """The records with the same parent and one of these kinds, in order."""
        condition = f"{self._same_parent} AND collection = ? AND kind IN ({placeholders(kinds)})"
        found = self._read(condition, *self._parent_values(record.parent), record.collection, *kinds)
        return sorted(found.values(), key=lambda record: (record.position or 0, record.id))

    def children(self, parent: str, collection: str) -> list[Record]:
        """The records of a collection with this parent, in order."""
        found = self._read(
            f"{self._same_parent} AND collection = ?", *self._parent_values(parent), collection
        )
        return sorted(found.values(), key=lambda record: (record.position or 0, record.id))

    def records_matching(self, where: Filter) -> list[Record]:
        """The records that match a filter, ordered by id."""
        return sorted(self.records(self.keys(where).tolist()).values(), key=lambda record: record.id)

    def page(self, where: Filter, limit: int, after: str | None = None) -> list[Record]:
        """The first `limit` records that match a filter and whose full ids are greater than `after`, ordered by full id."""
        keys = self.keys(where)
        start = None if after is None else after.encode()
        named = zip(self.ids(keys), keys.tolist(), strict=True)
        first = heapq.nsmallest(limit, (pair for pair in named if start is None or pair[0] > start))
        records = self.records(key for _, key in first)
        return [records[key] for _, key in first]

    def text_counts(self, name: str, where: Filter = EVERYTHING) -> dict[str, int]:
        """The texts in a field of the visible records that match a filter, and how many records have each."""
        live = np.zeros(self.seq + 1, bool)
        live[self.keys(where)] = True
        return self._fields.text_counts(self._connection, name, self.seq, live)

    def iter_records(self) -> Iterator[Record]:
        """The visible records, ordered by id; read as they are used."""
        mask = self._mask(EVERYTHING)
        found = self._connection.stream(f"{SELECT} ORDER BY id")
        return (record_from_row(row) for row in found if mask is None or mask.has(row[0]))

    def sample(self, where: Filter, count: int) -> Rows:
        """The keys of at most `count` records that match a filter, evenly spaced."""
        keys = np.sort(self.keys(where))
        return keys[np.unique(np.linspace(0, len(keys) - 1, min(count, len(keys))).astype(np.intp))]

    def newest(self, where: Filter, count: int) -> Rows:
        """The keys of the records that match a filter and have the latest times, latest first.

        Records without a time come last. Only the records that were written last are looked at.
        """
        keys = -np.sort(-self.keys(where))[:MAX_NEWEST_READ]
        times = self._field_cache.read(self._connection, keys.tolist(), ["timestamp"])
        age = np.array([np.inf if time is None else -time.timestamp() for (time,) in times])
        return keys[np.lexsort((-keys, age))][:count]

    def adjacent(self, keys: Rows, where: Filter = EVERYTHING) -> dict[int, list[int]]:
        """For each record, the records of the same parent right before and after it that match a filter."""
        dialect = self._connection.dialect
        found = self._connection.execute(
            f"""
            SELECT r.row, n.row FROM {dialect.listed_rows} JOIN records r ON r.row = k.value
            JOIN records n ON {dialect.same_text("n.parent", "r.parent")}
            AND n.position IN (r.position - 1, r.position + 1)
            AND n.collection = r.collection ORDER BY n.position, n.row
            """,
            (dialect.encode_rows([key for key in keys.tolist() if key >= 0]),),
        )
        mask = self._mask(where)
        out: dict[int, list[int]] = {}
        for key, neighbour in found:
            if mask is None or mask[neighbour]:
                out.setdefault(key, []).append(neighbour)
        return out

    def hides_records_of(self, parent: str) -> bool:
        """Whether the audience may not see some record with this parent."""
        mask = self._mask(EVERYTHING)
        if mask is None:
            return False
        found = self._connection.execute(
            f"SELECT row FROM records WHERE {self._same_parent}", self._parent_values(parent)
        )
        return not all(mask[row] for (row,) in found)

    @property
    def has_files(self) -> bool:
        """Whether files are indexed. It is read once per version: a file without records changes no answer."""
        known = self._field_cache.has_files
        if known is None or known[0] != self.seq:
            found = self._connection.execute("SELECT 1 FROM files LIMIT 1").fetchone() is not None
            known = self._field_cache.has_files = (self.seq, found)
        return known[1]

    def find_key(self, record_id: str) -> int | None:
        """The key of the visible record with this full id."""
        found = self._connection.execute("SELECT row FROM records WHERE id = ?", (record_id,)).fetchone()
        return found[0] if found and self.matches(found[0], EVERYTHING) else None

    def matches(self, key: int, where: Filter) -> bool:
        """Whether a visible record matches a filter."""
        mask = self._mask(where)
        return mask is None or mask.has(key)

    def count(self, where: Filter = EVERYTHING) -> int:
        """The number of visible records that match a filter."""
        readers, stats = self._keyword
        if where == EVERYTHING:
            return stats.count
        mask = self._fields.bitmap(self._connection, where, self.seq)
        # The readers have applied the audience already.
        return sum(int(np.count_nonzero(_select(reader, mask))) for reader in readers)

    def has_any(self, condition: Condition) -> bool:
        """Whether some visible record satisfies a condition; stops at the first, and remembers that there is one."""
        confirmed = self._fields.confirmed(self.seq)
        if (self.audience, condition) in confirmed:
            return True
        for rows in self._fields.rows(self._connection, condition, self.seq):
            start, size = 0, FIRST_CHECKED_ROWS
            while start < len(rows):
                if self.exists(rows[start : start + size]).any():
                    confirmed.add((self.audience, condition))
                    return True
                start, size = start + size, size * 8
        return False

    def changes(self, after: int, limit: int) -> Changes:
        """The feed up to this version: at most `limit` changes after a number."""
        if 0 < after < self._purged:
            raise ChangesLost(
                f"The changes after {after} are no longer known, because deletes up to {self._purged} were purged. "
                "Build the index again from its beginning."
            )
        if after >= self.seq:
            return Changes([], self.seq)
        found = []
        for action, select in _FEED:
            rows = self._connection.execute(f"{select} > ? ORDER BY 1 LIMIT ?", (after, limit + 1)).fetchall()
            found += [Change(number, key, action) for number, key in rows]
        found.sort()
        return Changes(found[:limit], found[limit - 1].number if len(found) > limit else self.seq)

    def applied(self, index: str) -> int:
        """The last change that an index has recorded as applied."""
        return read_applied(self._connection, index)

    def keyword_applied(self) -> int:
        """The last change that the segments of the keyword index cover."""
        readers, _ = self._keyword
        return max((reader.high for reader in readers), default=0)

    def vector_applied(self) -> int:
        """The last change that the segments of the vector index cover."""
        view = self._vector()
        return 0 if view is None else max((one.info.high for one in view.segments), default=0)

    def document_share(self, term: int) -> float:
        """The share of visible records that contain a term."""
        readers, stats = self._keyword
        return document_frequency(readers, term) / max(stats.count, 1)

    def keys(self, where: Filter) -> Rows:
        """The keys of the records that match a filter."""
        readers, _ = self._keyword
        mask = None if where == EVERYTHING else self._fields.bitmap(self._connection, where, self.seq)
        # The readers have applied the audience already.
        rows = [reader.rows[_select(reader, mask)] for reader in readers]
        return np.concatenate([np.empty(0, np.int64), *rows])

    def _scorer(self, terms: Terms, bm25: BM25) -> Scorer:
        """The scorer of the last query: one search uses it to find records and then to score others."""
        key = (tuple(terms), bm25)
        if self._cached_scorer is None or self._cached_scorer[0] != key:
            self._cached_scorer = (key, Scorer(*self._keyword, terms, bm25))
        return self._cached_scorer[1]

    @property
    def _same_parent(self) -> str:
        return self._connection.dialect.same_text("parent")

    def _parent_values(self, parent: str | None) -> tuple[str | None, ...]:
        """The parameters of `_same_parent`."""
        return self._connection.dialect.same_text_values(parent)

    def _read(self, condition: str, *values: object) -> dict[int, Record]:
        found = self._connection.execute(f"{SELECT} WHERE {condition}", values)
        mask = self._mask(EVERYTHING)
        return {row[0]: record_from_row(row) for row in found if mask is None or mask.has(row[0])}

    def _mask(self, where: Filter) -> FilterBitmap | None:
        """Which rows are visible and match the filter; None when all do."""
        if self.audience != EVERYTHING:
            where = self.audience if where == EVERYTHING else self.audience & where
        return None if where == EVERYTHING else self._fields.bitmap(self._connection, where, self.seq)

    def select(self, rows: Rows, where: Filter) -> Mask:
        """Which of the keys belong to visible records that match a filter."""
        visible = self.exists(rows)
        mask = self._mask(where)
        if mask is not None:
            # Rows written after this snapshot do not exist in it, and lie beyond the end of its masks.
            visible[visible] = mask[rows[visible]]
        return visible

    def _top_k(self, found: Sequence[tuple[Rows, NDArray[np.float32]]], k: int) -> ScoredKeys:
        if not found:
            return ScoredKeys.empty()
        keys, values = found[0]
        if len(found) > 1:
            keys = np.concatenate([rows for rows, _ in found])
            values = np.concatenate([values for _, values in found])
        scores = values.astype(np.float64)
        if len(found) > 1 or len(keys) > k:
            keys, first = np.unique(keys, return_index=True)
            scores = scores[first]
        best = order(keys, scores, self.ids, limit=k)
        return ScoredKeys(keys[best], scores[best])


def _select(reader: SegmentReader, mask: FilterBitmap | None) -> Mask:
    """Which records of a segment are live and pass a filter; None is no filter."""
    live = np.ones(len(reader.rows), bool) if reader.live is None else reader.live
    return live if mask is None else mask[reader.rows] & live


def _locate(rows: Rows, keys: Rows) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The positions of the keys found in the ascending `rows`, and the indexes of those keys."""
    if not len(rows):
        return np.empty(0, np.intp), np.empty(0, np.intp)
    positions, is_found = find_ascending(rows, keys)
    (which,) = is_found.nonzero()
    # In a database of one segment, all are in it.
    return (positions if len(which) == len(keys) else positions[which]), which
