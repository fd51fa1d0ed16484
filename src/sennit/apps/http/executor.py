"""Runs calls of the synchronous database in threads, with a bounded queue and a timeout."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from sennit.apps.http.errors import HttpError

if TYPE_CHECKING:
    from sennit.apps.http.limits import Limits
    from sennit.engine import Database

MAX_RUNNING_THREADS: Final = 1
"""Threads that run at once. The interpreter lock lets only one run anyway, and each further runnable thread makes every
database read wait for the lock."""

TURN_WAIT_SECONDS: Final = 0.25
"""How long a thread waits for its turn. After that, the running thread is assumed to be blocked on a model or a lock."""

T = TypeVar("T")


class DatabaseExecutor:
    """One database for all requests, called from the event loop through worker threads."""

    def __init__(self, db: Database, limits: Limits) -> None:
        self.db = db
        self.limits = limits
        self._cpu_pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="sennit-http")
        self._io_pool = ThreadPoolExecutor(limits.threads, thread_name_prefix="sennit-http-io")
        self._lock = threading.Lock()
        self._pending = 0
        self._turns = threading.Semaphore(MAX_RUNNING_THREADS)

    async def run(self, work: Callable[[], T], *, io_bound: bool = False) -> T:
        """Run `work` in a thread and return its result. Refuses with 503 if the queue is full, and 504 on timeout.

        `io_bound` work, which mostly waits for a language model, has a pool of its own and takes no turn. A thread
        cannot be stopped: work that timed out keeps its place in the queue until it ends. So a slow database leads to
        refused requests and not to an ever longer queue.
        """
        with self._lock:
            if self._pending >= self.limits.threads + self.limits.max_queued:
                raise HttpError(503, "Too many requests are queued; try again soon.", {"retry-after": "1"})
            self._pending += 1
        try:
            future = (
                self._io_pool.submit(work) if io_bound else self._cpu_pool.submit(self._run_in_turn, work)
            )
        except RuntimeError as error:
            self._release()
            raise HttpError(503, "The service is shutting down.", {"retry-after": "5"}) from error
        future.add_done_callback(self._release)
        result = asyncio.wrap_future(future)
        # Not asyncio.wait_for: its TimeoutError could not be distinguished from one that the work raises.
        done, _ = await asyncio.wait([result], timeout=self.limits.timeout_seconds)
        if not done:
            result.cancel()
            raise HttpError(504, f"The request did not finish within {self.limits.timeout_seconds:g} s.")
        return result.result()

    async def close(self) -> None:
        """Wait for running threads. Queued work is cancelled."""
        for pool in (self._cpu_pool, self._io_pool):
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)

    def _run_in_turn(self, work: Callable[[], T]) -> T:
        has_turn = self._turns.acquire(timeout=TURN_WAIT_SECONDS)
        try:
            return work()
        finally:
            if has_turn:
                self._turns.release()

    def _release(self, _: object = None) -> None:
        with self._lock:
            self._pending -= 1
