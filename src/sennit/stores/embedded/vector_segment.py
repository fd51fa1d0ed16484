"""The vectors of one segment: found by their codes where they are many, by scans where they or the allowed are few."""

from __future__ import annotations

from collections import OrderedDict
from threading import Event, Lock
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sennit.stores.embedded.arrays import Arrays
from sennit.stores.embedded.coded import Coded
from sennit.stores.embedded.layer import Segment
from sennit.stores.embedded.products import Coarse, Compact, Half, Vectors, products, similarity, top
from sennit.stores.embedded.selection import Mask, Rows, Selection

CODED_FROM: Final = 8192
CODED_PASSING: Final = 32_768
"""Below this many vectors a scan is as fast as codes, and exact; where codes would not last, so many are scanned for a while."""

COPIED: Final = 16_384
COPY_AT: Final = 2
WORTH: Final = 0.75
COPIES: Final = 65_536
COPY_CLOSER: Final = 2
"""Where a filter lets so few pass, they are copied side by side in bytes when it comes the second time, and scanned; of the nearest
of these, twice as many as wanted, the vectors themselves are looked at. That is faster than what must be looked for all
over; unless nearly all pass. All copies of a segment together hold 65,536 vectors at most, 16 MB at 256 dimensions."""

WIDE: Final = 256
WIDE_CLOSER: Final = 2.0
MARGIN: Final = 1.5
"""Where of so many nearest of all, by half more than are wanted should pass a filter, these are looked at first. Twice as
many are looked at closer: only the nearest of them are wanted."""

MOST: Final = 0.05
"""Who wants more than this share of what passes is served by a scan."""

SAMPLE: Final = 256
MISSED: Final = 3
MISSED_SHARE: Final = 0.2
"""A filtered search is judged by a sample of what passes the filter: it has lost its way when of those that are nearer
than the last one found, so many and so great a share were not found."""


Near = tuple[NDArray[np.intp], NDArray[np.float32]]
"""Positions, and how near each is."""


