"""The keyword index: an inverted index with posting lists in flat arrays.

A search scores every record that holds a query term. It prunes nothing, so the result is the exhaustive BM25 ranking
under any filter. Collection statistics are counted at query time over the live records, from the posting lists
themselves, so a record has the same score in the buffer as in a segment.
"""

from __future__ import annotations

import sys
from array import array
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import ANALYSIS_ID, count_terms
from sennit.analysis.term_counts import count_documents
from sennit.stores.embedded.arrays import Arrays, GrowingArray
from sennit.stores.embedded.index_view import Buffer, Segment, SegmentView
from sennit.stores.embedded.segment_store import SegmentInfo, SegmentStore
from sennit.stores.embedded.segmented_index import MAX_UNSTREAMED_CHANGES, SegmentedIndex
from sennit.stores.embedded.selection import Mask
from sennit.stores.sql.connection import Connection

FIELDS: Final = ("text", "title")
"""The record fields that keyword search covers, in the order of every per-field array."""

FORMAT: Final = "keyword-2"


def segment_identity(origin: int) -> str:
    """Names the format, text analysis and database of segments; segments of another identity are not opened."""
    return f"{FORMAT} {ANALYSIS_ID} {origin:x}"


MAX_CACHED_TERMS: Final = 4096
"""Query terms whose posting lists a segment remembers."""

CACHED_IMPACTS: Final = 1 << 22
CACHED_IMPACTS_PER_RECORD: Final = 16
"""Postings of a segment whose term-frequency saturation is cached: 16 MB, or 64 bytes per record if that is more. Queries
share few common words, and those have most of the postings."""

MIN_WORKER_RECORDS: Final = 2048
"""A flush of at least this many records starts a worker process. Starting it takes as long as analysing a thousand."""

MAX_COUNT: Final = 65535
"""The largest stored term frequency. BM25 saturates long before."""

TITLE_SHIFT: Final = 16
"""The term frequency in the title begins at this bit of the number that packs both fields."""

_POSTING_FIELDS: Final = (("text", np.uint16), ("title", np.uint16), ("position", np.int32))
POSTING: Final = np.dtype(list(_POSTING_FIELDS if sys.byteorder == "little" else _POSTING_FIELDS[::-1]))
"""The memory layout of a packed posting: a 64-bit number with the position in its upper half."""

ANALYSIS_CHUNK_CHARS: Final = 1 << 24
"""Characters analysed at once; this bounds the memory of a flush."""


class IndexDocument(NamedTuple):
    """The part of a record that the keyword index reads."""

    row: int
    id: str
    text: str
    title: str


def analyse(text: str, title: str) -> tuple[tuple[int, int], dict[int, int]]:
    """The lengths of both fields, and by term hash the packed term frequencies (see TITLE_SHIFT)."""
    counts, length = count_terms(text)
    if len(text) >= MAX_COUNT // 8:
        # Shorter texts cannot exceed MAX_COUNT, because a character yields at most a few terms.
        counts = {term: min(count, MAX_COUNT) for term, count in counts.items()}
    title_length = 0
    if title:
        title_counts, title_length = count_terms(title)
        for term, count in title_counts.items():
            counts[term] = counts.get(term, 0) | min(count, MAX_COUNT) << TITLE_SHIFT
    return (length, title_length), counts


class Postings(NamedTuple):
    """The posting list of a term: ascending positions, and the term frequencies per field.

    The frequencies of a field are None where the term never occurs in it.
    """

    positions: NDArray[np.int32]
    counts: tuple[NDArray[Any] | None, ...]


