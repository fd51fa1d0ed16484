"""The keyword index: postings in flat arrays, scored exactly.

Every record that holds a query term is scored; nothing is pruned, so the answer is the exhaustive BM25 ranking
at any filter. Statistics are counted over the live records at query time from the postings themselves, so
a record scores the same in the tail as in a segment.
"""

from __future__ import annotations

import sqlite3
import sys
from array import array
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cached_property
from threading import Lock
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import ANALYSIS_ID, count_terms
from sennit.analysis.counting import count_documents
from sennit.stores.embedded.arrays import Arrays, Growing
from sennit.stores.embedded.layer import Layer, Segment, Tail
from sennit.stores.embedded.layers import LayeredIndex
from sennit.stores.embedded.segments import Entry, Segments
from sennit.stores.embedded.selection import Mask

FIELDS: Final = ("text", "title")
"""The fields of a record that are searched by keyword, in the order of every per-field array."""

FORMAT: Final = "keyword-2"


def identity(origin: int) -> str:
    """What segments of a database are built with: another one's, or another version's, are not taken."""
    return f"{FORMAT} {ANALYSIS_ID} {origin:x}"


ASKED_KEPT: Final = 4096
"""Terms of questions whose place in the index is remembered."""

SATURATED_KEPT: Final = 1 << 22
SATURATED_EACH: Final = 16
"""Postings of a segment whose part of the score is remembered: 16 MB, or 64 bytes for each of its records. The common words
of questions are few, and they have most of the postings."""

ELSEWHERE: Final = 2048
"""Records from which on a program is started to fold them, which takes as long as to analyse a thousand."""

MAX_COUNT: Final = 65535
"""A term that occurs more often in one record counts as this often; BM25 is flat long before."""


TITLE: Final = 16
"""Where the count in the title begins, in the number that holds the counts of both fields."""

_PACKED: Final = (("text", np.uint16), ("title", np.uint16), ("position", np.int32))
PACKED: Final = np.dtype(list(_PACKED if sys.byteorder == "little" else _PACKED[::-1]))
"""The same number as it lies in memory, with the position in its upper half."""


CHUNK: Final = 1 << 24
"""Characters analysed in one go: bounds the memory of a fold."""


class Document(NamedTuple):
    """What the keyword index takes of a record."""

    row: int
    id: str
    text: str
    title: str


def analyse(text: str, title: str) -> tuple[tuple[int, int], dict[int, int]]:
    """The lengths of the fields, and by term hash its count in the text, and in the title from bit TITLE on."""
    counts, length = count_terms(text)
    if len(text) >= MAX_COUNT // 8:
        # Only here can a count be too great: no character makes more than a few terms.
        counts = {term: min(count, MAX_COUNT) for term, count in counts.items()}
    title_length = 0
    if title:
        counted, title_length = count_terms(title)
        for term, count in counted.items():
            counts[term] = counts.get(term, 0) | min(count, MAX_COUNT) << TITLE
    return (length, title_length), counts


class Postings(NamedTuple):
    """Where a term occurs: ascending positions, and the count there in each field, None where it is in none."""

    positions: NDArray[np.int32]
    counts: tuple[NDArray[Any] | None, ...]


class Kept:
    """What scoring has worked out of a segment or tail, and the next question finds there."""

    def __init__(self, records: int = 0) -> None:
        self._most = max(SATURATED_KEPT, SATURATED_EACH * records)
        self.lengths: dict[tuple[float, ...], NDArray[np.float32]] = {}
        """By the weights of the fields: the length of each document."""
        self._saturated: OrderedDict[tuple[Hashable, int], NDArray[np.float32]] = OrderedDict()
        self._numbers = 0
        self._lock = Lock()

    def saturated(self, constants: Hashable, term: int) -> NDArray[np.float32] | None:
        """What each posting of a term counts for by the constants of a score, if that is remembered."""
        key = (constants, term)
        with self._lock:
            found = self._saturated.get(key)
            if found is not None:
                self._saturated.move_to_end(key)
        return found

    def keep(self, constants: Hashable, term: int, saturated: NDArray[np.float32]) -> None:
        """Remember what the postings of a term count for; where there is no room, what was not asked for the longest goes."""
        with self._lock:
            if (constants, term) in self._saturated:
                return
            self._saturated[constants, term] = saturated
            self._numbers += len(saturated)
            while self._numbers > self._most and len(self._saturated) > 1:
                self._numbers -= len(self._saturated.popitem(last=False)[1])


