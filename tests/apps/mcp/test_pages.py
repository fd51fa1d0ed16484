"""The documentation and server.json describe the server correctly."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import sennit
from sennit.apps.cli.mcp import DEFAULT_PORT, mcp
from sennit.apps.mcp.transports import PATH
from sennit.tools.declarations import TOOLS

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reference" / "mcp.md").read_text(encoding="utf-8")
BLOCKS = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S)]


def started_by(args: list[str]) -> dict[str, Any]:
    """The parsed options of `sennit ARGS`."""
    assert args[0] == "mcp"
    return mcp.make_context("mcp", args[1:]).params


def servers() -> list[dict[str, Any]]:
    out = []
    for block in BLOCKS:
        (entries,) = block.values()
        out.append(entries["sennit"])
    return out


@pytest.mark.parametrize("entry", servers(), ids=json.dumps)
def test_every_documented_configuration_starts_a_server(entry: dict[str, Any]) -> None:
    if "url" in entry:
        assert entry["url"] == f"http://127.0.0.1:{DEFAULT_PORT}{PATH}"
        return
    assert entry["command"] == "sennit"
    assert "--db" in entry["args"]
    assert started_by(entry["args"])["http"] is False


def test_documented_command_starts_a_server() -> None:
    (line,) = re.findall(r"^claude mcp add sennit -- sennit (.*)$", PAGE, re.M)
    assert started_by(line.split())["http"] is False


def test_documented_table_lists_every_tool_and_argument() -> None:
    table = PAGE.partition("\n## Tools\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| .*? \| (.*) \|$", table, re.M)
    assert [name for name, _ in rows] == [tool.name for tool in TOOLS]
    for (_, arguments), tool in zip(rows, TOOLS, strict=True):
        named = re.findall(r"`(\w+)`", arguments)
        if "hybrid_search" in named:
            named = ["id"] + [
                name
                for name in TOOLS[0].input_schema["properties"]
                if name not in ("expand_neighbors", "max_tokens")
            ]
        assert sorted(named) == sorted(tool.input_schema["properties"])


def test_server_json_has_this_version_and_a_working_command() -> None:
    server = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert 1 <= len(server["description"]) <= 100
    assert server["version"] == sennit.__version__
    (package,) = server["packages"]
    assert (package["registryType"], package["identifier"]) == ("pypi", "sennit")
    assert package["version"] == sennit.__version__
    assert package["transport"] == {"type": "stdio"}
    words: list[str] = []
    for argument in package["packageArguments"]:
        value = argument.get("value", argument.get("placeholder"))
        words += [value] if argument["type"] == "positional" else [argument["name"], value]
    assert started_by(words)["http"] is False
