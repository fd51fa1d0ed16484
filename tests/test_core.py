"""The core alone, as `pip install sennit` gives it: what needs an extra says so, and everything else works."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

WITHOUT = """
import sys
for name in {modules!r}:
    sys.modules[name] = None  # as if it were not installed
"""

NO_RIPGREP = """
import sennit.folders.ripgrep
sennit.folders.ripgrep.sysconfig = type("sysconfig", (), {"get_path": lambda _: "nowhere"})
sennit.folders.ripgrep.sys = type("sys", (), {"executable": "nowhere/python"})
"""


def optional_modules() -> list[str]:
    """What the extras install, as it is imported."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    names = {
        _named(line)
        for extra, lines in extras.items()
        if extra not in ("all", "dev", "docs", "bench", "testing")
        for line in lines
    }
    names -= {_named(line) for line in project["dependencies"]}
    return sorted(
        module
        for module, owners in packages_distributions().items()
        if any(_named(owner) in names for owner in owners)
    )


def _named(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def core(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program where the extras are not installed."""
    source = WITHOUT.format(modules=optional_modules()) + code
    environment = {**os.environ, "PATH": str(folder), "SENNIT_DB": str(folder / "db")}
    return subprocess.run(
        [sys.executable, "-c", source],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment,
        cwd=folder,
        check=False,
        timeout=120,
    )


def command(*arguments: str) -> str:
    """A program that is the command line with these arguments."""
    return f"""
from sennit.apps.cli import main
sys.argv = ["sennit", *{arguments!r}]
sys.exit(main())
"""


def test_what_is_optional_is_known() -> None:
    assert {"tree_sitter", "mcp", "fastapi", "textual", "httpx", "onnxruntime"} <= set(optional_modules())


def test_records_and_files_are_searched_without_any_extra(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("# Harbour\n\nThe crane lifts copper at low tide.\n", encoding="utf-8")
    (tmp_path / "crane.py").write_text("def lift(load):\n    return load\n", encoding="utf-8")
    code = """
import sennit
with sennit.open("db") as db:
    db.add([sennit.Record(id="a", text="lanterns in winter")])
    report = db.index(".")
    assert report.added == 2, report
    assert db.search("copper crane")[0].citation.endswith("notes.md:1-3"), db.search("copper crane")[0].citation
    assert db.search("winter", explain=True)[0].id == "a"
    assert db.ask("what lifts copper?").text
"""
    done = core(code, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "extra"),
    [
        (["index", ".", "--recipe", "code"], "code"),
        (["serve", "--open"], "http"),
        (["mcp"], "mcp"),
        (["tui"], "tui"),
        (["eval", "."], "eval"),
    ],
)
def test_a_command_that_needs_an_extra_names_it(arguments: list[str], extra: str, tmp_path: Path) -> None:
    (tmp_path / "crane.py").write_text("def lift(load):\n    return load\n", encoding="utf-8")
    for name in ("corpus.jsonl", "queries.jsonl"):
        (tmp_path / name).write_text('{"_id": "a", "title": "", "text": "crane"}\n', encoding="utf-8")
    (tmp_path / "qrels.tsv").write_text("query-id\tcorpus-id\tscore\na\ta\t1\n", encoding="utf-8")
    done = core('import sennit\nsennit.open("db").close()\n' + command(*arguments), tmp_path)
    assert done.returncode != 0
    assert f"pip install 'sennit[{extra}]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_demo_leaves_out_what_is_not_installed_and_says_so(tmp_path: Path) -> None:
    done = core(NO_RIPGREP + command("demo", "--json"), tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["ok"]
    reasons = " ".join(entry["reason"] for entry in told["left_out"])
    assert "sennit[code]" in reasons
    assert "sennit[files]" in reasons
