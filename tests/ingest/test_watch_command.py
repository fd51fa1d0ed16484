"""`sennit index --watch`, in a separate process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

import sennit
from ingest.conftest import write


class WatchProcess:
    """A running `sennit index --watch`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.stdout: IO[str] = process.stdout

    def report(self) -> dict[str, Any]:
        """Read the next line of output, which is JSON."""
        report: dict[str, Any] = json.loads(self.stdout.readline())
        return report

    def interrupt(self) -> tuple[int, str, str]:
        """Send Ctrl-C; returns the exit code and the rest of the output."""
        self._process.send_signal(signal.SIGINT)
        out, err = self._process.communicate(timeout=60)
        return self._process.returncode, out, err


@contextmanager
def watch_process(folder: Path, *args: str) -> Iterator[WatchProcess]:
    code = "from sennit.apps.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "index", "--watch", "--db", str(folder), *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"NO_COLOR": "1"},
    ) as process:
        try:
            yield WatchProcess(process)
        finally:
            process.kill()


def save(path: Path, text: str) -> None:
    """Write a file atomically."""
    temporary = path.parent.with_name("half-written")
    temporary.write_text(text)
    temporary.replace(path)


@pytest.mark.usefixtures("default_sigint")
def test_json_output_has_one_line_per_round_and_ctrl_c_exits_with_0(tmp_path: Path, root: Path) -> None:
    write(root, {"a.md": "alpha", "b.md": "beta"})
    with watch_process(tmp_path / "db", str(root), "--json") as watch:
        assert watch.report()["files"]["added"] == 2
        save(root / "c.md", "the ferry leaves at noon")
        assert watch.report()["files"]["added"] == 1
        with sennit.open(tmp_path / "db") as db:
            assert [hit.text for hit in db.search("ferry", limit=1)] == ["the ferry leaves at noon"]
        (root / "b.md").unlink()
        assert watch.report()["files"]["removed"] == 1
        status, out, err = watch.interrupt()
    assert (status, out) == (0, ""), err
    assert err == "Watching for changes; Ctrl-C stops.\n"


@pytest.mark.usefixtures("default_sigint")
def test_text_output_has_one_line_per_round_and_a_total(tmp_path: Path, root: Path) -> None:
    write(root, {"a.md": "alpha"})
    with watch_process(tmp_path / "db", str(root)) as watch:
        first = [watch.stdout.readline() for _ in range(9)]
        assert "added      1\n" in first
        save(root / "b.md", "beta")
        while "1 added" not in watch.stdout.readline():
            continue
        status, rest, err = watch.interrupt()
    assert status == 0, err
    assert rest.endswith("2 added, 0 updated, 0 renamed, 0 removed.\n")
    assert "Watched for " in rest


def test_missing_folder_is_an_error_at_once(tmp_path: Path) -> None:
    with watch_process(tmp_path / "db", str(tmp_path / "nowhere")) as watch:
        assert watch.stdout.read() == ""
        status, _, err = watch.interrupt()
    assert status == 3
    assert "There is no file or folder" in err
