"""Ranges of change numbers: which ones segments cover, which deletes they have applied, and which segments to merge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from sennit.stores.embedded.segment_store import SegmentInfo
from sennit.stores.sql.connection import Connection

MERGE_RATIO: Final = 0.25
"""A segment is merged into its predecessor when it has at least a quarter of its size. During continuous writes this
leaves four or five segments at 100,000 records, each of which a search visits, and one when the writes stop. A ratio of
a tenth would leave three, but a bulk load of 90,000 records would write each record seven times; a ratio of a half
writes each three times."""

MAX_DEAD_SHARE: Final = 0.25
"""A segment is rewritten when more than a quarter of its records are deleted."""


class MergeCandidate(Protocol):
    """A segment, some of whose records may be deleted."""

    @property
    def info(self) -> SegmentInfo: ...

    @property
    def live(self) -> object | None: ...

    @property
    def live_count(self) -> int: ...


CandidateT = TypeVar("CandidateT", bound=MergeCandidate)


class ReadVersion(NamedTuple):
    """What a search must know about the version of the database that its transaction sees."""

    seq: int
    """The last change number."""
    purged: int
    """The change up to which tombstones have been purged."""
    model: int
    """The number of the active embedding model, 0 while there is none."""


def read_version(connection: Connection) -> ReadVersion:
    """The version that the connection's transaction sees."""
    return ReadVersion._make(connection.version())


def read_origin(connection: Connection) -> int:
    """A random number that identifies the database."""
    (origin,) = connection.execute("SELECT value FROM state WHERE key = 'origin'").fetchone()
    return int(origin)


def is_visible_at(infos: Iterable[SegmentInfo], seq: int) -> bool:
    """Whether the segments reflect no change after `seq`, neither an added nor a deleted record."""
    return all(info.high <= seq and info.deletes_applied <= seq for info in infos)


def is_delete_applied(seq: int, row: int, indexes: Sequence[Sequence[SegmentInfo]]) -> bool:
    """Whether no segment of any index still holds the row that the change `seq` deleted."""
    return all(
        info.deletes_applied >= seq for infos in indexes for info in infos if info.low < row <= info.high
    )


def uncovered_ranges(infos: Sequence[SegmentInfo], seq: int) -> list[tuple[int, int]]:
    """The ranges low < n <= high up to `seq` that no segment covers."""
    ranges = []
    covered = 0
    for info in sorted(infos, key=lambda info: info.low):
        if info.low > covered:
            ranges.append((covered, min(info.low, seq)))
        covered = max(covered, info.high)
    if covered < seq:
        ranges.append((covered, seq))
    return ranges


def deleted_rows(connection: Connection, low: int, high: int) -> NDArray[np.int64]:
    """The rows deleted by the changes low < n <= high."""
    found = connection.execute("SELECT row FROM tombstones WHERE seq > ? AND seq <= ?", (low, high))
    return np.fromiter((row for (row,) in found), np.int64)


def split_range(connection: Connection, low: int, high: int, size: int) -> Iterator[tuple[int, int]]:
    """The range as consecutive ranges of at most `size` records each."""
    while True:
        found = connection.execute(
            "SELECT row FROM records WHERE row > ? AND row < ? ORDER BY row LIMIT 1 OFFSET ?",
            (low, high, size - 1),
        ).fetchone()
        if found is None:
            yield low, high
            return
        yield low, found[0]
        low = found[0]


def plan_merges(
    segments: Sequence[CandidateT], *, whole: bool = False, max_unmerged: int = 0
) -> list[list[CandidateT]]:
    """The merge policy: runs of adjacent segments, each of which becomes one segment.

    `whole` merges everything into one segment. Up to `max_unmerged` segments stay unmerged.
    """
    if len(segments) <= max_unmerged:
        return []
    if whole:
        has_dead = any(segment.live is not None for segment in segments)
        return [list(segments)] if len(segments) > 1 or has_dead else []
    runs: list[list[CandidateT]] = []
    for segment in segments:
        runs.append([segment])
        while len(runs) > 1 and _live_count(runs[-1]) >= MERGE_RATIO * _live_count(runs[-2]):
            last = runs.pop()
            runs[-1].extend(last)
    return [run for run in runs if len(run) > 1 or _needs_rewrite(run[0])]


def _live_count(run: Sequence[MergeCandidate]) -> int:
    return sum(segment.live_count for segment in run)


def _needs_rewrite(segment: MergeCandidate) -> bool:
    return segment.live_count < (1 - MAX_DEAD_SHARE) * segment.info.count
