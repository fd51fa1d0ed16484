"""A real OpenSearch of one node or several, for the tests and for trying things out.

`python -m scripts.servers.opensearch [NODES]` starts one and prints the addresses of its nodes; Ctrl-C stops it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from filelock import FileLock
from scripts.servers.common import (
    ServerUnavailable,
    cache_folder,
    free_port,
    give_to_server,
    run_as,
    temporary_folder,
)
from scripts.servers.maven import artifacts, download, find_java
from scripts.servers.process import ANSWER_SECONDS, START_SECONDS, STOP_SECONDS

PACKAGES: Final = Path(__file__).with_suffix(".json")
JAVA_VERSION: Final = 21
HEAP: Final = "512m"
POLL_SECONDS: Final = 0.1

_DESCRIPTOR: Final = """description=module {name}
version={version}
name={name}
classname={classname}
extended.plugins={extends}
java.version={java}
{product}.version={version}
has.native.controller=false
"""

_LOGGING: Final = """status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = [%d{ISO8601}][%-5p][%c{1.}] %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
"""


def install() -> Path:
    """Install OpenSearch with its k-NN and neural-search plugins; done once per cache folder."""
    return install_packages("opensearch", PACKAGES)


def install_packages(product: str, table: Path) -> Path:
    """Install the libraries, modules and plugins of a table of packages; done once per cache folder."""
    packages = json.loads(table.read_text())
    version, sha256 = packages["version"], packages["sha256"]
    home = cache_folder() / f"{product}-{version}-{sha256[:12]}"
    with FileLock(f"{home}.lock"):
        if (home / ".complete").exists():
            return home
        parts = {"lib": artifacts(packages["lib"])}
        parts |= {f"modules/{name}": artifacts(one["jars"]) for name, one in packages["modules"].items()}
        plugins = artifacts(packages["plugins"])
        with tempfile.TemporaryDirectory() as folder:
            files = Path(folder)
            download([*(one for part in parts.values() for one in part), *plugins], sha256, files)
            for name, part in parts.items():
                (home / name).mkdir(parents=True, exist_ok=True)
                for one in part:
                    shutil.copy(files / one.file, home / name)
            for plugin in plugins:
                with zipfile.ZipFile(files / plugin.file) as archive:
                    archive.extractall(home / "plugins" / plugin.name)
        for name, one in packages["modules"].items():
            text = _DESCRIPTOR.format(
                name=name,
                version=version,
                java=JAVA_VERSION,
                product=product,
                classname=one["classname"],
                extends=one["extends"],
            )
            (home / "modules" / name / "plugin-descriptor.properties").write_text(text)
        for folder_name in ("bin", "plugins"):  # The servers insist on them.
            (home / folder_name).mkdir(exist_ok=True)
        for file in home.rglob("*"):
            file.chmod(0o755 if file.is_dir() else 0o644)
        home.chmod(0o755)
        (home / ".complete").touch()
    return home


class OpenSearchNode:
    """One node with its own folder and ports. `kill` and `start` may follow each other."""

    product = "opensearch"
    first_managers = "cluster.initial_cluster_manager_nodes"

    def __init__(self, name: str, home: Path, java: str, folder: Path) -> None:
        self.name = name
        self.port = free_port()
        self.transport_port = free_port()
        self.folder = folder / name
        self._home = home
        self._java = java
        self._process: subprocess.Popen[bytes] | None = None
        for each in (self.folder, *(self.folder / one for one in ("config", "data", "logs", "tmp"))):
            each.mkdir()
            give_to_server(each)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def configure(self, nodes: list[OpenSearchNode]) -> None:
        """Write the configuration of a member of this cluster."""
        settings = {
            "cluster.name": f"sennit-{nodes[0].transport_port}",
            "node.name": self.name,
            "path.data": str(self.folder / "data"),
            "path.logs": str(self.folder / "logs"),
            "network.host": "127.0.0.1",
            "http.port": self.port,
            "transport.port": self.transport_port,
            "discovery.seed_hosts": [f"127.0.0.1:{one.transport_port}" for one in nodes],
            self.first_managers: [one.name for one in nodes],
            "cluster.routing.allocation.disk.threshold_enabled": False,
            # The cluster must notice a killed node, and one that comes back, within the patience of a test.
            "cluster.fault_detection.follower_check.interval": "500ms",
            "cluster.fault_detection.leader_check.interval": "500ms",
            "discovery.find_peers_interval": "300ms",
        }
        config = self.folder / "config"
        # JSON is YAML, and needs no quoting of our own.
        (config / f"{self.product}.yml").write_text(json.dumps(settings, indent=1))
        (config / "log4j2.properties").write_text(_LOGGING)

    def program(self) -> list[str]:
        """What Java is given: properties, the class path and the program."""
        return [
            *(f"-Dopensearch.path.home={self._home}", f"-Dopensearch.path.conf={self.folder / 'config'}"),
            *("-Dopensearch.distribution.type=tar", "-Dopensearch.bundled_jdk=false"),
            *("-cp", f"{self._home / 'lib'}/*", "org.opensearch.bootstrap.OpenSearch"),
        ]

    def launch(self) -> None:
        """Start the process, and do not wait for it."""
        tmp = self.folder / "tmp"
        command = [
            *(self._java, f"-Xms{HEAP}", f"-Xmx{HEAP}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("-Xshare:auto", f"-Djava.io.tmpdir={tmp}", "--add-modules=jdk.incubator.vector"),
            *("--enable-native-access=ALL-UNNAMED", *self.program()),
        ]
        environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=environment | {"OPENSEARCH_TMPDIR": str(tmp), "HOME": str(tmp)},
                **run_as(),
            )

    def kill(self) -> None:
        """Stop the node as a crash would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop the node in order."""
        self._end(signal.SIGTERM)

    def check_is_alive(self) -> None:
        """Raise ServerUnavailable, with the end of its log, when the process has ended by itself."""
        if self._process is not None and self._process.poll() is not None:
            raise ServerUnavailable(f"{self.name} of {self.product} ended: {self.log()[-3000:]}")

    def log(self) -> str:
        """What the node has written so far."""
        return (self.folder / "log").read_text(errors="replace")

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._process.pid, how)
            self._process.wait(timeout=STOP_SECONDS)
            self._process = None


class OpenSearchCluster:
    """Nodes that form one cluster."""

    node_type: type[OpenSearchNode] = OpenSearchNode

    def __init__(self, nodes: int = 1) -> None:
        java = find_java(JAVA_VERSION)
        home = self.install()
        self.folder = temporary_folder(self.node_type.product)
        self.nodes = [self.node_type(f"node{n}", home, java, self.folder) for n in range(nodes)]
        for node in self.nodes:
            node.configure(self.nodes)

    @staticmethod
    def install() -> Path:
        """Install the server; its home."""
        return install()

    @property
    def urls(self) -> list[str]:
        """The addresses of all nodes, also of those that do not run."""
        return [node.url for node in self.nodes]

    def start(self) -> None:
        """Start the nodes that do not run, and wait until the cluster has all of them and each shard an original.

        A replica may take minutes to return after the cluster had lost its majority.
        """
        for node in self.nodes:
            if not node.is_running:
                node.launch()
        self.wait_for(f"wait_for_nodes={len(self.nodes)}&wait_for_status=yellow")

    def wait_for(self, condition: str) -> None:
        """Wait until every running node says that the health of the cluster meets a condition."""
        end = time.monotonic() + START_SECONDS
        waiting = [node for node in self.nodes if node.is_running]
        while waiting:
            for node in self.nodes:
                node.check_is_alive()
            waiting = [node for node in waiting if not _is_healthy(node.port, condition)]
            if waiting and time.monotonic() > end:
                logs = "\n".join(f"{node.name}: {node.log()[-2000:]}" for node in waiting)
                what = self.node_type.product
                raise ServerUnavailable(f"{what} was not ready in {START_SECONDS:.0f} s: {logs}")
            threading.Event().wait(POLL_SECONDS)

    def close(self) -> None:
        """Stop all nodes and delete their data."""
        for node in self.nodes:
            node.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


def _is_healthy(port: int, condition: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", f"/_cluster/health?timeout=2s&{condition}")
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
        return response.status == 200 and not answer["timed_out"]
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextlib.contextmanager
def opensearch(nodes: int = 1) -> Iterator[OpenSearchCluster]:
    """A running cluster, deleted at the end of the block."""
    cluster = OpenSearchCluster(nodes)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()


def main() -> int:
    """Start a cluster and print the addresses of its nodes."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # So that its nodes end with it.
    with opensearch(int(sys.argv[1]) if len(sys.argv) > 1 else 1) as cluster:
        print(",".join(cluster.urls), flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main())