class ScoreCache:
    """Intermediate values of scoring for one segment or buffer, which later queries reuse."""

    def __init__(self, records: int = 0) -> None:
        self._max_impacts = max(CACHED_IMPACTS, CACHED_IMPACTS_PER_RECORD * records)
        self.lengths: dict[tuple[float, ...], NDArray[np.float32]] = {}
        """The weighted length of each document, by the field weights."""
        self._impacts: OrderedDict[tuple[Hashable, int], NDArray[np.float32]] = OrderedDict()
        self._impact_count = 0
        self._lock = Lock()

    def get_impacts(self, constants: Hashable, term: int) -> NDArray[np.float32] | None:
        """The saturated term frequency of each posting of a term under these BM25 constants, if it is cached."""
        key = (constants, term)
        with self._lock:
            found = self._impacts.get(key)
            if found is not None:
                self._impacts.move_to_end(key)
        return found

    def put_impacts(self, constants: Hashable, term: int, impacts: NDArray[np.float32]) -> None:
        """Cache the saturated term frequencies of a term, and evict the least recently used ones."""
        with self._lock:
            if (constants, term) in self._impacts:
                return
            self._impacts[constants, term] = impacts
            self._impact_count += len(impacts)
            while self._impact_count > self._max_impacts and len(self._impacts) > 1:
                self._impact_count -= len(self._impacts.popitem(last=False)[1])


class KeywordSegment(Segment):
    """An immutable inverted index. Terms are hashes, in ascending order."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self.rows = arrays["rows"]
        self.lengths: NDArray[np.float32] = arrays["lengths"]
        """[field, position]"""
        self.cache = ScoreCache(len(self.rows))
        self._terms: NDArray[np.uint64] = arrays["terms"]
        self._starts: NDArray[Any] = arrays["starts"]
        self._positions: NDArray[np.int32] = arrays["positions"]
        self._counts = tuple(arrays.get(f"count_{name}") for name in FIELDS)
        self._postings_cache: dict[int, Postings | None] = {}
        self._ids = arrays["ids"]
        self._id_starts: NDArray[Any] = arrays["id_starts"]

    def to_arrays(self) -> Arrays:
        return self._arrays

    def postings(self, term: int) -> Postings | None:
        """The posting list of a term, or None; cached, because queries repeat the common words."""
        try:
            return self._postings_cache[term]
        except KeyError:
            if len(self._postings_cache) >= MAX_CACHED_TERMS:
                self._postings_cache.clear()
            found = self._postings_cache[term] = self._find_postings(term)
            return found

    def _find_postings(self, term: int) -> Postings | None:
        at = int(self._terms.searchsorted(np.uint64(term)))
        if at == len(self._terms) or self._terms[at] != term:
            return None
        postings = slice(int(self._starts[at]), int(self._starts[at + 1]))
        return Postings(
            self._positions[postings],
            tuple(None if counts is None else counts[postings] for counts in self._counts),
        )

    @cached_property
    def length_sums(self) -> NDArray[np.float64]:
        """The sum of document lengths per field."""
        sums: NDArray[np.float64] = self.lengths.sum(axis=1, dtype=np.float64)
        return sums

    def id_at(self, position: int) -> bytes:
        """The id of the record at a position."""
        return self._ids[self._id_starts[position] : self._id_starts[position + 1]].tobytes()

    def live_arrays(self, live: Mask | None) -> tuple[dict[str, NDArray[Any]], NDArray[np.uint64]]:
        """The arrays without the deleted records, and the term of every remaining posting."""
        arrays = dict(self._arrays)
        terms = np.repeat(self._terms, np.diff(self._starts))
        if live is None:
            return arrays, terms
        kept = live[self._positions]
        renumbered = np.cumsum(live, dtype=np.int32) - np.int32(1)
        arrays["positions"] = renumbered[self._positions[kept]]
        for name in FIELDS:
            if f"count_{name}" in arrays:
                arrays[f"count_{name}"] = arrays[f"count_{name}"][kept]
        sizes = np.diff(self._id_starts)
        arrays["ids"] = self._ids[np.repeat(live, sizes)]
        arrays["id_starts"] = _to_offsets(sizes[live])
        arrays["rows"] = self.rows[live]
        arrays["lengths"] = self.lengths[:, live]
        return arrays, terms[kept]


class KeywordBuffer(Buffer):
    """The newest documents, with posting lists that grow."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[bytes] = []
        self.lengths = GrowingArray(np.float32, len(FIELDS))
        self.length_sums = GrowingArray(np.float64, len(FIELDS))
        """The running sums of the lengths per field, up to and including each document."""
        self._postings: dict[int, array[int]] = {}
        """The packed postings of each term; see POSTING."""
        self._has_titles = False

    def append(self, item: IndexDocument) -> None:
        position = len(self.rows)
        lengths, counts = analyse(item.text, item.title)
        self.ids.append(item.id.encode())
        self.lengths.append(lengths)
        self._has_titles = self._has_titles or bool(item.title)
        self.length_sums.append(self.length_sums.first(position)[-1] + lengths if position else lengths)
        postings = self._postings
        shifted = position << 32
        for term, packed in counts.items():
            found = postings.get(term)
            if found is None:
                postings[term] = array("Q", (shifted | packed,))
            else:
                found.append(shifted | packed)
        self._append_row(item.row)

    def postings(self, term: int, count: int) -> Postings | None:
        """The posting list of a term in the first `count` documents, or None."""
        found = self._postings.get(term)
        if found is None:
            return None
        # Copy it: an array that exports its memory to numpy cannot grow.
        packed = np.frombuffer(found.tobytes(), POSTING)
        positions = packed["position"]
        if positions[-1] >= count:
            packed = packed[: int(positions.searchsorted(count))]
            if not len(packed):
                return None
            positions = packed["position"]
        return Postings(positions, (packed["text"], packed["title"] if self._has_titles else None))


