"""The terms of many texts at once: what `count_terms` says of each, in arrays and without an object per term."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.analysis import raw_entry
from sennit.analysis._tokens import tokens


class Counted(NamedTuple):
    """Which term occurs in which document, and how often in each field; ascending by term, then by document."""

    terms: NDArray[np.uint64]
    positions: NDArray[np.int32]
    counts: tuple[NDArray[np.int64], ...]
    lengths: NDArray[np.float64]
    """[field, position]"""


def count_documents(fields: Sequence[Sequence[str]]) -> Counted:
    """Count documents that are given as one sequence of texts for each field."""
    documents = len(fields[0])
    numbers = _Numbers()
    found = [_numbered(texts, numbers) for texts in fields]
    table = _Table(numbers)
    parts = [table.counted(raws, owners, documents) for raws, owners in found]
    keys = parts[0][0]
    for others, _ in parts[1:]:
        keys = _with(keys, others)
    counts = []
    for own, times in parts:
        spread = times
        if len(own) != len(keys):
            spread = np.zeros(len(keys), np.int64)
            spread[np.searchsorted(keys, own)] = times
        counts.append(spread)
    lengths = np.stack(
        [np.bincount(owners, table.weights[raws], minlength=documents) for raws, owners in found]
    ).astype(np.float64)
    terms, positions = np.divmod(keys, max(documents, 1))
    return Counted(table.terms[terms], positions.astype(np.int32), tuple(counts), lengths)


def _with(keys: NDArray[np.int64], others: NDArray[np.int64]) -> NDArray[np.int64]:
    """The union of ascending keys with others, which as a rule are few and mostly among them: titles."""
    at = np.searchsorted(keys, others)
    new = np.ones(len(others), bool)
    inside = at < len(keys)
    new[inside] = keys[at[inside]] != others[inside]
    return np.insert(keys, at[new], others[new])


class _Numbers(dict[str, int]):
    """Raw token → its number, in order of first appearance."""

    def __missing__(self, raw: str) -> int:
        number = self[raw] = len(self)
        return number


def _numbered(texts: Iterable[str], numbers: _Numbers) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The tokens of the texts by number, and the position of the text that each is in."""
    found = [list(map(numbers.__getitem__, tokens(text))) for text in texts]
    sizes = np.fromiter(map(len, found), np.intp, len(found))
    raws = np.fromiter(chain.from_iterable(found), np.intp, int(sizes.sum()))
    return raws, np.repeat(np.arange(len(found)), sizes)


class _Table:
    """What the tokens of some documents stand for."""

    def __init__(self, numbers: _Numbers) -> None:
        entries = list(map(raw_entry, numbers))
        self.weights = np.fromiter((length for _, length, *_ in entries), np.float64, len(entries))
        self._sizes = np.fromiter((len(hashes) for hashes, *_ in entries), np.intp, len(entries))
        self._starts = np.cumsum(self._sizes) - self._sizes
        hashes = np.fromiter(
            chain.from_iterable(hashes for hashes, *_ in entries), np.uint64, int(self._sizes.sum())
        )
        self.terms, self._numbers = np.unique(hashes, return_inverse=True)

    def counted(
        self, raws: NDArray[np.intp], owners: NDArray[np.intp], documents: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ascending keys `term * documents + document`, and how often each occurs."""
        sizes = self._sizes[raws]
        ends = np.cumsum(sizes)
        at = np.repeat(self._starts[raws] - (ends - sizes), sizes)
        at += np.arange(len(at))
        keys = self._numbers[at] * documents
        keys += np.repeat(owners, sizes)
        # Sorting numbers is several times as fast as finding the order of terms.
        keys.sort()
        first = np.ones(len(keys), bool)
        first[1:] = keys[1:] != keys[:-1]
        starts = np.flatnonzero(first)
        return keys[starts], np.diff(starts, append=len(keys))
