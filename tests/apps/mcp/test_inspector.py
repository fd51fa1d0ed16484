"""The command line of the official MCP inspector lists and calls every tool."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from .conftest import PROGRAM, SampleDatabase
from .test_tools import CALLS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

INSTALL = Path(__file__).resolve().parents[3] / "scripts" / "inspector.sh"


@pytest.fixture(scope="module")
def inspector() -> list[str]:
    """The command that runs the inspector. Installs it if necessary."""
    done = subprocess.run([str(INSTALL)], capture_output=True, text=True)
    assert done.returncode == 0, f"the inspector cannot be installed:\n{done.stderr}"
    return [*shlex.split(done.stdout), "--cli"]


def ask(inspector: list[str], sample: SampleDatabase, *options: str) -> Any:
    # Each call is a process of its own, and feedback must know the search of an earlier one.
    target = ["-e", "SENNIT_FEEDBACK_RECORD=all", PROGRAM, "mcp", "--db", str(sample.db)]
    done = subprocess.run([*inspector, *target, *options], capture_output=True, text=True, cwd=sample.files)
    assert done.returncode == 0, done.stderr + done.stdout
    assert "Warning" not in done.stderr
    return json.loads(done.stdout)


def test_inspector_lists_every_tool_without_schema_errors(
    inspector: list[str], shared_sample: SampleDatabase
) -> None:
    listed = ask(inspector, shared_sample, "--method", "tools/list", "--strict")
    assert [tool["name"] for tool in listed["tools"]] == list(CALLS)
    assert all(tool["outputSchema"]["type"] == "object" for tool in listed["tools"])


def call(inspector: list[str], sample: SampleDatabase, name: str, values: Mapping[str, object]) -> Any:
    arguments = [
        part
        for key, value in values.items()
        for part in ("--tool-arg", f"{key}={value if isinstance(value, str) else json.dumps(value)}")
    ]
    return ask(inspector, sample, "--method", "tools/call", "--tool-name", name, *arguments)


@pytest.mark.parametrize("name", CALLS)
def test_inspector_calls_every_tool(inspector: list[str], sample: SampleDatabase, name: str) -> None:
    values = dict(CALLS[name])
    if name == "feedback":
        found = call(inspector, sample, "hybrid_search", {"query": "harvest"})
        values["query_id"] = found["structuredContent"]["query_id"]
    answer = call(inspector, sample, name, values)
    assert not answer.get("isError"), answer
    assert answer["content"][0]["text"]
    assert answer["structuredContent"]
