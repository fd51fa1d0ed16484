"""Background work on an embedded store: folding, merging, late vectors, and forgetting what is not needed."""

from __future__ import annotations

import atexit
import contextlib
import logging
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from sennit.errors import EmbeddingError, SennitError, StoreClosed, StoreError
from sennit.stores.embedded.layers import Cancelled
from sennit.stores.embedded.models import Model
from sennit.stores.embedded.store import EmbeddedStore

log = logging.getLogger("sennit.store")

STALL_AT: Final = 4
"""A writer folds by itself when this many times `fold_at` records wait, so that the tail stays short."""

COMING: Final = 16
"""Segments that are let be during a load. Merged one by one as they come, 300,000 records would be written to segments six
times and be coded twice; so it is one or two times. A search looks at each of them until then, which is why it is not so for
records that keep coming by themselves."""

MUCH: Final = 2048
"""Records after which a load does not leave to others what it has put off."""

IDLE_SECONDS: Final = 3.0
"""After a pause this long, the segments are merged into one."""

PURGE_AT: Final = 1000
"""Removals kept before those that no index needs are forgotten."""

RETRY_SECONDS: Final = 5.0
"""The pause after an embedding model did not answer."""

CLOSE_SECONDS: Final = 5.0
"""How long closing waits for work in progress."""

EXIT_SECONDS: Final = 60.0
"""How long the end of the program waits for it: a thread that is inside a model's native code when Python goes
away takes the process down with it."""

EMBED_BATCH: Final = 64
"""Texts embedded at once: a local model takes seconds for more, in which nothing can be stopped or seen."""

Embed = Callable[[Model, Sequence[str]], Sequence[bytes] | None]
"""Vectors in half precision, or None when this process does not have the model."""


_keepers: weakref.WeakSet[Keeper] = weakref.WeakSet()


@atexit.register
def _end_all() -> None:
    for keeper in list(_keepers):
        keeper.close(EXIT_SECONDS)


class Keeper:
    """One background thread per open store, started when there is first something to do."""

    def __init__(
        self, store: EmbeddedStore, fold_at: int, embed: Embed, agree: Callable[[], None] = lambda: None
    ) -> None:
        """`agree` settles which model is wanted; it may have to wait for a server, and so happens here."""
        self._store = store
        self._fold_at = fold_at
        self._embed = embed
        self._agree = agree
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._embedding = threading.Lock()
        """A foreground call and the background thread do not make the same vectors twice."""
        self._thread: threading.Thread | None = None
        self._unfolded = 0
        self._written = 0
        self._loading = 0
        """How many loads are under way."""
        self.last_error: str | None = None
        """Why late vectors are not being made, while they are not."""

    def wrote(self, count: int) -> None:
        """Called after a write of so many records; the write is confirmed, so nothing here can fail it."""
        self._unfolded += count
        self._written += count
        try:
            if self._unfolded >= STALL_AT * self._fold_at:
                self.fold(self._fold_at)
            if self._unfolded >= self._fold_at or self._store.waiting:
                self.nudge()
        except (Cancelled, StoreClosed):
            return
        except SennitError as error:
            self._put_off(error)

    def nudge(self) -> None:
        """Look for work soon."""
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="sennit-keeper", daemon=True)
                self._thread.start()
                _keepers.add(self)
        self._wake.set()

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Stop; work in progress is given up, and done another time."""
        self._stop.set()
        self._wake.set()
        self._store.stop()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            # A model on a server may keep it for longer; it finds the database closed then, and ends.
            thread.join(seconds)

    def fold(self, at_least: int = 1, *, wait: bool = False) -> None:
        """Fold the tails of all indexes into segments, and read what is new for filters."""
        with self._writing_indexes():
            for index in self._store.live_indexes():
                index.fold(self._store.database, at_least=at_least, wait=wait)
            self._store.keep_fields()
        self._unfolded = 0

    def settle(self, *, whole: bool = False, most: int = 0, wait: bool = False) -> None:
        """Merge segments, if there are more than `most`."""
        with self._writing_indexes():
            for index in self._store.live_indexes():
                index.settle(self._store.database, whole=whole, most=most, wait=wait)

    @contextlib.contextmanager
    def loading(self) -> Iterator[None]:
        """While much is written: a pause is then no idleness, and merging waits for the end of the block.

        After it, the next process finds few segments and no long tail. A block that raises leaves that to others.
        """
        before = self._written
        with self._lock:
            self._loading += 1
        try:
            yield
        finally:
            with self._lock:
                self._loading -= 1
        if self._written - before < MUCH:
            return
        try:
            self.fold(wait=True)
            self.settle(wait=True)
        except (Cancelled, StoreClosed):
            return
        except SennitError as error:
            self._put_off(error)

    def _run(self) -> None:
        settled = False
        while not self._stop.is_set():
            woken = self._wake.wait(RETRY_SECONDS if self.last_error else None if settled else IDLE_SECONDS)
            self._wake.clear()
            if self._stop.is_set():
                return
            try:
                self.fold(self._fold_at)
                loading = self._loading > 0
                settled = not woken and not loading
                self.settle(whole=settled, most=COMING if loading else 0)
                if settled:
                    self._store.rest()
                with self._writing_indexes():
                    self._store.purge(PURGE_AT)
                self._agree()
                self.embed_backlog()
            except (Cancelled, StoreClosed):
                return
            except EmbeddingError as error:
                self._late(error)
            except SennitError as error:
                self._put_off(error)

    @contextlib.contextmanager
    def _writing_indexes(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"The indexes of {self._store.folder} cannot be written ({error}). Nothing is lost and searches "
                "stay right; free some space, or check the permissions of the folder 'index'."
            ) from error

    def _put_off(self, error: SennitError) -> None:
        # The indexes are caches: what cannot be done now is done at the next write or search.
        log.warning("background work on %s was put off: %s", self._store.folder or "memory", error)

    def _late(self, error: EmbeddingError) -> None:
        if self.last_error is None:
            log.warning("vectors are late: %s", error)
        self.last_error = str(error)

    def embed_backlog(self, progress: Callable[[Model, int, int], None] | None = None) -> None:
        """Make the vectors that records wait for, and switch to a model once it has them all."""
        with self._embedding:
            self._embed_backlog(progress)

    def _embed_backlog(self, progress: Callable[[Model, int, int], None] | None) -> None:
        for state in self._store.models.progress():
            done = self._fill(state.model, state.pending, progress) if state.pending else True
            if done and state.model.state == "building" and self._store.models.switch(state.model.number):
                log.warning("the embedding model is now %s", state.model.name)
        for number in self._store.models.sweep():
            self._store.drop_index(number)

    def _fill(self, model: Model, pending: int, progress: Callable[[Model, int, int], None] | None) -> bool:
        done = 0
        while not self._stop.is_set():
            batch = self._store.models.backlog(model.number, EMBED_BATCH)
            if not batch:
                return True
            try:
                vectors = self._embed(model, [text for _, text in batch])
            except EmbeddingError as error:
                self._late(error)
                return False
            self.last_error = None
            if vectors is None:
                return False
            pairs = zip((digest for digest, _ in batch), vectors, strict=True)
            self._store.models.fill(model.number, dict(pairs))
            done += len(batch)
            if progress is not None:
                progress(model, min(done, pending), pending)
        return False
