"""A real Neo4j of the Community edition, for the tests and for trying things out.

`python -m scripts.servers.neo4j` starts it and prints its address; Ctrl-C stops it.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final

from filelock import FileLock
from scripts.servers.common import cache_folder, free_port, temporary_folder
from scripts.servers.maven import artifacts, download, find_java
from scripts.servers.process import ServerProcess, SingleServer, answers, run_until_interrupted

PACKAGES: Final = Path(__file__).with_suffix(".json")
JAVA_VERSION: Final = 21
HEAP: Final = "512m"


def install() -> Path:
    """Install Neo4j; done once per cache folder."""
    packages = json.loads(PACKAGES.read_text())
    home = cache_folder() / f"neo4j-{packages['version']}-{packages['sha256'][:12]}"
    with FileLock(f"{home}.lock"):
        if not (home / ".complete").exists():
            jars = artifacts(packages["lib"])
            with tempfile.TemporaryDirectory() as files:
                download(jars, packages["sha256"], Path(files))
                (home / "lib").mkdir(parents=True, exist_ok=True)
                for jar in jars:
                    shutil.copy(Path(files, jar.file), home / "lib")
            for file in home.rglob("*"):
                file.chmod(0o755 if file.is_dir() else 0o644)
            home.chmod(0o755)
            (home / ".complete").touch()
    return home


class Neo4jProcess(SingleServer):
    """One server with its own data folder and ports, without passwords. `kill` and `start` may follow each other."""

    def __init__(self) -> None:
        java = find_java(JAVA_VERSION)
        lib = install() / "lib"
        self.port, self.http_port = free_port(), free_port()
        folder = temporary_folder("neo4j")
        config = folder / "neo4j.conf"
        config.write_text(
            f"""server.default_listen_address=127.0.0.1
server.bolt.listen_address=127.0.0.1:{self.port}
server.http.listen_address=127.0.0.1:{self.http_port}
dbms.security.auth_enabled=false
dbms.usage_report.enabled=false
server.memory.pagecache.size=64m
"""
        )
        config.chmod(0o644)
        command = [
            *(java, f"-Xms{HEAP}", f"-Xmx{HEAP}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
            *("--add-opens=java.base/java.nio=ALL-UNNAMED", "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED"),
            *("-cp", f"{lib}/*", "org.neo4j.server.Neo4jCommunity"),
            *(f"--home-dir={folder}", f"--config-dir={folder}", "--console-mode"),
        ]
        ready = f"http://127.0.0.1:{self.http_port}"
        self.process = ServerProcess("Neo4j", command, folder, lambda: answers(ready))

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"bolt://127.0.0.1:{self.port}"


def main() -> int:
    """Start a server and print its address."""
    server = Neo4jProcess()
    return run_until_interrupted(server, lambda: server.url)


if __name__ == "__main__":
    sys.exit(main())