class KeywordSegment(Segment):
    """Postings by term, terms by hash."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self.rows = arrays["rows"]
        self.lengths: NDArray[np.float32] = arrays["lengths"]
        """[field, position]"""
        self.kept = Kept(len(self.rows))
        self._terms: NDArray[np.uint64] = arrays["terms"]
        self._starts: NDArray[Any] = arrays["starts"]
        self._positions: NDArray[np.int32] = arrays["positions"]
        self._counts = tuple(arrays.get(f"count_{name}") for name in FIELDS)
        self._asked: dict[int, Postings | None] = {}
        self._ids = arrays["ids"]
        self._id_starts: NDArray[Any] = arrays["id_starts"]

    def arrays(self) -> Arrays:
        return self._arrays

    def postings(self, term: int) -> Postings | None:
        """Where the term occurs, or None; remembered, because the common words are asked for again and again."""
        try:
            return self._asked[term]
        except KeyError:
            if len(self._asked) >= ASKED_KEPT:
                self._asked.clear()
            found = self._asked[term] = self._postings(term)
            return found

    def _postings(self, term: int) -> Postings | None:
        at = int(self._terms.searchsorted(np.uint64(term)))
        if at == len(self._terms) or self._terms[at] != term:
            return None
        part = slice(int(self._starts[at]), int(self._starts[at + 1]))
        return Postings(
            self._positions[part], tuple(None if counts is None else counts[part] for counts in self._counts)
        )

    @cached_property
    def sums(self) -> NDArray[np.float64]:
        """The sum of lengths per field."""
        sums: NDArray[np.float64] = self.lengths.sum(axis=1, dtype=np.float64)
        return sums

    def id_at(self, position: int) -> bytes:
        """The id of the record at a position."""
        return self._ids[self._id_starts[position] : self._id_starts[position + 1]].tobytes()

    def entries(self, live: Mask | None) -> tuple[dict[str, NDArray[Any]], NDArray[np.uint64]]:
        """The arrays without what has been removed, and the term of every posting."""
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
        arrays["id_starts"] = _starts(sizes[live])
        arrays["rows"] = self.rows[live]
        arrays["lengths"] = self.lengths[:, live]
        return arrays, terms[kept]


class KeywordTail(Tail):
    """The newest documents, with postings as growing lists."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[bytes] = []
        self.lengths = Growing(np.float32, len(FIELDS))
        self.sums = Growing(np.float64, len(FIELDS))
        """The sums of all lengths up to and with each document's."""
        self._postings: dict[int, array[int]] = {}
        """By term: the position in the upper half of each number, the counts of the fields in the lower."""
        self._titled = False

    def append(self, item: Document) -> None:
        position = len(self.rows)
        lengths, counted = analyse(item.text, item.title)
        self.ids.append(item.id.encode())
        self.lengths.append(lengths)
        self._titled = self._titled or bool(item.title)
        self.sums.append(self.sums.first(position)[-1] + lengths if position else lengths)
        postings = self._postings
        place = position << 32
        for term, counts in counted.items():
            held = postings.get(term)
            if held is None:
                postings[term] = array("Q", (place | counts,))
            else:
                held.append(place | counts)
        self._place(item.row)

    def postings(self, term: int, count: int) -> Postings | None:
        """Where the term occurs among the first `count` documents, or None."""
        held = self._postings.get(term)
        if held is None:
            return None
        # A copy: an array that lends its memory to numpy cannot grow.
        packed = np.frombuffer(held.tobytes(), PACKED)
        positions = packed["position"]
        if positions[-1] >= count:
            packed = packed[: int(positions.searchsorted(count))]
            if not len(packed):
                return None
            positions = packed["position"]
        return Postings(positions, (packed["text"], packed["title"] if self._titled else None))


class Folds(Protocol):
    """Builds segments in another program."""

    @property
    def running(self) -> bool:
        """Whether there is such a program now."""
        ...

    def fold(self, low: int, high: int) -> Entry | None:
        """The segment of a range of changes, written but not published; None where no program can build it."""
        ...


