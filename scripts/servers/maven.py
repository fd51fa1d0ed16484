"""Packages from Maven by their coordinates, and a Java that can run them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from scripts.servers.common import ServerUnavailable

DEPENDENCY_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"

_POM: Final = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>sennit</groupId><artifactId>test-server</artifactId><version>1</version><packaging>pom</packaging>
<dependencies>{}</dependencies></project>"""

_DEPENDENCY: Final = """<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>
<type>{}</type><classifier>{}</classifier>
<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>"""


class Artifact(NamedTuple):
    """One file of a Maven repository."""

    group: str
    name: str
    version: str
    type: str = "jar"
    classifier: str = ""

    @property
    def file(self) -> str:
        """The name of its file."""
        suffix = f"-{self.classifier}" if self.classifier else ""
        return f"{self.name}-{self.version}{suffix}.{self.type}"


def artifacts(packed: Mapping[str, str]) -> list[Artifact]:
    """Read a table from `group:version` to the artifacts of that version, `name[:type[:classifier]]` each."""
    return [
        Artifact(group, name, version, *rest)
        for key, names in packed.items()
        for group, version in [key.split(":")]
        for name, *rest in [one.split(":") for one in names.split()]
    ]


def download(wanted: Iterable[Artifact], sha256: str, into: Path) -> None:
    """Copy artifacts, and nothing that they depend on, into a folder. One hash covers all of them."""
    mvn = shutil.which("mvn")
    if mvn is None:
        raise ServerUnavailable("Maven is not installed: there is no mvn on PATH")
    wanted = list(wanted)
    with tempfile.TemporaryDirectory() as folder:
        pom = Path(folder, "pom.xml")
        pom.write_text(
            _POM.format("".join(_DEPENDENCY.format(*(escape(part) for part in one)) for one in wanted))
        )
        goal = f"{DEPENDENCY_PLUGIN}:copy-dependencies"
        done = subprocess.run(
            [mvn, "-B", "-q", "-f", str(pom), goal, f"-DoutputDirectory={into}"],
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise ServerUnavailable(f"Maven cannot download the packages: {done.stdout.strip()[-500:]}")
    found = combined_hash(into / one.file for one in wanted)
    if found != sha256:
        raise ServerUnavailable(f"the packages have the hash {found}, not the pinned {sha256}")


def combined_hash(files: Iterable[Path]) -> str:
    """One SHA-256 over the names and the SHA-256 of files."""
    lines = sorted(f"{one.name} {hashlib.sha256(one.read_bytes()).hexdigest()}\n" for one in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def find_java(at_least: int) -> str:
    """The path of a Java of this version or a newer one."""
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    on_path = shutil.which("java")
    candidates = [home / "bin" / "java" for home in homes] + ([Path(on_path)] if on_path else [])
    for folder in ("/usr/lib/jvm", "/Library/Java/JavaVirtualMachines"):
        candidates += sorted(Path(folder).glob("*/bin/java"), reverse=True)
        candidates += sorted(Path(folder).glob("*/Contents/Home/bin/java"), reverse=True)
    for java in candidates:
        if java.is_file() and _version(java) >= at_least:
            return str(java)
    raise ServerUnavailable(f"there is no Java {at_least} or newer: set JAVA_HOME to one")


def _version(java: Path) -> int:
    done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    found = re.search(r'version "(\d+)', done.stderr)
    return int(found[1]) if found else 0
