"""Background work of an open database: the upkeep of its indexes, and vectors that are computed late."""

from __future__ import annotations

import atexit
import contextlib
import logging
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from sennit.errors import EmbeddingError, SennitError, SourceError, StoreClosed
from sennit.stores.contract import Backend, Cancelled, Embed, Model, Upkeep

log = logging.getLogger("sennit.store")

BACKPRESSURE_FACTOR: Final = 4
"""When the buffer holds this many times `flush_at` records, the writer flushes it itself, so that it stays short."""

MAX_SEGMENTS_DURING_LOAD: Final = 16
"""Up to this many segments stay unmerged during a bulk load. With the normal merge policy, a load of 300,000 records
would write each record six times and train its vector codes twice; this way it is once or twice. Every search visits
every segment, so the normal policy applies outside of bulk loads."""

LARGE_LOAD_RECORDS: Final = 2048
"""A bulk load of at least this many records flushes and merges before it returns."""

IDLE_SECONDS: Final = 3.0
"""After a pause this long, the segments are merged into one."""

RETRY_SECONDS: Final = 5.0
"""The pause after an embedding model did not answer."""

SERVER_POLL_SECONDS: Final = 30.0
"""How often an idle process looks whether an index on a server still has everything."""

WAIT_POLL_SECONDS: Final = 0.05
"""How often `wait` looks. It asks the database, because another process may compute the vectors."""

CLOSE_SECONDS: Final = 5.0
"""How long `close` waits for work in progress."""

EXIT_SECONDS: Final = 60.0
"""How long the interpreter's exit waits for it. A thread inside a model's native code would crash the process when
Python shuts down."""

EMBED_BATCH_TEXTS: Final = 64
"""Texts embedded at once. A local model takes seconds for more, without progress or a chance to stop."""

_running: weakref.WeakSet[IndexMaintainer] = weakref.WeakSet()
"""The maintainers that have started a thread."""


@atexit.register
def _close_all() -> None:
    for maintainer in list(_running):
        maintainer.close(EXIT_SECONDS)


