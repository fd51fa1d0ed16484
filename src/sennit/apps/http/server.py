"""Runs the service until it is stopped: in this process, or in several worker processes on one listening socket."""

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
from typing import TYPE_CHECKING, Any, Final

from prometheus_client.multiprocess import mark_process_dead

import sennit
from sennit.apps.http.app import HttpOptions, make_app
from sennit.apps.http.logs import configure_logging, log, log_event
from sennit.apps.http.metrics import MULTIPROCESS_DIR
from sennit.apps.http.protocol import BoundedHttpProtocol
from sennit.apps.sockets import run_server, socket_url
from sennit.errors import SennitError, StoreError
from sennit.settings import load_settings

if TYPE_CHECKING:
    from sennit.engine import Database

MAX_CONNECTIONS: Final = 1000
"""Open connections at once. Further ones get a 503 from uvicorn."""

KEEP_ALIVE_SECONDS: Final = 30
"""How long an idle connection stays open."""

SHUTDOWN_GRACE_SECONDS: Final = 5
"""How long the shutdown waits for requests beyond their own timeout."""

POLL_SECONDS: Final = 1.0
"""Interval between two checks of the worker processes if none has exited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerConfig:
    """What a worker process needs to start."""

    database: Path | str
    """A folder or a connection string. It reaches the worker through a pipe, because it may hold a password."""
    options: HttpOptions
    quiet: bool = False
    verbose: int = 0


def serve(db: Database, listener: socket.socket, options: HttpOptions) -> None:
    """Serve from this process until SIGINT or SIGTERM. Requests in flight are finished first."""
    log_event("started", url=socket_url(listener))
    try:
        _run(db, listener, options)
    finally:
        log_event("stopped")


def serve_with_workers(config: WorkerConfig, listener: socket.socket, count: int) -> None:
    """Serve from several processes until SIGINT or SIGTERM. The interpreter lock confines each process to one core."""
    supervisor = _Supervisor(config, listener, count)
    previous = {number: signal.signal(number, supervisor.stop) for number in (signal.SIGINT, signal.SIGTERM)}
    log_event("started", url=socket_url(listener), workers=count)
    try:
        # The workers write their metrics to this directory, and each of them can report the sums.
        with tempfile.TemporaryDirectory(prefix="sennit-metrics-") as metrics_dir:
            os.environ[MULTIPROCESS_DIR] = metrics_dir
            supervisor.run()
    finally:
        os.environ.pop(MULTIPROCESS_DIR, None)
        for number, handler in previous.items():
            signal.signal(number, handler)
        log_event("stopped")


def _run(db: Database, listener: socket.socket, options: HttpOptions) -> None:
    """Serve without logging start and stop."""
    run_server(
        make_app(db, options),
        listener,
        protocol=BoundedHttpProtocol,
        event_loop="asyncio" if sys.platform == "win32" else "uvloop",  # uvloop does not exist for Windows
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=int(options.limits.timeout_seconds) + SHUTDOWN_GRACE_SECONDS,
    )


class _Supervisor:
    """Starts the worker processes, and replaces one that is killed."""

    def __init__(self, config: WorkerConfig, listener: socket.socket, count: int) -> None:
        self._config = config
        self._listener = listener
        self._count = count
        self._multiprocessing = multiprocessing.get_context("spawn")
        self._workers: dict[int, SpawnProcess] = {}
        """By sentinel, the handle that becomes ready when the process exits."""
        self._stopping = False

    def stop(self, *_: Any) -> None:
        """Accept no more connections, and let the workers finish their requests."""
        self._stopping = True
        self._listener.close()
        for worker in list(self._workers.values()):
            worker.terminate()

    def run(self) -> None:
        """Run until all workers have exited. Raises StoreError if one of them failed."""
        failed = None
        while self._workers or not self._stopping:
            while len(self._workers) < self._count and not self._stopping:
                self._start_worker()
            if self._stopping:
                self.stop()  # also a worker that was starting when the signal arrived
            exited = wait(list(self._workers), POLL_SECONDS)
            for sentinel in [known for known in self._workers if known in exited]:
                worker = self._workers.pop(sentinel)
                mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]
                if not self._stopping:
                    log.error("worker %s exited with %s", worker.pid, worker.exitcode)
                    # A negative code means that the worker was killed, so it is replaced. A worker that exited by
                    # itself would fail again.
                    if worker.exitcode is not None and worker.exitcode >= 0:
                        failed = worker
                        self.stop()
        if failed is not None:
            raise StoreError(f"A worker process failed with exit code {failed.exitcode}; see the log.")

    def _start_worker(self) -> None:
        worker = self._multiprocessing.Process(target=_worker_main, args=(self._config, self._listener))
        worker.start()
        self._workers[worker.sentinel] = worker


def _worker_main(config: WorkerConfig, listener: socket.socket) -> None:
    """The entry point of a worker process."""
    configure_logging(quiet=config.quiet, verbose=config.verbose)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    try:
        with sennit.open(config.database, settings=load_settings()) as db, listener:
            _run(db, listener, config.options)
    except SennitError as error:
        log.error("worker failed: %s", error)
        sys.exit(1)


def _exit_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        # Nothing else would stop this worker.
        signal.raise_signal(signal.SIGTERM)
