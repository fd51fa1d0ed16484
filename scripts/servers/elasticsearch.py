"""A real Elasticsearch of one node or several, for the tests and for trying things out.

`python -m scripts.servers.elasticsearch [NODES]` starts one and prints the addresses of its nodes; Ctrl-C stops it.

Its packages have the server and its HTTP module. The modules for scripts and for `GET /` are in none.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from scripts.servers.opensearch import OpenSearchCluster, OpenSearchNode, install_packages
from scripts.servers.process import run_until_interrupted

PACKAGES: Final = Path(__file__).with_suffix(".json")
PROGRAM: Final = Path(__file__).with_name("ElasticsearchNode.java")


class ElasticsearchNode(OpenSearchNode):
    """One node with its own folder and ports. `kill` and `start` may follow each other."""

    product = "elasticsearch"
    first_managers = "cluster.initial_master_nodes"

    def program(self) -> list[str]:
        """Java compiles the small main class in memory when it starts."""
        copy = (
            self.folder / PROGRAM.name
        )  # The user that servers run as may not be allowed to read this folder.
        copy.write_text(PROGRAM.read_text())
        copy.chmod(0o644)
        return [
            *(f"-Des.path.home={self._home}", f"-Des.path.conf={self.folder / 'config'}"),
            *("-Des.distribution.type=tar", "-cp", f"{self._home / 'lib'}/*", str(copy)),
        ]


class ElasticsearchCluster(OpenSearchCluster):
    """Nodes that form one cluster."""

    node_type = ElasticsearchNode

    @staticmethod
    def install() -> Path:
        """Install the server; its home."""
        return install_packages("elasticsearch", PACKAGES)


def main() -> int:
    """Start a cluster and print the addresses of its nodes."""
    cluster = ElasticsearchCluster(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    return run_until_interrupted(cluster, lambda: ",".join(cluster.urls))


if __name__ == "__main__":
    sys.exit(main())