class IndexMaintainer:
    """The background thread of one open store. It starts when there is work for the first time."""

    def __init__(
        self,
        backend: Backend,
        flush_at: int,
        embed: Embed,
        select_model: Callable[[], None] = lambda: None,
        *,
        background: bool = True,
    ) -> None:
        """`select_model` may have to wait for a server, so the background thread calls it."""
        self._background = background
        self._records = backend.records
        self._upkeep = backend.upkeep
        self._has_servers = bool(backend.servers)
        self._flush_at = flush_at
        self._embed = embed
        self._select_model = select_model
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._embedding = threading.Lock()
        """Keeps a foreground call and the background thread from computing the same vectors."""
        self._thread: threading.Thread | None = None
        self._unflushed = 0
        self._written = 0
        self._active_loads = 0
        self._attempts = 0
        """How often the background has tried to select a model and to compute late vectors."""
        self._unusable_model: str | None = None
        """A model that has pending vectors and that this process cannot use."""
        self.last_error: str | None = None
        """Why late vectors cannot be computed at present."""
        self._deferred: str | None = None
        """Why an index cannot be brought up to date at present."""

    def on_write(self, count: int) -> None:
        """Account for a committed write of `count` records. Errors here never fail the write."""
        self._unflushed += count
        self._written += count
        try:
            if self._unflushed >= BACKPRESSURE_FACTOR * self._flush_at and self._deferred is None:
                self.flush(self._flush_at)
            is_due = self._unflushed >= self._flush_at or self._has_servers
            if is_due or self._records.last_write_left_pending:
                self.wake()
        except (Cancelled, StoreClosed):
            return
        except SennitError as error:
            self._log_deferred(error)

    def wake(self) -> None:
        """Make the background thread look for work now; start it if needed."""
        with self._lock:
            if self._background and self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="sennit-maintenance", daemon=True)
                self._thread.start()
                _running.add(self)
        self._wake.set()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Stop the thread. It cancels work in progress, which a later process repeats."""
        self._stop.set()
        self._wake.set()
        for upkeep in self._upkeep:
            upkeep.cancel()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            # A model server may hold it up for longer. Then it finds the database closed, and ends.
            thread.join(seconds)

    def flush(self, at_least: int = 1, *, wait: bool = False) -> None:
        """Bring the indexes up to date where at least this many changes are missing.

        One whose server fails does not keep the others from it; the first error is raised at the end.
        """
        try:
            self._for_each(lambda upkeep: upkeep.flush(at_least, wait=wait))
        except SourceError:
            self._unflushed = 0
            raise
        self._unflushed = 0

    def _for_each(self, task: Callable[[Upkeep], None]) -> None:
        errors = []
        for upkeep in self._upkeep:
            try:
                task(upkeep)
            except SourceError as error:
                errors.append(error)
        if errors:
            raise errors[0]

    def merge(self, *, whole: bool = False, max_unmerged: int = 0, wait: bool = False) -> None:
        """Merge segments where there are more than `max_unmerged`; into one segment when `whole`."""
        self._for_each(lambda upkeep: upkeep.merge(whole=whole, max_unmerged=max_unmerged, wait=wait))

    @contextlib.contextmanager
    def bulk_load(self) -> Iterator[None]:
        """A block of many writes: a pause in it does not count as idle, and merges wait for its end.

        After a large load the next process finds few segments and a short buffer. A block that raises leaves the
        flush and the merge to the background thread, or to another process.
        """
        before = self._written
        with self._lock:
            self._active_loads += 1
        try:
            yield
        finally:
            with self._lock:
                self._active_loads -= 1
        if self._written - before < LARGE_LOAD_RECORDS:
            return
        try:
            self.flush(wait=True)
            self.merge(wait=True)
        except (Cancelled, StoreClosed):
            return
        except SennitError as error:
            self._log_deferred(error)

    def _run(self) -> None:
        idle = False
        while not self._stop.is_set():
            woken = self._wake.wait(self._pause(idle=idle))
            self._wake.clear()
            if self._stop.is_set():
                return
            loading = self._active_loads > 0
            idle = not woken and not loading
            try:
                self._keep_indexes(idle=idle, loading=loading)
                self._select_model()
                self.embed_pending()
            except (Cancelled, StoreClosed):
                return
            except EmbeddingError as error:
                self._log_embedding_error(error)
            except SennitError as error:
                self._log_deferred(error)
            except Exception:
                if self._stop.is_set():
                    return  # `close` has closed a connection that was in use.
                raise
            self._attempts += 1

    def _pause(self, *, idle: bool) -> float | None:
        """How long to wait for work."""
        if self.last_error or self._deferred:
            return RETRY_SECONDS
        if not idle:
            return IDLE_SECONDS
        return SERVER_POLL_SECONDS if self._has_servers else None

    def _keep_indexes(self, *, idle: bool, loading: bool) -> None:
        """Bring the indexes up to date. A server that fails is tried again later, and holds up nothing else."""
        tasks = [
            partial(self.flush, self._flush_at),
            partial(self.merge, whole=idle, max_unmerged=MAX_SEGMENTS_DURING_LOAD if loading else 0),
            *([partial(self._for_each, lambda upkeep: upkeep.rest())] if idle else []),
            partial(self._for_each, lambda upkeep: upkeep.purge()),
        ]
        failure = None
        for task in tasks:
            try:
                task()
            except SourceError as error:
                failure = error
        if failure is not None and str(failure) != self._deferred:
            self._log_deferred(failure)
        self._deferred = None if failure is None else str(failure)

    def _log_deferred(self, error: SennitError) -> None:
        # The indexes are caches: the next write or search does what was not done now.
        log.warning("maintenance of %s is deferred: %s", self._records.location, error)

    def _log_embedding_error(self, error: EmbeddingError) -> None:
        if self.last_error is None:
            log.warning("vectors are late: %s", error)
        self.last_error = str(error)

    def wait(self, timeout: float | None, progress: Callable[[int, int], None] | None) -> bool:
        """Wait until no vector is pending, whichever process computes it; whether that was so in time."""
        end = None if timeout is None else time.monotonic() + timeout
        before = self._attempts
        self.wake()
        while True:
            states = self._records.models.progress()
            pending = sum(state.pending for state in states)
            total = sum(state.total for state in states)
            if progress is not None:
                progress(total - pending, total)
            building = any(state.model.state == "building" for state in states)
            if states and not pending and not building:
                return True
            tried = self._attempts != before
            if tried and self.last_error is not None:
                raise EmbeddingError(self.last_error)
            if tried and not states:
                return True
            if tried and self._unusable_model is not None:
                raise EmbeddingError(
                    f"{pending:,} records lack a vector of the model {self._unusable_model}, which this process cannot "
                    "use; 'sennit doctor' says why"
                )
            left = WAIT_POLL_SECONDS if end is None else min(WAIT_POLL_SECONDS, end - time.monotonic())
            if left <= 0 or self._stop.wait(left):
                return False

    def embed_pending(self, progress: Callable[[Model, int, int], None] | None = None) -> None:
        """Compute the pending vectors, and activate a model once it has them all."""
        with self._embedding:
            self._embed_pending(progress)

    def _embed_pending(self, progress: Callable[[Model, int, int], None] | None) -> None:
        self._unusable_model = None
        for state in self._records.models.progress():
            done = self._embed_all(state.model, state.pending, progress) if state.pending else True
            building = state.model.state == "building"
            if done and building and self._records.models.activate_if_complete(state.model.number):
                log.warning("the embedding model is now %s", state.model.name)
        for upkeep in self._upkeep:
            upkeep.purge()

    def _embed_all(
        self, model: Model, pending: int, progress: Callable[[Model, int, int], None] | None
    ) -> bool:
        """Compute all pending vectors of a model; whether none is left."""
        done = 0
        while not self._stop.is_set():
            batch = self._records.models.pending_texts(model.number, EMBED_BATCH_TEXTS)
            if not batch:
                return True
            try:
                vectors = self._embed(model, [text for _, text in batch])
            except EmbeddingError as error:
                self._log_embedding_error(error)
                return False
            self.last_error = None
            if vectors is None:
                self._unusable_model = model.name
                return False
            pairs = zip((digest for digest, _ in batch), vectors, strict=True)
            self._records.models.add_late_vectors(model.number, dict(pairs))
            done += len(batch)
            if progress is not None:
                progress(model, min(done, pending), pending)
        return False
