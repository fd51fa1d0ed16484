"""A pool of worker processes that parse, chunk and embed files, one process for each CPU.

Parsers read untrusted input. If one crashes or hangs, its worker process ends, and only that file is lost.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from sennit.ingest import bounded_child
from sennit.ingest.file_reader import UnreadableFile
from sennit.ingest.languages import file_kind
from sennit.ingest.record_builder import (
    FileContent,
    FileRecords,
    IndexTask,
    InProcessBuilder,
    PortableModel,
    RecordBuilder,
)
from sennit.ingest.worker_protocol import decode_outcome, encode_contents, encode_task
from sennit.workers import Message, WorkerProcess

MIN_POOL_FILES: Final = 64
MIN_POOL_BYTES: Final = 1_000_000
"""Below either of these a pool does not pay off: each worker takes a third of a second of CPU time to start."""

FILE_TIMEOUT_SECONDS: Final = 60.0
"""For one file; the slowest file that is parsed at all takes about three seconds."""

CHILD_TIMEOUT_SECONDS: Final = (
    bounded_child.CPU_SECONDS * bounded_child.WALL_CLOCK_FACTOR + FILE_TIMEOUT_SECONDS
)
"""Longer than the timeout of a format that is read in a child of the worker, such as PDF."""

POLL_SECONDS: Final = 0.5
"""Interval between checks for workers past their deadline."""

MAX_WORKERS: Final = 8
"""A single process writes the records, and fewer workers already keep it busy."""


def choose_builder(
    task: IndexTask, sizes: Sequence[int], models: Callable[[], tuple[PortableModel, ...]]
) -> RecordBuilder:
    """A worker pool for many files, which also embeds with the models; this process for few."""
    if len(sizes) >= MIN_POOL_FILES and sum(sizes) >= MIN_POOL_BYTES:
        return WorkerPool(replace(task, models=models()))
    return InProcessBuilder(task)


class WorkerPool:
    """Worker processes that build records from files; a `RecordBuilder`."""

    group_size: Final = 16
    """A worker is idle while the thread that feeds it waits for the GIL, so requests hold several files."""

    def __init__(self, task: IndexTask, count: int | None = None) -> None:
        self._task = encode_task(task)
        self._count: Final = count or min(os.cpu_count() or 1, MAX_WORKERS)
        self.threads: Final = self._count + 2
        """Two more than workers, so that files are read and answers decoded while every worker is busy."""
        self._free: queue.LifoQueue[_PoolWorker | None] = queue.LifoQueue()
        for _ in range(self._count):
            # None is a worker that has not been started; _borrow_worker starts it.
            self._free.put(None)
        self._lock = threading.Lock()
        self._running: set[_PoolWorker] = set()
        self._closed = threading.Event()
        self._watchdog = threading.Thread(
            target=self._kill_late_workers, name="sennit-worker-watchdog", daemon=True
        )

    def build(self, contents: Sequence[FileContent]) -> list[FileRecords | UnreadableFile]:
        """Build the records of each file, in the same order."""
        answers: list[Message | UnreadableFile] = []
        while len(answers) < len(contents):
            # If a worker ends on a file, another worker takes the files after that one.
            with self._borrow_worker() as worker:
                answers += self._request(worker, contents[len(answers) :])
        return [decode_outcome(answer) if isinstance(answer, Message) else answer for answer in answers]

    def _request(
        self, worker: _PoolWorker | UnreadableFile, contents: Sequence[FileContent]
    ) -> Iterator[Message | UnreadableFile]:
        if isinstance(worker, UnreadableFile):
            yield from (worker for _ in contents)
            return
        worker.send(encode_contents(contents))
        for content in contents:
            has_child = file_kind(content.path)[0] in ("pdf", "document")
            answer = worker.receive(CHILD_TIMEOUT_SECONDS if has_child else FILE_TIMEOUT_SECONDS)
            if answer is not None:
                yield answer
                continue
            yield (
                UnreadableFile("interrupted", permanent=False)
                if self._closed.is_set()
                else UnreadableFile("the parser fails on this file (it crashes or does not finish)")
            )
            return

    @contextlib.contextmanager
    def _borrow_worker(self) -> Iterator[_PoolWorker | UnreadableFile]:
        """A worker that is ready, or the reason why there is none."""
        worker = self._free.get()
        try:
            if worker is None or worker.has_ended:
                self._discard(worker)
                worker = None
                worker = self._start_worker()
            yield worker or UnreadableFile(
                "the worker process that parses files does not start", permanent=False
            )
        except BaseException:
            # The worker may be in the middle of an answer, so it cannot be used again.
            self._discard(worker)
            worker = None
            raise
        finally:
            self._free.put(worker)

    def _start_worker(self) -> _PoolWorker | None:
        with self._lock:
            if self._closed.is_set():
                return None
            try:
                worker = _PoolWorker()
            except OSError:
                return None
            self._running.add(worker)
        worker.send(self._task)
        if worker.receive(FILE_TIMEOUT_SECONDS) is not None:
            return worker
        self._discard(worker)
        return None

    def _discard(self, worker: _PoolWorker | None) -> None:
        if worker is not None:
            worker.close()
            with self._lock:
                self._running.discard(worker)

    def _kill_late_workers(self) -> None:
        while not self._closed.wait(POLL_SECONDS):
            with self._lock:
                late = [worker for worker in self._running if worker.deadline < time.monotonic()]
            for worker in late:
                worker.kill()

    def __enter__(self) -> WorkerPool:
        self._watchdog.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the workers, even while they work."""
        with self._lock:
            self._closed.set()
            for worker in self._running:
                worker.kill()
        for freed in [self._free.get() for _ in range(self._count)]:
            self._discard(freed)
            # A thread that still waits for a worker gets None, and then an error.
            self._free.put(None)
        self._watchdog.join()


class _PoolWorker(WorkerProcess):
    """A worker with a deadline, used by one thread at a time."""

    def __init__(self) -> None:
        super().__init__("sennit.ingest.worker_main")
        self.deadline = math.inf
        """The time.monotonic() at which the watchdog kills the worker."""

    def send(self, message: Message) -> None:
        self.deadline = time.monotonic() + FILE_TIMEOUT_SECONDS
        super().send(message)

    def receive(self, seconds: float = FILE_TIMEOUT_SECONDS) -> Message | None:
        """Wait for the next message; None if the worker ended or missed the deadline."""
        self.deadline = time.monotonic() + seconds
        try:
            return super().receive()
        finally:
            self.deadline = math.inf
