"""A folder of one's own, and the program as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from llm.server import ChatServer
from sennit import Record
from sennit import open as open_sennit
from sennit.apps.cli import program

RECORDS: list[dict[str, Any]] = [
    {
        "id": "bread",
        "text": "Knead the dough and bake it in a hot oven.",
        "title": "Sunday bread",
        "kind": "note",
    },
    {"id": "boat", "text": "The ferry leaves at noon.", "collection": "travel", "metadata": {"price": 12}},
    {"id": "path", "text": "A line of text", "path": "docs/a.md", "lines": [3, 9]},
]

LEASES = (
    "# Leases\n\n## Overview\n\nA lease is a loan of a job to a worker.\n\n"
    "## Length\n\nIt is thirty seconds and is renewed every ten.\n\n"
    "## Examples\n\n```python\nconfigure(lease=60)\n```\n"
)
SECRET = Record(
    id="s",
    text="The lease of the vault is eleven seconds.",
    collection="docs",
    kind="SECTION",
    sensitivity="private",
)
CODE = "def login(name):\n    return check(name)\n\n\ndef check(name):\n    return bool(name)\n"

Cli = Callable[..., Result]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


def document(path: Path, folder: Path) -> None:
    """A page of documentation for a database, and a section that few may see."""
    folder.mkdir()
    (folder / "leases.md").write_text(LEASES)
    with open_sennit(path) as db:
        db.index(folder, recipe="docs")
        db.add([SECRET])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a file of code."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "auth.py").write_text(CODE)
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def sennit(home: Path) -> Cli:
    """The program in this process."""

    def call(*args: str, input: bytes | str | None = None) -> Result:  # noqa: A002
        return CliRunner().invoke(program, list(args), input=input, prog_name="sennit")

    return call


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    """A language model."""
    server = ChatServer()
    yield server
    server.close()


@pytest.fixture
def filled(sennit: Cli) -> Cli:
    """The program in a folder whose database holds RECORDS."""
    done = sennit("import", input=jsonl(RECORDS))
    assert done.exit_code == 0, done.stderr
    return sennit


@pytest.fixture
def run(home: Path) -> Run:
    """The program as a process of its own."""

    def call(*args: str, **options: Any) -> subprocess.CompletedProcess[str]:
        env = os.environ | options.pop("env", {})
        command = [str(Path(sys.executable).with_name("sennit")), *args]
        options = {"stdin": None if "input" in options else subprocess.DEVNULL, **options}
        if options["stdin"] is None:
            del options["stdin"]
        return subprocess.run(command, capture_output=True, text=True, env=env, **options)

    return call


def jsonl(records: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
