"""Counts the terms of many documents at once: the results of `count_terms` as arrays, without an object per term."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import token_entry
from sennit.analysis.tokenizer import tokenize


class TermCounts(NamedTuple):
    """One row per pair of term and document, in ascending order by term and then by document."""

    terms: NDArray[np.uint64]
    positions: NDArray[np.int32]
    """The position of the document in the input."""
    counts: tuple[NDArray[np.int64], ...]
    """Per field, how often the term occurs in the document."""
    lengths: NDArray[np.float64]
    """[field, position]"""


def count_documents(fields: Sequence[Sequence[str]]) -> TermCounts:
    """Count the terms of documents. Each element of `fields` holds the texts of one field, one per document."""
    documents = len(fields[0])
    token_ids = _TokenIds()
    tokenized = [_tokenize_texts(texts, token_ids) for texts in fields]
    table = _TokenTable(token_ids)
    parts = [table.count(tokens, positions, documents) for tokens, positions in tokenized]
    keys = parts[0][0]
    for others, _ in parts[1:]:
        keys = _merge_keys(keys, others)
    counts = []
    for field_keys, field_counts in parts:
        spread = field_counts
        if len(field_keys) != len(keys):
            spread = np.zeros(len(keys), np.int64)
            spread[np.searchsorted(keys, field_keys)] = field_counts
        counts.append(spread)
    lengths = np.stack(
        [
            np.bincount(positions, table.weights[tokens], minlength=documents)
            for tokens, positions in tokenized
        ]
    ).astype(np.float64)
    terms, positions = np.divmod(keys, max(documents, 1))
    return TermCounts(table.terms[terms], positions.astype(np.int32), tuple(counts), lengths)


def _merge_keys(keys: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the union of two ascending arrays of keys. Fast if few of `others` (titles) are new."""
    at = np.searchsorted(keys, others)
    new = np.ones(len(others), bool)
    inside = at < len(keys)
    new[inside] = keys[at[inside]] != others[inside]
    return np.insert(keys, at[new], others[new])


class _TokenIds(dict[str, int]):
    """Raw token → its id, in order of first appearance."""

    def __missing__(self, raw: str) -> int:
        token_id = self[raw] = len(self)
        return token_id


def _tokenize_texts(texts: Iterable[str], token_ids: _TokenIds) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the token ids of all texts, and for each token the position of its text."""
    tokenized = [list(map(token_ids.__getitem__, tokenize(text))) for text in texts]
    sizes = np.fromiter(map(len, tokenized), np.intp, len(tokenized))
    tokens = np.fromiter(chain.from_iterable(tokenized), np.intp, int(sizes.sum()))
    return tokens, np.repeat(np.arange(len(tokenized)), sizes)


class _TokenTable:
    """The terms and lengths of all distinct tokens of the documents, as arrays."""

    def __init__(self, token_ids: _TokenIds) -> None:
        entries = list(map(token_entry, token_ids))
        self.weights = np.fromiter((length for _, length, *_ in entries), np.float64, len(entries))
        self._sizes = np.fromiter((len(hashes) for hashes, *_ in entries), np.intp, len(entries))
        self._starts = np.cumsum(self._sizes) - self._sizes
        hashes = np.fromiter(
            chain.from_iterable(hashes for hashes, *_ in entries), np.uint64, int(self._sizes.sum())
        )
        self.terms, self._term_ids = np.unique(hashes, return_inverse=True)

    def count(
        self, tokens: NDArray[np.intp], positions: NDArray[np.intp], documents: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the ascending keys `term * documents + document`, and how often each occurs."""
        sizes = self._sizes[tokens]
        ends = np.cumsum(sizes)
        at = np.repeat(self._starts[tokens] - (ends - sizes), sizes)
        at += np.arange(len(at))
        keys = self._term_ids[at] * documents
        keys += np.repeat(positions, sizes)
        # Sorting numbers is several times faster than argsort on terms.
        keys.sort()
        first = np.ones(len(keys), bool)
        first[1:] = keys[1:] != keys[:-1]
        starts = np.flatnonzero(first)
        return keys[starts], np.diff(starts, append=len(keys))
