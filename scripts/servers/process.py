"""A server process: started in a folder of its own, ready when a check says so, stopped or killed by its process id."""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar

from scripts.servers.common import ServerUnavailable, run_as

START_SECONDS: Final = 300.0
STOP_SECONDS: Final = 120.0
POLL_SECONDS: Final = 0.05
ANSWER_SECONDS: Final = 30.0
"""How long a server that listens may take to answer on a busy machine."""


class ServerProcess:
    """One process. `kill` and `start` may follow each other."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        folder: Path,
        is_ready: Callable[[], bool],
        environment: Mapping[str, str] | None = None,
        *,
        drop_rights: bool = True,
    ) -> None:
        self.name = name
        self.folder = folder
        self._command = list(command)
        self._is_ready = is_ready
        self._environment = {"PATH": os.environ.get("PATH", ""), "HOME": str(folder), **(environment or {})}
        self._rights = run_as() if drop_rights else {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def is_running(self) -> bool:
        """Whether the process has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self, *, wait: bool = True) -> None:
        """Start the process, and wait until it is ready."""
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=self._environment,
                start_new_session=True,
                **self._rights,
            )
        if wait:
            self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Wait until the server answers, or raise ServerUnavailable with the end of its log."""
        end = time.monotonic() + START_SECONDS
        while self.is_running and time.monotonic() < end:
            if self._is_ready():
                return
            threading.Event().wait(POLL_SECONDS)
        raise ServerUnavailable(f"{self.name} did not start: {self.log()[-2000:]}")

    def log(self) -> str:
        """What the server has written so far."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        """Ask the server to end."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End the process as a crash would."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, how)
            try:
                self._process.wait(timeout=STOP_SECONDS)
            except subprocess.TimeoutExpired:
                os.kill(self._process.pid, signal.SIGKILL)
                self._process.wait(timeout=STOP_SECONDS)
            self._process = None


class SingleServer:
    """A server of one process with a data folder of its own."""

    process: ServerProcess

    def start(self) -> None:
        """Start the server, and wait until it is ready."""
        self.process.start()

    def kill(self) -> None:
        """End the server as a crash would."""
        self.process.kill()

    def close(self) -> None:
        """Stop the server and delete its data."""
        self.process.kill()
        shutil.rmtree(self.process.folder, ignore_errors=True)


class Server(Protocol):
    """What the scripts of all servers have in common."""

    def start(self) -> None: ...

    def close(self) -> None:
        """Stop the server and delete its data."""
        ...


ServerT = TypeVar("ServerT", bound=Server)


@contextlib.contextmanager
def running(server: ServerT) -> Iterator[ServerT]:
    """A running server, deleted at the end of the block."""
    try:
        server.start()
        yield server
    finally:
        server.close()


def run_until_interrupted(server: Server, describe: Callable[[], str]) -> int:
    """Start a server, print how to reach it, and stop it on Ctrl-C."""
    with running(server):
        print(describe(), flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
    return 0


def answers(url: str) -> bool:
    """Whether a GET of a loopback address succeeds."""
    try:
        with urllib.request.urlopen(url, timeout=ANSWER_SECONDS) as response:
            return bool(response.status == 200)
    except (OSError, http.client.HTTPException):
        return False
