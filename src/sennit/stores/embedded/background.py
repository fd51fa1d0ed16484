"""The background sample: the vectors of records that were chosen by the hash of their text.

The choice depends on the texts that the audience may see and on nothing else: not on the order of writes, not on how
the index is segmented, and not on hidden records. So the same data gives the same sample on every machine.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sennit.filters import Filter
from sennit.stores.embedded.selection import Rows
from sennit.stores.sql.connection import Connection

MAX_CACHED_SAMPLES: Final = 64
"""Audiences whose samples are cached."""

RARE_SHARE: Final = 1 / 64
"""An audience that sees less than this share of the records has its rows read, instead of all hashes in order."""


class _Sample(NamedTuple):
    seq: int
    rows: tuple[int, ...]
    mean: NDArray[np.float32]
    """The mean of the sampled vectors. Its dot product with a query is the mean cosine."""
    size: int


class BackgroundSamples:
    """The samples of one store, by model and audience. Safe to use from several threads."""

    def __init__(self) -> None:
        self._samples: dict[tuple[int, Filter], _Sample] = {}
        self._lock = threading.Lock()

    def mean_vector(
        self,
        model: int,
        audience: Filter,
        seq: int,
        choose: Callable[[], tuple[int, ...]],
        vectors: Callable[[Rows], NDArray[np.float32]],
    ) -> tuple[NDArray[np.float32], int]:
        """Return the mean of the sampled vectors and their number; both are computed again after a change."""
        known = self._samples.get((model, audience))
        if known is not None and known.seq == seq:
            return known.mean, known.size
        rows = choose()
        if known is not None and known.rows == rows and known.size == len(rows):
            sample = known._replace(seq=seq)
        else:
            found = vectors(np.array(rows, np.int64))
            found = found[found.any(axis=1)]
            # In double precision, the mean does not depend on the order of the rows to any digit that matters.
            mean = found.mean(axis=0, dtype=np.float64) if len(found) else np.zeros(found.shape[1])
            sample = _Sample(seq, rows, mean.astype(np.float32), len(found))
        with self._lock:
            if len(self._samples) >= MAX_CACHED_SAMPLES:
                self._samples.clear()
            self._samples[model, audience] = sample
        return sample.mean, sample.size


def choose_rows(
    connection: Connection, count: int, visible: Callable[[Rows], NDArray[np.bool_]]
) -> tuple[int, ...]:
    """Return a row for each of the `count` visible texts with the smallest hashes."""
    chosen: dict[bytes, int] = {}
    last: tuple[bytes, int] = (b"", -1)
    batch = 2 * count
    while True:
        found = connection.execute(
            "SELECT embedding_hash, row FROM records WHERE (embedding_hash, row) > (?, ?) "
            "ORDER BY embedding_hash, row LIMIT ?",
            (*last, batch),
        ).fetchall()
        if not found:
            return tuple(chosen.values())
        passing = visible(np.array([row for _, row in found], np.int64)).tolist()
        for (digest, row), passes in zip(found, passing, strict=True):
            if passes and bytes(digest) not in chosen:
                if len(chosen) == count:
                    return tuple(chosen.values())
                chosen[bytes(digest)] = row
        last = (bytes(found[-1][0]), found[-1][1])
        batch = min(2 * batch, 65_536)


def choose_among(connection: Connection, count: int, rows: Rows) -> tuple[int, ...]:
    """Return the same for an audience that sees only these few rows."""
    dialect = connection.dialect
    found = connection.execute(
        f"SELECT embedding_hash, row FROM records WHERE row {dialect.in_rows} ORDER BY embedding_hash, row",
        (dialect.encode_rows(rows.tolist()),),
    )
    chosen: dict[bytes, int] = {}
    for digest, row in found:
        chosen.setdefault(bytes(digest), row)
    return tuple(list(chosen.values())[:count])
