"""A real Chroma server, for the tests and for trying things out.

`python -m scripts.servers.chroma` starts it and prints its address; Ctrl-C stops it.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from scripts.servers.common import ServerUnavailable, free_port, temporary_folder
from scripts.servers.process import ServerProcess, SingleServer, answers, run_until_interrupted


class ChromaProcess(SingleServer):
    """One server with its own data folder and port. `kill` and `start` may follow each other."""

    def __init__(self) -> None:
        program = Path(sys.executable).parent / "chroma"
        if find_spec("chromadb") is None or not program.exists():
            raise ServerUnavailable("chromadb is not installed: pip install 'sennit[chroma]'")
        self.port = free_port()
        folder = temporary_folder("chroma")
        command = [
            *(str(program), "run", "--path", str(folder / "data")),
            *("--host", "127.0.0.1", "--port", str(self.port)),
        ]
        self.process = ServerProcess(
            "Chroma",
            command,
            folder,
            lambda: answers(f"{self.url}/api/v2/heartbeat"),
            {"ANONYMIZED_TELEMETRY": "False"},
            # A program of this Python environment, which another user may not be allowed to read.
            drop_rights=False,
        )

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}"


def main() -> int:
    """Start a server and print its address."""
    server = ChromaProcess()
    return run_until_interrupted(server, lambda: server.url)


if __name__ == "__main__":
    sys.exit(main())
