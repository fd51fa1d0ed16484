"""`sennit index` on the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ingest.conftest import write
from sennit.apps.cli import program


def call(*args: str) -> Result:
    return CliRunner().invoke(program, list(args), prog_name="sennit")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_run_ends_with_a_report(root: Path) -> None:
    write(root, {"a.md": "# Tea\n\nSteep it for three minutes.", "b.bin": b"\0\1"})
    done = call("index", str(root))
    assert done.exit_code == 0, done.stderr
    assert "added      1\n" in done.stdout
    assert "1 record written, 0 removed in" in done.stdout
    assert "binary: it contains zero bytes" in done.stdout
    found = call("search", "how long to steep tea", "--json")
    assert '"citation": "tree/a.md:1-3"' in found.stdout


def test_json_report_has_every_count(root: Path) -> None:
    write(root, {"a.txt": "one", "b.log": "two", "c.bin": b"\0"})
    done = json.loads(call("index", str(root), "--exclude", "*.log", "--json").stdout)
    assert done["files"] == {
        "seen": 2, "added": 1, "updated": 0, "renamed": 0, "removed": 0, "unchanged": 0, "skipped": 1,
    }  # fmt: skip
    assert done["records"]["added"] == 1
    assert done["skipped"] == [
        {"path": f"{os.path.realpath(root)}/c.bin", "reason": "binary: it contains zero bytes"}
    ]


def test_verbose_lists_all_skipped_files(root: Path) -> None:
    write(root, {f"{n:03}.bin": b"\0" for n in range(30)})
    done = call("index", str(root))
    assert done.stdout.count("zero bytes") == 20
    assert "and 10 more" in done.stderr
    assert call("index", str(root), "-v").stdout.count("zero bytes") == 30


def test_file_name_cannot_send_terminal_escapes(root: Path) -> None:
    write(root, {"x\x1b[2J\n.bin": b"\0"})
    assert "\x1b" not in call("index", str(root)).stdout


def test_missing_path_is_an_error() -> None:
    done = call("index", "nowhere")
    assert done.exit_code == 3
    assert "There is no file or folder 'nowhere'" in done.stderr
