"""The database of a service, and the threads that ask it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from sennit.apps.http.errors import Refused

if TYPE_CHECKING:
    from sennit.apps.http.limits import Limits
    from sennit.engine import Database

AT_WORK: Final = 1
"""Threads that work at once. An interpreter runs one at a time anyhow, and each that also wants to makes every read of the
database a wait for its turn."""

HELD_UP: Final = 0.25
"""Seconds after which who is at work is thought to wait for something, a model or a lock, and the next one begins."""

T = TypeVar("T")


class Desk:
    """One database for all requests. The core is synchronous; here it is called from an event loop."""

    def __init__(self, db: Database, limits: Limits) -> None:
        self.db = db
        self.limits = limits
        self._workers = ThreadPoolExecutor(limits.threads, thread_name_prefix="sennit-http")
        self._waiters = ThreadPoolExecutor(limits.threads, thread_name_prefix="sennit-http-waits")
        self._lock = threading.Lock()
        self._taken = 0
        self._turns = threading.Semaphore(AT_WORK)

    async def run(self, work: Callable[[], T], *, waits: bool = False) -> T:
        """What `work` returns or raises, from a worker thread; refused when too many wait or it takes too long.

        Work that mostly `waits`, for a language model, keeps no other from its turn or its thread. A thread cannot be
        stopped: work that is given up keeps its place until it ends, so that a slow database makes the service refuse
        requests and not pile them up.
        """
        with self._lock:
            if self._taken >= self.limits.threads + self.limits.waiting:
                raise Refused(503, "Too many requests are waiting; try again soon.", {"retry-after": "1"})
            self._taken += 1
        try:
            future = self._waiters.submit(work) if waits else self._workers.submit(self._in_turn, work)
        except RuntimeError as error:
            self._done()
            raise Refused(503, "The service is shutting down.", {"retry-after": "5"}) from error
        future.add_done_callback(self._done)
        answer = asyncio.wrap_future(future)
        # Not wait_for: a TimeoutError could also be the work's own.
        done, _ = await asyncio.wait([answer], timeout=self.limits.seconds)
        if not done:
            answer.cancel()
            raise Refused(504, f"There was no answer within {self.limits.seconds:g} s.")
        return answer.result()

    async def close(self) -> None:
        """Wait for the threads; what has not begun is not begun any more."""
        for threads in (self._workers, self._waiters):
            await asyncio.to_thread(threads.shutdown, cancel_futures=True)

    def _in_turn(self, work: Callable[[], T]) -> T:
        mine = self._turns.acquire(timeout=HELD_UP)
        try:
            return work()
        finally:
            if mine:
                self._turns.release()

    def _done(self, _: object = None) -> None:
        with self._lock:
            self._taken -= 1
