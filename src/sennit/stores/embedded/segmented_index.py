"""A derived index as a log-structured merge design: immutable segments, and an in-memory buffer for the newest records.

The keyword index and the vector index share this mechanism. The next search after a write reads the new records into the
buffer, so they are visible at once. A buffer that has grown is flushed to a segment, and segments are merged so that few
remain. A search works on an immutable `IndexView`, which later changes never touch.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Generic

from sennit.stores.contract import Cancelled
from sennit.stores.embedded.arrays import Arrays, CorruptFile, MissingFile
from sennit.stores.embedded.index_view import BufferT, IndexView, SegmentT, SegmentView
from sennit.stores.embedded.ranges import (
    deleted_rows,
    is_visible_at,
    plan_merges,
    read_version,
    split_range,
    uncovered_ranges,
)
from sennit.stores.embedded.segment_store import SegmentInfo, SegmentStore
from sennit.stores.sql.connection import Connection, SqlPool

log = logging.getLogger("sennit.store")

FLUSH_CHUNK_RECORDS: Final = 16_384
"""Records flushed to one segment at most; this bounds the memory of a rebuild."""

MAX_UNSTREAMED_CHANGES: Final = 4096
"""Changes read in one piece. More are streamed, which takes a server two more round trips but no more memory."""

Generation = tuple[int, int]
NO_GENERATION: Final[Generation] = (-1, -1)
"""Equals no published generation, so that the next search reads the manifest again."""


class _ManifestReplaced(Exception):
    """A listed segment is gone because another manifest has been published."""


class SegmentedIndex(ABC, Generic[SegmentT, BufferT]):
    """One derived index of one database, as this process sees it."""

    name: str

    def __init__(self, segments: SegmentStore, report: Callable[[str], None]) -> None:
        self._store = segments
        self._report = report
        self.lock = threading.RLock()
        """Held while the view advances. A transaction that begins under this lock is never behind the view."""
        self._generation: Generation = NO_GENERATION
        self._open_segments: dict[str, SegmentT] = {}
        self.stop_requested = threading.Event()
        """Set when the database is closed: long work stops, and a later process does it."""
        self._view: IndexView[SegmentT, BufferT] | None = None

    # What each kind of index defines.

    @abstractmethod
    def new_buffer(self) -> BufferT: ...

    @abstractmethod
    def load(self, connection: Connection, low: int, high: int) -> Iterable[Any]:
        """Read the live records of the changes low < n <= high from the primary store."""

    @abstractmethod
    def build(self, items: Iterable[Any]) -> SegmentT:
        """Build a segment from records as `load` returns them."""

    @abstractmethod
    def merge_views(self, views: Sequence[SegmentView[SegmentT]]) -> SegmentT:
        """Build one segment from the live records of several, in their order."""

    @abstractmethod
    def from_arrays(self, arrays: Arrays) -> SegmentT:
        """Open a segment from its stored arrays."""

    def count_unflushed(self, connection: Connection, low: int, high: int) -> int:
        """About how many records `load` would return."""
        found = connection.execute("SELECT count(*) FROM records WHERE row > ? AND row <= ?", (low, high))
        return int(found.fetchone()[0])

    def build_externally(self, low: int, high: int, unflushed: int) -> SegmentInfo | None:  # noqa: ARG002
        """Have a worker process build and write the segment of the changes low < n <= high; None where it cannot.

        `unflushed` is the number of records in the whole flush.
        """
        return None

    def exclude_indexed(
        self,
        items: Iterable[Any],
        since: int,  # noqa: ARG002
        segments: Iterable[SegmentT],  # noqa: ARG002
        buffered: Container[int],  # noqa: ARG002
    ) -> Iterable[Any]:
        """The items that neither the segments nor the buffer hold; rows after `since` are in neither."""
        return items

    # Reading.

    def view_at(
        self, connection: Connection, seq: int, purged: int, *, refresh: bool = False
    ) -> IndexView[SegmentT, BufferT]:
        """The index with everything up to change `seq`, which is what the connection's transaction sees."""
        view = self._view
        if view is not None and view.seq == seq and not refresh:
            return view
        with self.lock:
            while True:
                with contextlib.suppress(_ManifestReplaced):
                    return self._advance(connection, seq, purged)

    def _advance(self, connection: Connection, seq: int, purged: int) -> IndexView[SegmentT, BufferT]:
        view = self._view
        if view is not None and view.seq > seq:
            # Another thread has advanced the view. This transaction sees an older version, so it gets its own view.
            return self._open_view(connection, seq, purged, self.segment_infos())
        if view is None or view.seq < purged:
            view = self._adopt(connection, seq, purged, self._store.generation(), self.segment_infos())
        elif (generation := self._store.generation()) != self._generation and is_visible_at(
            infos := self.segment_infos(), seq
        ):
            view = self._adopt(connection, seq, purged, generation, infos)
        elif view.seq < seq:
            view = self._catch_up(connection, view, seq)
        self._view = view
        return view

    def _adopt(
        self,
        connection: Connection,
        seq: int,
        purged: int,
        generation: Generation,
        infos: Sequence[SegmentInfo],
    ) -> IndexView[SegmentT, BufferT]:
        """Open the published segments. A manifest newer than this transaction is read again by the next search."""
        view = self._open_view(connection, seq, purged, infos)
        # Only now: if opening fails, the old view stays, and a flush must not publish its segments as the current ones.
        self._generation = generation if is_visible_at(infos, seq) else NO_GENERATION
        self._drop_unlisted(infos)
        return view

    def _drop_unlisted(self, infos: Sequence[SegmentInfo]) -> None:
        """Release the segments that the manifest no longer lists."""
        listed = {info.file for info in infos}
        self._open_segments = {
            file: segment for file, segment in self._open_segments.items() if file in listed
        }

    @property
    def is_open(self) -> bool:
        """Whether this process has searched it."""
        return self._view is not None

    def _catch_up(
        self, connection: Connection, view: IndexView[SegmentT, BufferT], seq: int
    ) -> IndexView[SegmentT, BufferT]:
        segments = [segment_view.segment for segment_view in view.segments]
        deleted = deleted_rows(connection, view.seq, seq)
        items = self.load(connection, view.seq, seq)
        try:
            for item in self.exclude_indexed(items, view.seq, segments, view.buffer.positions):
                view.buffer.append(item)
        except BaseException:
            # The buffer may hold records that no view counts. Read again, they would be in it twice.
            self._view = None
            raise
        return view.advance(seq, deleted)

    def _current_segments(
        self, connection: Connection, seq: int, purged: int
    ) -> Sequence[SegmentView[SegmentT]]:
        """The published segments, without reading the records that they do not cover."""
        with self.lock:
            view = self._view
            if view is not None and view.seq >= purged and self._store.generation() == self._generation:
                return view.segments
            return self._read_published(connection, seq, purged)

    def _read_published(
        self, connection: Connection, seq: int, purged: int
    ) -> Sequence[SegmentView[SegmentT]]:
        while True:
            infos = self.segment_infos()
            with contextlib.suppress(_ManifestReplaced):
                segments = self._open_listed(connection, seq, purged, infos)
                self._drop_unlisted(infos)
                return segments

    def _open_view(
        self, connection: Connection, seq: int, purged: int, infos: Sequence[SegmentInfo]
    ) -> IndexView[SegmentT, BufferT]:
        views = self._open_listed(connection, seq, purged, infos)
        segments = [view.segment for view in views]
        since = max((view.info.high for view in views), default=0)
        buffer = self.new_buffer()
        for low, high in uncovered_ranges([view.info for view in views], seq):
            items = self.load(connection, low, high)
            for item in self.exclude_indexed(items, since, segments, buffer.positions):
                buffer.append(item)
        return IndexView(seq, views, buffer, len(buffer.rows))

    def _open_listed(
        self, connection: Connection, seq: int, purged: int, infos: Sequence[SegmentInfo]
    ) -> tuple[SegmentView[SegmentT], ...]:
        deleted = deleted_rows(connection, 0, seq)
        views = []
        for info in infos:
            if not is_visible_at((info,), seq):
                # It was published after this transaction began: this one view reads its records into the buffer.
                continue
            try:
                if info.deletes_applied < purged:
                    raise CorruptFile(
                        f"{info.file} is older than the records: it still holds deleted records whose "
                        "tombstones are purged"
                    )
                segment = self._open_segments.get(info.file)
                if segment is None:
                    segment = self._read_segment(info)
            except CorruptFile as error:
                if isinstance(error, MissingFile) and info not in self.segment_infos():
                    raise _ManifestReplaced from error
                self._report(f"part of the {self.name} index is rebuilt from the records: {error}")
                continue
            views.append(SegmentView(segment, info).without(deleted))
            self._open_segments[info.file] = segment
        return tuple(views)

    def _read_segment(self, info: SegmentInfo) -> SegmentT:
        arrays = self._store.read(info)
        try:
            segment = self.from_arrays(arrays)
        except (LookupError, TypeError, ValueError, RuntimeError) as error:
            raise CorruptFile(f"{info.file} is not a segment of this index: {error!r}") from error
        if len(segment.rows) != info.count:
            raise CorruptFile(f"{info.file} holds {len(segment.rows)} records instead of {info.count}")
        return segment

    def segment_infos(self) -> tuple[SegmentInfo, ...]:
        """The published segments."""
        try:
            return self._store.infos()
        except CorruptFile as error:
            self._report(f"the {self.name} index is rebuilt from the records: {error}")
            return ()

    # Flushing and merging.

    def flush(self, database: SqlPool, *, at_least: int = 1, wait: bool = False) -> bool:
        """Write the records that no segment covers to segments, if there are `at_least` so many.

        Returns False when nothing was flushed.
        """
        with self._store.exclusive("flush", wait=wait) as acquired:
            if not acquired:
                return False
            with database.read() as connection:
                seq, purged, _ = read_version(connection)
                views = self._current_segments(connection, seq, purged)
                infos, segments = [view.info for view in views], [view.segment for view in views]
                uncovered = uncovered_ranges(infos, seq)
                unflushed = sum(self.count_unflushed(connection, low, high) for low, high in uncovered)
                if unflushed < at_least:
                    return False
                for low, high in uncovered:
                    for start, stop in split_range(connection, low, high, FLUSH_CHUNK_RECORDS):
                        if (info := self.build_externally(start, stop, unflushed)) is not None:
                            infos += [info] if info.count else []
                            continue
                        if self.stop_requested.is_set():
                            raise Cancelled
                        since = max((info.high for info in infos), default=0)
                        items = self.load(connection, start, stop)
                        segment = self.build(self.exclude_indexed(items, since, segments, ()))
                        if len(segment.rows):
                            infos.append(self._write(segment, start, stop, seq))
                            segments.append(segment)
            self._store.publish(sorted(infos, key=lambda info: info.low))
        self._refresh_view(database)
        return True

    def merge_segments(
        self, database: SqlPool, *, whole: bool = False, max_unmerged: int = 0, wait: bool = False
    ) -> bool:
        """Merge segments until few are left, or one when `whole`; False when there was nothing to merge.

        Up to `max_unmerged` segments stay unmerged.
        """
        with self._store.exclusive("merge", wait=wait) as acquired:
            if not acquired:
                return False
            with database.read() as connection:
                with self.lock:
                    seq, purged, _ = read_version(connection)
                    if self._view is None:
                        views = self._read_published(connection, seq, purged)
                    else:
                        views = self.view_at(connection, seq, purged, refresh=True).segments
                groups = self._contiguous_groups(connection, views)
            runs = [
                run for group in groups for run in plan_merges(group, whole=whole, max_unmerged=max_unmerged)
            ]
            for run in runs:
                infos = [view.info for view in run]
                merged = self._write(self.merge_views(run), infos[0].low, infos[-1].high, seq)
                self._replace(infos, merged)
                log.debug("merged %d segments of the %s index: %d records", len(run), self.name, merged.count)
        if runs:
            self._refresh_view(database)
        return bool(runs)

    def _contiguous_groups(
        self, connection: Connection, views: Sequence[SegmentView[SegmentT]]
    ) -> list[list[SegmentView[SegmentT]]]:
        """The segments, split where records between two of them are in neither.

        A segment merged across such a gap would claim to cover those records.
        """
        groups: list[list[SegmentView[SegmentT]]] = []
        for view in views:
            if groups:
                covered = max(other.info.high for other in groups[-1])
                missing = self.load(connection, covered, view.info.low) if covered < view.info.low else ()
                if next(iter(missing), None) is None:
                    groups[-1].append(view)
                    continue
            groups.append([view])
        return groups

    def _write(self, segment: SegmentT, low: int, high: int, deletes_applied: int) -> SegmentInfo:
        info = self._store.write(
            segment.to_arrays(), low=low, high=high, deletes_applied=deletes_applied, count=len(segment.rows)
        )
        with self.lock:
            self._open_segments[info.file] = segment
        return info

    def _replace(self, old: Sequence[SegmentInfo], new: SegmentInfo) -> None:
        """Publish a merged segment in place of its inputs, unless the manifest has changed under it."""
        with self._store.exclusive("flush", wait=True):
            infos = self.segment_infos()
            others = [info for info in infos if info not in old]
            overlaps = any(info.low < new.high and new.low < info.high for info in others)
            if len(others) + len(old) == len(infos) and not overlaps:
                others += [new] if new.count else []
                self._store.publish(sorted(others, key=lambda info: info.low))

    def _refresh_view(self, database: SqlPool) -> None:
        if self._view is None:
            # This process has not searched yet, so it need not read the unflushed records.
            return
        with database.read() as connection, self.lock:
            seq, purged, _ = read_version(connection)
            self.view_at(connection, seq, purged, refresh=True)

    @contextlib.contextmanager
    def lock_maintenance(self) -> Iterator[bool]:
        """Keep everybody from flushing and merging; yields False at once when somebody does."""
        with self._store.exclusive("flush") as flush, self._store.exclusive("merge") as merge:
            yield flush and merge

    def reset(self) -> None:
        """Drop all segments: their records are then read from the primary store."""
        with self._store.exclusive("flush", wait=True):
            self._store.publish(())

    def advance_tombstones(self, seq: int) -> None:
        """Record that every segment has applied all deletes up to `seq`; the caller holds `lock_maintenance`."""
        infos = self.segment_infos()
        if any(info.deletes_applied < seq for info in infos):
            self._store.publish(
                [replace(info, deletes_applied=max(info.deletes_applied, seq)) for info in infos]
            )