class VectorSegment(Segment):
    """Vectors by position, with codes of them when they are many."""

    def __init__(self, rows: Rows, vectors: Compact, coded: Coded | None) -> None:
        self.rows = rows
        self._vectors = vectors
        self._coded = coded
        self._copies: OrderedDict[Selection, Coarse] = OrderedDict()
        self._lock = Lock()
        self._wide: tuple[bytes, NDArray[np.intp]] = (b"", np.empty(0, np.intp))

    @classmethod
    def over(
        cls,
        rows: Rows,
        half: Half,
        stopping: Event,
        like: VectorSegment | None = None,
        *,
        passing: bool = False,
    ) -> VectorSegment:
        """A new segment; `like` is one that holds the first of the vectors, and has done part of the work.

        One that is `passing` will soon be merged into an older one, and is worth less trouble.
        """
        vectors = Compact(half)
        if len(rows) < (CODED_PASSING if passing else CODED_FROM):
            return cls(rows, vectors, None)
        return cls(rows, vectors, Coded.over(vectors, stopping, like._coded if like is not None else None))

    @classmethod
    def revived(cls, arrays: Arrays) -> VectorSegment:
        """A segment from its arrays."""
        # Everything is copied, so that the file need not stay in memory beside it.
        rows, vectors = np.array(arrays["rows"]), Compact(arrays["vectors"])
        if "codes" not in arrays:
            return cls(rows, vectors, None)
        reach, measured = arrays["reach"].tolist()
        return cls(rows, vectors, Coded.revived(arrays["codes"], reach, int(measured), vectors))

    def arrays(self) -> Arrays:
        out: dict[str, NDArray[Any]] = {"rows": self.rows, "vectors": self._vectors.half}
        if self._coded is not None:
            out["codes"] = self._coded.codes()
            out["reach"] = np.array([self._coded.reach, self._coded.measured])
        return out

    def part(self, live: Mask | None) -> tuple[Rows, Half]:
        """What lives of it."""
        half = self._vectors.half
        return (self.rows, half) if live is None else (self.rows[live], half[live])

    def at(self, positions: NDArray[np.intp]) -> Vectors:
        """Some of the vectors."""
        return self._vectors.at(positions)

    def near(self, query: Vectors, k: int, allowed: Selection | None, *, exact: bool = False) -> Near:
        """The k nearest vectors among the allowed, about them if not `exact`, in no order."""
        if allowed is not None and allowed.count == len(self.rows):
            allowed = None
        if allowed is not None and 0 < allowed.count <= COPIED and not exact:
            among = self._among_copied(query, k, allowed)
            if among is not None:
                return among
        found = self._nearest(query, k, allowed, exact=exact)
        return found, similarity(self.at(found), query)

    def _nearest(self, query: Vectors, k: int, allowed: Selection | None, *, exact: bool) -> NDArray[np.intp]:
        passing = len(self.rows) if allowed is None else allowed.count
        if not passing:
            return np.empty(0, np.intp)
        if self._coded is None or exact or k > MOST * passing:
            return self._vectors.nearest(query, k, allowed)
        if allowed is None:
            found, _ = self._coded.nearest(query, k)
            return found if len(found) == k else self._vectors.nearest(query, k)
        among = self._among_wide(query, k, allowed)
        if among is not None:
            return among
        found, scores = self._coded.nearest(query, k, allowed)
        if len(found) < k or self._missed(found, scores[-1], query, allowed):
            return self._vectors.nearest(query, k, allowed)
        return found

    def _among_wide(self, query: Vectors, k: int, allowed: Selection) -> NDArray[np.intp] | None:
        """The k nearest of the allowed, where they are among the nearest of all.

        Those are kept: a search of several collections asks for the same in each of them."""
        if MARGIN * k * len(self.rows) > WIDE * allowed.count:
            return None
        assert self._coded is not None
        asked, found = self._wide
        if asked != (key := query.tobytes()):
            found, _ = self._coded.nearest(query, WIDE, closer=WIDE_CLOSER)
            self._wide = (key, found)
        passing = found[allowed.mask[found]]
        return passing[:k] if len(passing) >= k else None

    def _among_copied(self, query: Vectors, k: int, allowed: Selection) -> Near | None:
        """The k nearest of the allowed and all that tie with the last, by a copy of the allowed if there is one."""
        copy = self._copy(allowed)
        if copy is None:
            return None
        positions = allowed.positions
        if COPY_CLOSER * k < len(positions):
            positions = positions[copy.nearest(query, COPY_CLOSER * k)]
        scores = similarity(self.at(positions), query)
        best = top(scores, k)
        # Where all of them tie, there may be more that do.
        if len(best) == len(positions) < allowed.count:
            return None
        return positions[best], scores[best]

    def _copy(self, allowed: Selection) -> Coarse | None:
        """The allowed vectors side by side; made when a filter comes again, and kept while there is room."""
        with self._lock:
            copy = self._copies.get(allowed)
            if copy is not None:
                self._copies.move_to_end(allowed)
                return copy
            allowed.asked += 1
            if allowed.asked < COPY_AT or allowed.count > WORTH * len(self.rows):
                return None
        copy = Coarse(self._vectors.half[allowed.positions])
        with self._lock:
            self._copies[allowed] = copy
            while sum(map(len, self._copies.values())) > COPIES:
                self._copies.popitem(last=False)
        return copy

    def _missed(
        self, found: NDArray[np.intp], farthest: np.float32, query: Vectors, allowed: Selection
    ) -> bool:
        """Whether the search has lost its way, as it does where all that passes the filter is far from the query.

        A sample of what passes shows it: what is nearer than the last one found must itself be found."""
        if allowed.sample is None:
            positions = allowed.positions[:: max(1, allowed.count // SAMPLE)]
            allowed.sample = (positions, self.at(positions))
        sample, vectors = allowed.sample
        nearer = sample[products(vectors, query) > farthest]
        missed = np.count_nonzero(~np.isin(nearer, found))
        return bool(missed >= max(MISSED, MISSED_SHARE * len(nearer)))
