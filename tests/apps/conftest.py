"""A temporary folder, and the program as a user runs it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner, Result

from llm.server import ChatServer
from sennit import Record
from sennit import open as open_sennit
from sennit.apps.cli.program import program

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
    """Index a page of documentation into a database, and add a private section."""
    folder.mkdir()
    (folder / "leases.md").write_text(LEASES)
    with open_sennit(path) as db:
        db.index(folder, recipe="docs")
        db.add([SECRET])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with a source file."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "auth.py").write_text(CODE)
    return folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(home: Path) -> Cli:
    """Runs the program in this process."""

    def call(*args: str, input: bytes | str | None = None) -> Result:  # noqa: A002
        return CliRunner().invoke(program, list(args), input=input, prog_name="sennit")

    return call


@pytest.fixture
def chat() -> Iterator[ChatServer]:
    """A fake language model server."""
    server = ChatServer()
    yield server
    server.close()


@pytest.fixture
def filled_cli(cli: Cli) -> Cli:
    """Runs the program in a folder whose database has RECORDS."""
    done = cli("import", input=jsonl(RECORDS))
    assert done.exit_code == 0, done.stderr
    return cli


@pytest.fixture
def run(home: Path) -> Run:
    """Runs the program in another process."""

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


def parse_command(line: str) -> None:
    """Parse a command line as `sennit` does, without running it; an unknown command or option is an error."""
    first, name, *arguments = shlex.split(line)
    assert first == "sennit"
    context = click.Context(program, info_name="sennit")
    command = program.get_command(context, name)
    if isinstance(command, click.Group) and arguments and not arguments[0].startswith("-"):
        command = command.get_command(context, arguments.pop(0))
    assert command is not None, line
    command.make_context(name, arguments, parent=context).close()
