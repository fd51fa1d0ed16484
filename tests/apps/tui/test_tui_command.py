"""`sennit tui` without a terminal or without its extra."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from ..conftest import Cli, Run

WITHOUT_TEXTUAL = """
import sys
sys.modules["textual"] = None
from sennit.apps.cli import main
sys.argv = ["sennit", "tui", *sys.argv[1:]]
main()
"""


def test_missing_textual_names_the_extra(filled_cli: Cli) -> None:
    run = subprocess.run([sys.executable, "-c", WITHOUT_TEXTUAL], capture_output=True, text=True)
    assert run.returncode == 5
    assert run.stderr == (
        "Error: The terminal interface needs an optional package. Install it with: pip install 'sennit[tui]'\n"
    )
    assert run.stdout == ""


@pytest.mark.parametrize("options", [(), ("--json",), ("ferry",)])
def test_tui_without_a_terminal_is_a_usage_error(filled_cli: Cli, run: Run, options: tuple[str, ...]) -> None:
    done = run("tui", *options)
    assert done.returncode == 2
    assert "sennit tui needs a terminal" in done.stderr
    assert "sennit search" in done.stderr
    assert done.stdout == ""
    if "--json" in options:
        assert json.loads(done.stderr)["error"]["type"] == "InvalidInput"
