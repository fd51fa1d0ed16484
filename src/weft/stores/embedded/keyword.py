"""The keyword index: postings in flat arrays, scored exactly.

Every record that holds a query term is scored; nothing is pruned, so the answer is the exhaustive BM25 ranking
at any filter. Statistics are counted over the live records at query time from the postings themselves, so
a record scores the same in the tail as in a segment.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from weft.analysis import count_terms
from weft.stores.embedded.arrays import Arrays
from weft.stores.embedded.layers import Layer, LayeredIndex, Layers, Mask, Rows, Segment, Tail

FIELDS: Final = ("text", "title")
"""The fields of a record that are searched by keyword, in the order of every per-field array."""

FORMAT: Final = "keyword-1"

MAX_COUNT: Final = 65535
"""A term that occurs more often in one record counts as this often; BM25 is flat long before."""


class Document(NamedTuple):
    """A record as the keyword index sees it."""

    row: int
    id: bytes
    lengths: tuple[int, ...]
    counts: dict[int, list[int]]
    """Term hash to its count in each field."""


def analyse(row: int, record_id: str, text: str, title: str) -> Document:
    """A document from a record's fields."""
    counted, length = count_terms(text)
    counts = {term: [count, 0] for term, count in counted.items()}
    title_length = 0
    if title:
        counted, title_length = count_terms(title)
        for term, count in counted.items():
            counts.setdefault(term, [0, 0])[1] = count
    return Document(row, record_id.encode(), (length, title_length), counts)


class Postings(NamedTuple):
    """Where a term occurs: ascending positions, and the count there in each field."""

    positions: NDArray[np.int32]
    counts: tuple[NDArray[Any], ...]


class KeywordSegment(Segment):
    """Postings by term, terms by hash."""

    def __init__(self, arrays: Arrays) -> None:
        self._arrays = arrays
        self.rows = arrays["rows"]
        self.lengths: NDArray[np.float32] = arrays["lengths"]
        """[field, position]"""
        self.weighted: dict[tuple[float, ...], NDArray[np.float32]] = {}
        self._terms: NDArray[np.uint64] = arrays["terms"]
        self._starts: NDArray[np.int64] = arrays["starts"]
        self._positions: NDArray[np.int32] = arrays["positions"]
        self._counts = tuple(arrays[f"count_{name}"] for name in FIELDS)
        self._ids = arrays["ids"]
        self._id_starts: NDArray[np.int64] = arrays["id_starts"]

    def arrays(self) -> Arrays:
        return self._arrays

    def postings(self, term: int) -> Postings | None:
        """Where the term occurs, or None."""
        at = int(np.searchsorted(self._terms, np.uint64(term)))
        if at == len(self._terms) or self._terms[at] != term:
            return None
        part = slice(int(self._starts[at]), int(self._starts[at + 1]))
        return Postings(self._positions[part], tuple(counts[part] for counts in self._counts))

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
        self.rows: list[int] = []
        self.ids: list[bytes] = []
        self.lengths: list[tuple[int, ...]] = []
        self.documents: dict[int, Document] = {}
        self._postings: dict[int, tuple[array[int], ...]] = {}
        """By term: positions, then the counts in each field."""

    def append(self, item: Document) -> None:
        position = len(self.rows)
        self.documents[item.row] = item
        self.ids.append(item.id)
        self.lengths.append(item.lengths)
        for term, counts in item.counts.items():
            columns = self._postings.get(term)
            if columns is None:
                columns = self._postings[term] = (array("i"), *(array("H") for _ in FIELDS))
            for column, count in zip(columns[1:], counts, strict=True):
                column.append(min(count, MAX_COUNT))
            # The position comes last: a reader that sees it sees the counts as well.
            columns[0].append(position)
        self.rows.append(item.row)

    def postings(self, term: int, count: int) -> Postings | None:
        """Where the term occurs among the first `count` documents, or None."""
        columns = self._postings.get(term)
        if columns is None:
            return None
        stop = bisect_left(columns[0], count)
        positions, *counts = (column[:stop] for column in columns)
        return Postings(
            np.frombuffer(positions, np.int32), tuple(np.frombuffer(column, np.uint16) for column in counts)
        )


