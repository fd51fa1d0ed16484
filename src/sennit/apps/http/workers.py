"""Several processes on one listening socket: an interpreter works on one core, and machines have more."""

from __future__ import annotations

import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
from dataclasses import dataclass
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, Final

from prometheus_client.multiprocess import mark_process_dead

import sennit
from sennit.apps.http.app import Options
from sennit.apps.http.logs import configure, event, log
from sennit.apps.http.metrics import SHARED
from sennit.apps.http.serving import answer
from sennit.apps.listening import url_of
from sennit.errors import SennitError, StoreError
from sennit.settings import load

LOOK_SECONDS: Final = 1.0
"""Between two looks at the workers, where none has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a worker needs to know."""

    path: Path
    options: Options
    quiet: bool = False
    verbose: int = 0


def serve_many(work: Work, listener: socket.socket, count: int) -> None:
    """Serve by so many processes until interrupted or terminated; one that dies is replaced."""
    crew = _Crew(work, listener, count)
    before = {number: signal.signal(number, crew.stop) for number in (signal.SIGINT, signal.SIGTERM)}
    event("started", url=url_of(listener), workers=count)
    try:
        # Its workers write their figures there, and each of them can tell the sums.
        with tempfile.TemporaryDirectory(prefix="sennit-figures-") as figures:
            os.environ[SHARED] = figures
            crew.run()
    finally:
        os.environ.pop(SHARED, None)
        for number, handler in before.items():
            signal.signal(number, handler)
        event("stopped")


class _Crew:
    """The workers of a service, and the process that looks after them."""

    def __init__(self, work: Work, listener: socket.socket, count: int) -> None:
        self._work = work
        self._listener = listener
        self._count = count
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[int, SpawnProcess] = {}
        """By what tells of their end."""
        self._stopping = False

    def stop(self, *_: Any) -> None:
        """Take no more connections, and have the workers finish what they have begun."""
        self._stopping = True
        self._listener.close()
        for worker in list(self._workers.values()):
            worker.terminate()

    def run(self) -> None:
        """Until all have ended, because they were told to or one of them cannot go on."""
        failed = None
        while self._workers or not self._stopping:
            while len(self._workers) < self._count and not self._stopping:
                self._start()
            if self._stopping:
                self.stop()  # also one that was being started when the signal came
            ended = wait(list(self._workers), LOOK_SECONDS)
            for end in [one for one in self._workers if one in ended]:
                worker = self._workers.pop(end)
                mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]
                if not self._stopping:
                    log.error("worker %s ended with %s", worker.pid, worker.exitcode)
                    # One that was killed is replaced. One that gave up would give up again.
                    if worker.exitcode is not None and worker.exitcode >= 0:
                        failed = worker
                        self.stop()
        if failed is not None:
            raise StoreError(f"A worker of the service gave up ({failed.exitcode}); the log says why.")

    def _start(self) -> None:
        worker = self._context.Process(target=_serve, args=(self._work, self._listener))
        worker.start()
        self._workers[worker.sentinel] = worker


def _serve(work: Work, listener: socket.socket) -> None:
    """The life of a worker."""
    configure(quiet=work.quiet, verbose=work.verbose)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        with sennit.open(work.path, settings=load()) as db, listener:
            answer(db, listener, work.options)
    except SennitError as error:
        log.error("a worker cannot go on: %s", error)
        sys.exit(1)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        # Nobody would be there to end it.
        signal.raise_signal(signal.SIGTERM)