class ExternalBuilder(Protocol):
    """Builds segments in another process."""

    @property
    def is_running(self) -> bool:
        """Whether the process has been started."""
        ...

    def build(self, low: int, high: int) -> SegmentInfo | None:
        """Build and write the segment of a range of changes without publishing it; None where that fails."""
        ...


class KeywordIndex(SegmentedIndex[KeywordSegment, KeywordBuffer]):
    """Finds records by the terms they hold."""

    name = "keyword"
    columns: ClassVar[str] = "row, id, text, title"
    """What is read of a record."""

    def __init__(
        self,
        segments: SegmentStore,
        report: Callable[[str], None],
        builder: ExternalBuilder | None = None,
    ) -> None:
        super().__init__(segments, report)
        self._builder = builder

    def build_externally(self, low: int, high: int, unflushed: int) -> SegmentInfo | None:
        builder = self._builder
        if builder is None or not (unflushed >= MIN_WORKER_RECORDS or builder.is_running):
            return None
        return builder.build(low, high)

    def new_buffer(self) -> KeywordBuffer:
        return KeywordBuffer()

    def load(self, connection: Connection, low: int, high: int) -> Iterable[IndexDocument]:
        read = connection.execute if high - low <= MAX_UNSTREAMED_CHANGES else connection.stream
        found = read(
            f"SELECT {self.columns} FROM records WHERE row > ? AND row <= ? ORDER BY row", (low, high)
        )
        return map(IndexDocument._make, found)

    def build(self, items: Iterable[IndexDocument]) -> KeywordSegment:
        documents = list(items)
        ids = [document.id.encode() for document in documents]
        parts = [
            count_documents(([d.text for d in documents[batch]], [d.title for d in documents[batch]]))
            for batch in _analysis_batches(documents)
        ]
        offsets = np.cumsum([0] + [part.lengths.shape[1] for part in parts])
        arrays: dict[str, NDArray[Any]] = {
            "rows": np.array([document.row for document in documents], np.int64),
            "lengths": np.concatenate([part.lengths for part in parts], axis=1).astype(np.float32),
            "ids": np.frombuffer(b"".join(ids), np.uint8),
            "id_starts": _to_offsets(np.array([len(value) for value in ids], np.int64)),
        }
        counts = [np.concatenate([part.counts[field] for part in parts]) for field in range(len(FIELDS))]
        return _assemble_segment(
            arrays,
            np.concatenate([part.terms for part in parts]),
            _shift_positions([part.positions for part in parts], offsets),
            [np.minimum(values, MAX_COUNT).astype(np.uint16) for values in counts],
        )

    def merge_views(self, views: Sequence[SegmentView[KeywordSegment]]) -> KeywordSegment:
        parts = [view.segment.live_arrays(view.live) for view in views]
        offsets = np.cumsum([0] + [len(arrays["rows"]) for arrays, _ in parts])
        positions = _shift_positions([arrays["positions"] for arrays, _ in parts], offsets)
        merged = {name: np.concatenate([arrays[name] for arrays, _ in parts]) for name in ("rows", "ids")}
        merged["lengths"] = np.concatenate([arrays["lengths"] for arrays, _ in parts], axis=1)
        merged["id_starts"] = _to_offsets(
            np.concatenate([np.diff(arrays["id_starts"]) for arrays, _ in parts])
        )
        counts = [np.concatenate([_counts_of(arrays, name) for arrays, _ in parts]) for name in FIELDS]
        return _assemble_segment(merged, np.concatenate([terms for _, terms in parts]), positions, counts)

    def from_arrays(self, arrays: Arrays) -> KeywordSegment:
        return KeywordSegment(arrays)


