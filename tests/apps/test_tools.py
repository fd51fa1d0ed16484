"""`sennit tools` and `sennit tools call`."""

from __future__ import annotations

import json

import pytest

from sennit.tools import FORMATS, TOOLS

from .conftest import Cli


@pytest.mark.parametrize("form", FORMATS)
def test_tools_prints_every_tool_without_a_database(cli: Cli, form: str) -> None:
    described = json.loads(cli("tools", "--format", form).stdout)
    assert len(described) == len(TOOLS)
    assert json.loads(cli("tools", "--format", form, "--json").stdout) == {"format": form, "tools": described}


def test_tools_can_be_chosen(cli: Cli) -> None:
    chosen = cli("tools", "--format", "anthropic", "--tool", "ask", "--tool", "read_file")
    assert [tool["name"] for tool in json.loads(chosen.stdout)] == ["ask", "read_file"]
    without = json.loads(cli("tools", "--format", "anthropic", "--read-only").stdout)
    assert "remember" not in {tool["name"] for tool in without}
    assert cli("tools", "--tool", "nothing").exit_code == 3


def test_a_call_prints_the_text_for_the_model(filled_cli: Cli) -> None:
    done = filled_cli("tools", "call", "hybrid_search", '{"query": "bread", "limit": 1}')
    assert done.exit_code == 0
    assert "Sunday bread" in done.stdout
    piped = filled_cli("tools", "call", "hybrid_search", "--json", input='{"query": "bread", "limit": 1}')
    values = json.loads(piped.stdout)
    assert values["text"] == done.stdout.removesuffix("\n")
    assert values["structured_content"]["results"][0]["id"] == "bread"


def test_a_wrong_call_prints_what_to_correct(filled_cli: Cli) -> None:
    done = filled_cli("tools", "call", "hybrid_search", "{}")
    assert done.exit_code == 2
    assert "needs the argument 'query'" in done.stdout


def test_options_of_tools_limit_what_may_be_called(filled_cli: Cli) -> None:
    done = filled_cli("tools", "--read-only", "call", "remember", '{"text": "x"}')
    assert done.exit_code == 2
    assert "There is no tool 'remember' here" in done.stdout
    assert filled_cli("tools", "--tool", "ask", "call", "hybrid_search", '{"query": "x"}').exit_code == 2
