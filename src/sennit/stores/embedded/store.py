"""The store: SQL as the source of truth, and indexes on this machine that are derived from it."""

from __future__ import annotations

import contextlib
import logging
import shutil
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, TypeVar

from sennit.errors import SennitError, StoreError
from sennit.filters import EVERYTHING, Filter
from sennit.records import Record
from sennit.stores.codec import record_from_row
from sennit.stores.contract import Model
from sennit.stores.embedded import field_index, graph, keyword_index, vector_index
from sennit.stores.embedded.audiences import AudienceViews, KeywordState
from sennit.stores.embedded.background import BackgroundSamples
from sennit.stores.embedded.bm25 import CorpusStatistics, collect_statistics
from sennit.stores.embedded.field_cache import FieldCache
from sennit.stores.embedded.field_index import FieldIndex
from sennit.stores.embedded.files import SqlFileManifest
from sennit.stores.embedded.graph import GraphIndex
from sennit.stores.embedded.index_view import IndexView
from sennit.stores.embedded.keyword_index import IdIndex, KeywordIndex
from sennit.stores.embedded.models import (
    SELECT_PENDING,
    ModelRegistry,
    current_models,
    has_pending_vectors,
)
from sennit.stores.embedded.ranges import is_delete_applied, is_visible_at, read_origin, read_version
from sennit.stores.embedded.segment_builder import SegmentBuilder
from sennit.stores.embedded.segment_reader import SegmentReader, open_readers
from sennit.stores.embedded.segment_store import DiskSegmentStore, MemorySegmentStore, SegmentStore
from sennit.stores.embedded.segmented_index import SegmentedIndex
from sennit.stores.embedded.server_indexes import applied_by_all, record_applied
from sennit.stores.embedded.snapshot import EmbeddedSnapshot
from sennit.stores.embedded.transaction import EmbeddedTransaction
from sennit.stores.embedded.vector_index import VectorBuffer, VectorIndex
from sennit.stores.embedded.vector_segment import VectorSegment
from sennit.stores.graph_rows import NEVER
from sennit.stores.sql.connection import Connection, SqlPool, VersionChanged
from sennit.stores.sql.records import SELECT
from sennit.stores.sql.state import SqlState

log = logging.getLogger("sennit.store")

T = TypeVar("T")

MIN_TOMBSTONES_TO_PURGE: Final = 1000
"""Tombstones kept before those that every index has applied are purged."""

MIN_SHARED_TOMBSTONES_TO_PURGE: Final = 100_000
"""The same where other machines have indexes of their own: one that has not applied a purged tombstone reads its records
again."""