class IdIndex(KeywordIndex):
    """The keys and ids of records, without a word of them: what a snapshot needs where a server searches the words."""

    name = "id"
    columns: ClassVar[str] = "row, id, '', ''"


def _assemble_segment(
    arrays: dict[str, NDArray[Any]],
    terms: NDArray[np.uint64],
    positions: NDArray[np.int32],
    counts: Sequence[NDArray[Any]],
) -> KeywordSegment:
    """Build a segment from postings in any order of terms; the positions of each term must ascend."""
    order = np.argsort(terms, kind="stable")
    terms = terms[order]
    arrays["positions"] = positions[order]
    for name, values in zip(FIELDS, counts, strict=True):
        maximum = int(values.max(initial=0))
        arrays.pop(f"count_{name}", None)
        if maximum:
            # Most collections have few titles or none. A field without terms takes no space.
            dtype = np.uint8 if maximum <= np.iinfo(np.uint8).max else np.uint16
            arrays[f"count_{name}"] = values.astype(dtype)[order]
    first = np.ones(len(terms), bool)
    first[1:] = terms[1:] != terms[:-1]
    starts = np.flatnonzero(first)
    arrays["terms"] = terms[starts]
    arrays["starts"] = _narrow(np.append(starts, len(terms)))
    return KeywordSegment(arrays)


def _analysis_batches(documents: Sequence[IndexDocument]) -> Iterator[slice]:
    """Slices of documents that are analysed together; an empty slice where there are no documents."""
    start = size = 0
    for position, document in enumerate(documents):
        size += len(document.text) + len(document.title)
        if size >= ANALYSIS_CHUNK_CHARS:
            yield slice(start, position + 1)
            start, size = position + 1, 0
    if start < len(documents) or not documents:
        yield slice(start, len(documents))


def _shift_positions(parts: Sequence[NDArray[np.int32]], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Positions in each part, as positions in the concatenation of all parts."""
    return np.concatenate([part + np.int32(offset) for part, offset in zip(parts, offsets, strict=False)])


def _counts_of(arrays: Arrays, name: str) -> NDArray[Any]:
    found = arrays.get(f"count_{name}")
    return np.zeros(len(arrays["positions"]), np.uint8) if found is None else found


def _to_offsets(sizes: NDArray[Any]) -> NDArray[Any]:
    """The offset at which each item begins, and the end of the last one."""
    return _narrow(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)]))


def _narrow(starts: NDArray[np.int64]) -> NDArray[Any]:
    """The same numbers in half the space, if the last of them fits."""
    return starts.astype(np.uint32) if starts[-1] <= np.iinfo(np.uint32).max else starts