class KeywordIndex(LayeredIndex[KeywordSegment, KeywordTail]):
    """Finds records by the words they hold."""

    name = "keyword"

    def new_tail(self) -> KeywordTail:
        return KeywordTail()

    def load(self, connection: sqlite3.Connection, low: int, high: int) -> Iterable[Document]:
        found = connection.execute(
            "SELECT row, id, text, title FROM records WHERE row > ? AND row <= ? ORDER BY row", (low, high)
        )
        # What the tail holds has been analysed; folding it is no reason to do that again.
        known = self._state.tail.documents if self._state else {}
        return (known.get(values[0]) or analyse(*values) for values in found)

    def build(self, items: Iterable[Document]) -> KeywordSegment:
        documents = list(items)
        sizes = np.array([len(document.counts) for document in documents], np.int64)
        total = int(sizes.sum())
        terms = np.fromiter(chain.from_iterable(d.counts for d in documents), np.uint64, total)
        counts = np.fromiter(
            chain.from_iterable(chain.from_iterable(d.counts.values()) for d in documents),
            np.int64,
            total * len(FIELDS),
        ).reshape(total, len(FIELDS))
        positions = np.repeat(np.arange(len(documents), dtype=np.int32), sizes)
        ids = [document.id for document in documents]
        arrays: dict[str, NDArray[Any]] = {
            "rows": np.array([document.row for document in documents], np.int64),
            "lengths": np.array([d.lengths for d in documents], np.float32).reshape(-1, len(FIELDS)).T.copy(),
            "ids": np.frombuffer(b"".join(ids), np.uint8),
            "id_starts": _starts(np.array([len(value) for value in ids], np.int64)),
        }
        return _assembled(arrays, terms, positions, [counts[:, i] for i in range(len(FIELDS))])

    def merge(self, layers: Sequence[Layer[KeywordSegment]]) -> KeywordSegment:
        parts = [layer.segment.entries(layer.live) for layer in layers]
        offsets = np.cumsum([0] + [len(arrays["rows"]) for arrays, _ in parts])
        positions = np.concatenate(
            [
                arrays["positions"] + np.int32(offset)
                for (arrays, _), offset in zip(parts, offsets, strict=False)
            ]
        )
        merged = {name: np.concatenate([arrays[name] for arrays, _ in parts]) for name in ("rows", "ids")}
        merged["lengths"] = np.concatenate([arrays["lengths"] for arrays, _ in parts], axis=1)
        merged["id_starts"] = _starts(np.concatenate([np.diff(arrays["id_starts"]) for arrays, _ in parts]))
        counts = [np.concatenate([arrays[f"count_{name}"] for arrays, _ in parts]) for name in FIELDS]
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
        values = values[order]
        most = int(values.max(initial=0))
        kind = np.uint8 if most <= np.iinfo(np.uint8).max else np.uint16
        arrays[f"count_{name}"] = np.minimum(values, min(most, MAX_COUNT)).astype(kind)
    first = np.ones(len(terms), bool)
    first[1:] = terms[1:] != terms[:-1]
    starts = np.flatnonzero(first)
    arrays["terms"] = terms[starts]
    arrays["starts"] = np.append(starts, len(terms)).astype(np.int64)
    return KeywordSegment(arrays)


def _starts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


@dataclass(frozen=True, slots=True)
class Part:
    """A segment or the tail, in the form that scoring takes."""

    rows: Rows
    lengths: NDArray[np.float32]
    live: Mask | None
    source: KeywordSegment | KeywordTail
    count: int
    cache: dict[tuple[float, ...], NDArray[np.float32]]

    def postings(self, term: int) -> Postings | None:
        if isinstance(self.source, KeywordTail):
            return self.source.postings(term, self.count)
        return self.source.postings(term)

    def weighted_lengths(self, weights: tuple[float, ...]) -> NDArray[np.float32]:
        """The length of each document with its fields weighted; kept, because queries share the weights."""
        found = self.cache.get(weights)
        if found is None:
            found = self.cache[weights] = weighted(self.lengths, weights)
        return found

    def id_at(self, position: int) -> bytes:
        if isinstance(self.source, KeywordTail):
            return self.source.ids[position]
        return self.source.id_at(position)


def weighted(
    per_field: Sequence[NDArray[Any]] | NDArray[np.float32], weights: tuple[float, ...]
) -> NDArray[np.float32]:
    """The weighted sum over the fields."""
    out: NDArray[np.float32] = per_field[0].astype(np.float32)
    if weights[0] != 1.0:
        out *= np.float32(weights[0])
    for weight, values in zip(weights[1:], per_field[1:], strict=True):
        if weight:
            out += values if weight == 1.0 else values.astype(np.float32) * np.float32(weight)
    return out


def parts_of(layers: Layers[KeywordSegment, KeywordTail]) -> list[Part]:
    """Everything there is to search, oldest first."""
    parts = []
    for layer in layers.layers:
        segment = layer.segment
        parts.append(
            Part(segment.rows, segment.lengths, layer.live, segment, len(segment.rows), segment.weighted)
        )
    if layers.tail_count:
        count = layers.tail_count
        rows = np.array(layers.tail.rows[:count], np.int64)
        lengths = np.array(layers.tail.lengths[:count], np.float32).T
        parts.append(Part(rows, lengths, layers.tail_live(), layers.tail, count, {}))
    return parts