class EmbeddedStore:
    """The records of one database, and its indexes in a folder of this machine."""

    def __init__(
        self,
        pool: SqlPool,
        index_folder: Path | None,
        *,
        exact_vectors: bool = False,
        has_words: bool = True,
        has_vectors: bool = True,
    ) -> None:
        """The indexes stay in memory when `index_folder` is None.

        `exact_vectors`: a search for a restricted audience scans vectors exactly, without codes trained on all of them.
        Without `has_words` or `has_vectors`, a server searches them, and this machine keeps no index of them.
        """
        self.has_words = has_words
        self.has_vectors = has_vectors
        self.pool = pool
        self.index_folder = index_folder
        self._exact_vectors = exact_vectors
        self.notices: list[str] = []
        """What was repaired since the store was opened."""
        self.models = ModelRegistry(self.pool)
        self.files = SqlFileManifest(self.pool)
        with self.pool.read() as connection:
            self._origin = read_origin(connection)
        identity = keyword_index.segment_identity(self._origin)
        self._builder: SegmentBuilder | None = None
        if has_words and index_folder is not None and pool.target is not None:
            self._builder = SegmentBuilder(pool.target, index_folder / KeywordIndex.name, identity)
        kind = KeywordIndex if has_words else IdIndex
        self.keyword = kind(self._segment_store(kind.name, identity), self._report, self._builder)
        self._vectors: dict[int, VectorIndex] = {}
        self.fields = FieldIndex(
            self._segment_store("fields", f"{field_index.FORMAT} {self._origin:x}"), self._report
        )
        self._graph_index = GraphIndex()
        self._field_cache = FieldCache()
        self._backgrounds = BackgroundSamples()
        self._lock = threading.Lock()
        self._keyword_state: (
            tuple[
                IndexView[keyword_index.KeywordSegment, keyword_index.KeywordBuffer],
                list[SegmentReader],
                CorpusStatistics,
            ]
            | None
        ) = None
        self._audiences = AudienceViews()
        self._model: Model | None = None
        """The active model at the last search. Model numbers are never reused."""
        self.last_write_left_pending = False
        """Whether any record lacked a vector after the last write."""
        graph.ensure_tables(self.pool)
        self._reset_newer_indexes()

    @property
    def location(self) -> str:
        """Where the records are, for messages. Holds no password."""
        return self.pool.location

    def close(self) -> None:
        """Stop all work and close the connections. A second call does nothing."""
        self.cancel()
        self.pool.close()

    # Reading.

    @contextlib.contextmanager
    def snapshot(self, audience: Filter = EVERYTHING) -> Iterator[EmbeddedSnapshot]:
        """A consistent snapshot: every earlier write that the audience may see, and nothing else."""
        with self.pool.read() as connection:
            yield self._open_snapshot(connection, audience)

    def with_snapshot(self, audience: Filter, work: Callable[[EmbeddedSnapshot], T]) -> T:
        """Run `work` with a snapshot, and return its result. It may run twice, and then its first result is dropped.

        On Postgres it runs with the last known version, which is confirmed by the statement that reads the records:
        a search costs one round trip while nobody writes.
        """
        attempt = self.pool.read_ahead()
        if attempt is not None:
            with contextlib.suppress(VersionChanged), attempt as connection:
                try:
                    result = work(self._open_snapshot(connection, audience))
                except SennitError:
                    # It counts only if it is about the current version.
                    connection.confirm()
                    raise
                connection.confirm()
                return result
        # Not `snapshot`: every search enters this block, and a generator takes as long as the rest of it.
        with self.pool.read() as connection:
            return work(self._open_snapshot(connection, audience))

    def _open_snapshot(self, connection: Connection, audience: Filter) -> EmbeddedSnapshot:
        # The indexes are locked while the transaction begins, so that all of them match its read version.
        opened = [one for one in self.indexes() if one.is_open]
        for one in opened:
            one.lock.acquire()
        try:
            seq, purged, number = read_version(connection)
            model = self._active_model(connection, number)
            keyword = self._keyword_at(connection, seq, purged)
            index = self.vector_index(model) if model and self.has_vectors else None
            view = index.view_at(connection, seq, purged) if index is not None and index in opened else None
        finally:
            for one in opened:
                one.lock.release()

        def vector() -> IndexView[VectorSegment, VectorBuffer] | None:
            return view or (index.view_at(connection, seq, purged) if index else None)

        exact_vectors = self._exact_vectors and audience != EVERYTHING
        audience, keyword = self._audiences.view_for(
            audience, keyword, lambda: self.fields.bitmap(connection, audience, seq)
        )
        return EmbeddedSnapshot(
            connection,
            seq,
            purged,
            keyword,
            vector,
            self.fields,
            model,
            lambda: self.pool.abandon(connection),
            self._graph_index,
            self._field_cache,
            self._backgrounds,
            audience,
            exact_vectors=exact_vectors,
            has_vectors=self.has_vectors,
        )

    @contextlib.contextmanager
    def state(self) -> Iterator[SqlState]:
        """The state of the repositories, in one version."""
        with self.pool.read() as connection:
            yield SqlState(connection)

    def get(self, ids: Iterable[str]) -> dict[str, Record]:
        """The records that exist, by id."""
        out = {}
        with self.pool.read() as connection:
            for record_id in ids:
                values = connection.execute(f"{SELECT} WHERE id = ?", (record_id,)).fetchone()
                if values:
                    out[record_id] = record_from_row(values)
        return out

    def iter_records(self) -> Iterator[Record]:
        """All records of one snapshot, ordered by id."""
        with self.pool.read_separately() as connection:
            for values in connection.stream(f"{SELECT} ORDER BY id"):
                yield record_from_row(values)

    def count(self) -> int:
        """The number of records."""
        with self.pool.read() as connection:
            (count,) = connection.execute("SELECT count(*) FROM records").fetchone()
            return int(count)

    # Writing.

    @contextlib.contextmanager
    def transaction(self) -> Iterator[EmbeddedTransaction]:
        """One write: durable when the block ends, without effect when it raises. Other writers wait for its end."""
        with self.pool.write() as connection:
            transaction = EmbeddedTransaction(connection)
            yield transaction
            transaction.finish()
            read_pending = connection.read_later(SELECT_PENDING)
        self.last_write_left_pending = read_pending() is not None

    def set_applied(self, index: str, number: int) -> None:
        """Record that an index of another kind has applied all changes up to a number."""
        with self.pool.write() as connection:
            record_applied(connection, index, number)

    # Upkeep.

    def flush(self, at_least: int = 1, *, wait: bool = False) -> None:
        """Flush the buffers of all indexes to segments, and update the field index."""
        with self._translate_os_errors():
            self._delete_unused_indexes()
            for index in self.live_indexes():
                index.flush(self.pool, at_least=at_least, wait=wait)
            with self.pool.read() as connection:
                self.fields.refresh_access_fields(connection, read_version(connection).seq)

    def merge(self, *, whole: bool = False, max_unmerged: int = 0, wait: bool = False) -> None:
        """Merge segments where there are more than `max_unmerged`; into one segment when `whole`."""
        with self._translate_os_errors():
            for index in self.live_indexes():
                index.merge_segments(self.pool, whole=whole, max_unmerged=max_unmerged, wait=wait)
            if whole or wait:
                # The end of a large load, or a pause. What is left unwritten, every new process would read again.
                with self.pool.read() as connection:
                    seq = read_version(connection).seq
                    self.fields.refresh_access_fields(connection, seq, write=True)

    def purge(self) -> None:
        """Delete the tombstones that every index has applied, and the vectors of retired models."""
        with self._translate_os_errors():
            self.purge_tombstones(
                MIN_SHARED_TOMBSTONES_TO_PURGE if self.pool.is_shared else MIN_TOMBSTONES_TO_PURGE
            )
            for number in self.models.delete_retired():
                self.drop_index(number)

    def rest(self) -> None:
        """Stop the worker process that builds segments; the next flush starts another."""
        if self._builder is not None:
            self._builder.close()

    def cancel(self) -> None:
        """Cancel flushes and merges in progress; a later process repeats them."""
        for index in self.indexes():
            index.stop_requested.set()
        self.rest()

    @contextlib.contextmanager
    def _translate_os_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"The indexes of {self.location} cannot be written ({error}). No record is lost and searches "
                f"stay correct. Free some space, or check the permissions of {self.index_folder}."
            ) from error

    # Indexes.

    def indexes(
        self,
    ) -> list[SegmentedIndex[keyword_index.KeywordSegment, keyword_index.KeywordBuffer] | VectorIndex]:
        """Every segmented index that this process has opened."""
        with self._lock:
            return [self.keyword, *self._vectors.values()]

    def vector_index(self, model: Model) -> VectorIndex:
        """The vector index of a model."""
        with self._lock:
            index = self._vectors.get(model.number)
            if index is None:
                segments = self._segment_store(
                    f"vector-{model.number}", f"{vector_index.FORMAT} {model.fingerprint} {self._origin:x}"
                )
                index = VectorIndex(segments, self._report, model.number, model.dimensions)
                self._vectors[model.number] = index
            return index

    def live_indexes(self) -> list[SegmentedIndex[Any, Any]]:
        """The segmented indexes of the current models: the ones that searches use, now or after a model change."""
        models = self.models.current() if self.has_vectors else ()
        return [self.keyword, *(self.vector_index(model) for model in models)]

    def has_pending_vectors(self) -> bool:
        """Whether any record lacks a vector."""
        with self.pool.read() as connection:
            return has_pending_vectors(connection)

    def purge_tombstones(self, min_count: int) -> int:
        """Delete the tombstones that every index has applied, if there are at least `min_count`.

        Returns the number deleted.
        """
        with self.pool.read() as connection:
            (count,) = connection.execute("SELECT count(*) FROM tombstones").fetchone()
        if count < min_count:
            return 0
        with contextlib.ExitStack() as stack:
            # A segment begun before a delete must not be published after its tombstone is gone.
            indexes = self.live_indexes()
            if not all(stack.enter_context(index.lock_maintenance()) for index in indexes):
                return 0
            return self._purge_applied(indexes)

    def _purge_applied(self, indexes: Sequence[SegmentedIndex[Any, Any]]) -> int:
        segments = [index.segment_infos() for index in indexes]
        with self.pool.write() as connection:
            # A server's index reads the feed, so what it has not applied yet stays.
            applied = applied_by_all(connection)
            tombstones = connection.execute(
                "SELECT seq, row FROM tombstones WHERE seq <= ? ORDER BY seq",
                (NEVER if applied is None else applied,),
            ).fetchall()
            # In order, up to the first tombstone that is still needed. So a segment has applied every purged
            # tombstone, or it is known to be too old and is rebuilt.
            done = list(takewhile(lambda one: is_delete_applied(one[0], one[1], segments), tombstones))
            if done:
                for index in indexes:
                    index.advance_tombstones(done[-1][0])
                connection.executemany("DELETE FROM tombstones WHERE seq = ?", ((seq,) for seq, _ in done))
                connection.execute("UPDATE state SET value = ? WHERE key = 'purged'", (done[-1][0],))
        return len(done)

    def drop_index(self, number: int) -> None:
        """Delete the vector index of a retired model."""
        with self._lock:
            self._vectors.pop(number, None)
        if self.index_folder is not None:
            shutil.rmtree(self.index_folder / f"vector-{number}", ignore_errors=True)

    def _delete_unused_indexes(self) -> None:
        """Delete what an earlier binding left behind: an index of words or vectors that a server searches now."""
        if self.index_folder is None:
            return
        unused = [] if self.has_vectors else [*self.index_folder.glob("vector-*")]
        unused.append(self.index_folder / (IdIndex if self.has_words else KeywordIndex).name)
        for folder in unused:
            shutil.rmtree(folder, ignore_errors=True)

    def _keyword_at(self, connection: Connection, seq: int, purged: int) -> KeywordState:
        view = self.keyword.view_at(connection, seq, purged)
        cached = self._keyword_state
        if cached is None or cached[0] is not view:
            parts = open_readers(view)
            cached = self._keyword_state = (view, parts, collect_statistics(parts))
        return cached[1], cached[2]

    def _active_model(self, connection: Connection, number: int) -> Model | None:
        cached = self._model
        if number and (cached is None or cached.number != number):
            cached = self._model = next((m for m in current_models(connection) if m.number == number), None)
        return cached if number else None

    def _segment_store(self, name: str, identity: str) -> SegmentStore:
        if self.index_folder is None:
            return MemorySegmentStore()
        return DiskSegmentStore(self.index_folder / name, identity)

    def _reset_newer_indexes(self) -> None:
        """Reset indexes that contain later changes than the primary store, which was replaced by an older copy."""
        for index in self.live_indexes():
            infos = index.segment_infos()
            with self.pool.read() as connection:
                seq = read_version(connection).seq
            if not is_visible_at(infos, seq):
                self._report(f"the {index.name} index is rebuilt from the records: it is newer than they are")
                index.reset()
        infos = self.fields.segment_infos()
        with self.pool.read() as connection:
            seq = read_version(connection).seq
        if not is_visible_at(infos, seq):
            self.fields.drop(info.field for info in infos)

    def _report(self, notice: str) -> None:
        if notice not in self.notices:
            log.warning("%s: %s", self.location, notice)
            self.notices.append(notice)