class KeywordIndex(LayeredIndex[KeywordSegment, KeywordTail]):
    """Finds records by the words they hold."""

    name = "keyword"

    def __init__(
        self,
        segments: Segments,
        report: Callable[[str], None],
        folder: Folds | None = None,
    ) -> None:
        super().__init__(segments, report)
        self._folder = folder

    def elsewhere(self, low: int, high: int, waiting: int) -> Entry | None:
        folder = self._folder
        if folder is None or not (waiting >= ELSEWHERE or folder.running):
            return None
        return folder.fold(low, high)

    def new_tail(self) -> KeywordTail:
        return KeywordTail()

    def load(self, connection: sqlite3.Connection, low: int, high: int) -> Iterable[Document]:
        found = connection.execute(
            "SELECT row, id, text, title FROM records WHERE row > ? AND row <= ? ORDER BY row", (low, high)
        )
        return map(Document._make, found)

    def build(self, items: Iterable[Document]) -> KeywordSegment:
        documents = list(items)
        ids = [document.id.encode() for document in documents]
        parts = [
            count_documents(([d.text for d in documents[part]], [d.title for d in documents[part]]))
            for part in _parts(documents)
        ]
        offsets = np.cumsum([0] + [part.lengths.shape[1] for part in parts])
        arrays: dict[str, NDArray[Any]] = {
            "rows": np.array([document.row for document in documents], np.int64),
            "lengths": np.concatenate([part.lengths for part in parts], axis=1).astype(np.float32),
            "ids": np.frombuffer(b"".join(ids), np.uint8),
            "id_starts": _starts(np.array([len(value) for value in ids], np.int64)),
        }
        counts = [np.concatenate([part.counts[field] for part in parts]) for field in range(len(FIELDS))]
        return _assembled(
            arrays,
            np.concatenate([part.terms for part in parts]),
            _shifted([part.positions for part in parts], offsets),
            [np.minimum(values, MAX_COUNT).astype(np.uint16) for values in counts],
        )

    def merge(self, layers: Sequence[Layer[KeywordSegment]]) -> KeywordSegment:
        parts = [layer.segment.entries(layer.live) for layer in layers]
        offsets = np.cumsum([0] + [len(arrays["rows"]) for arrays, _ in parts])
        positions = _shifted([arrays["positions"] for arrays, _ in parts], offsets)
        merged = {name: np.concatenate([arrays[name] for arrays, _ in parts]) for name in ("rows", "ids")}
        merged["lengths"] = np.concatenate([arrays["lengths"] for arrays, _ in parts], axis=1)
        merged["id_starts"] = _starts(np.concatenate([np.diff(arrays["id_starts"]) for arrays, _ in parts]))
        counts = [np.concatenate([_counts(arrays, name) for arrays, _ in parts]) for name in FIELDS]
        return _assembled(merged, np.concatenate([terms for _, terms in parts]), positions, counts)

    def revive(self, arrays: Arrays) -> KeywordSegment:
        return KeywordSegment(arrays)


def _assembled(
    arrays: dict[str, NDArray[Any]],
    terms: NDArray[np.uint64],
    positions: NDArray[np.int32],
    counts: Sequence[NDArray[Any]],
) -> KeywordSegment:
    """A segment from postings in any order of terms; positions of one term must ascend."""
    order = np.argsort(terms, kind="stable")
    terms = terms[order]
    arrays["positions"] = positions[order]
    for name, values in zip(FIELDS, counts, strict=True):
        most = int(values.max(initial=0))
        arrays.pop(f"count_{name}", None)
        if most:
            # Most collections have no titles, or few: a field without a word takes no space.
            kind = np.uint8 if most <= np.iinfo(np.uint8).max else np.uint16
            arrays[f"count_{name}"] = values.astype(kind)[order]
    first = np.ones(len(terms), bool)
    first[1:] = terms[1:] != terms[:-1]
    starts = np.flatnonzero(first)
    arrays["terms"] = terms[starts]
    arrays["starts"] = _narrowed(np.append(starts, len(terms)))
    return KeywordSegment(arrays)


def _parts(documents: Sequence[Document]) -> Iterator[slice]:
    """Stretches of documents that are analysed together; at least one, if empty."""
    start = size = 0
    for position, document in enumerate(documents):
        size += len(document.text) + len(document.title)
        if size >= CHUNK:
            yield slice(start, position + 1)
            start, size = position + 1, 0
    if start < len(documents) or not documents:
        yield slice(start, len(documents))


def _shifted(parts: Sequence[NDArray[np.int32]], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Positions within parts, as positions within all of them."""
    return np.concatenate([part + np.int32(offset) for part, offset in zip(parts, offsets, strict=False)])


def _counts(arrays: Arrays, name: str) -> NDArray[Any]:
    found = arrays.get(f"count_{name}")
    return np.zeros(len(arrays["positions"]), np.uint8) if found is None else found


def _starts(sizes: NDArray[Any]) -> NDArray[Any]:
    return _narrowed(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)]))


def _narrowed(starts: NDArray[np.int64]) -> NDArray[Any]:
    """In half the space, where the last of them allows it."""
    return starts.astype(np.uint32) if starts[-1] <= np.iinfo(np.uint32).max else starts
