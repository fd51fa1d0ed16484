"""`sennit index --watch`, as a process of its own."""

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

import sennit
from ingest.conftest import write


class Program:
    """The running program."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert process.stdout is not None
        self.stdout: IO[str] = process.stdout

    def report(self) -> dict[str, Any]:
        """The next line, which is JSON."""
        found: dict[str, Any] = json.loads(self.stdout.readline())
        return found

    def interrupt(self) -> tuple[int, str, str]:
        """Press Ctrl-C; gives the exit code and what was said since."""
        self._process.send_signal(signal.SIGINT)
        out, err = self._process.communicate(timeout=60)
        return self._process.returncode, out, err


@contextmanager
def watching(folder: Path, *args: str) -> Iterator[Program]:
    code = "from sennit.apps.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "index", "--watch", "--db", str(folder), *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"NO_COLOR": "1"},
    ) as process:
        try:
            yield Program(process)
        finally:
            process.kill()


def save(path: Path, text: str) -> None:
    """Write a file at once, so that it is never seen half written."""
    beside = path.parent.with_name("half-written")
    beside.write_text(text)
    beside.replace(path)


def test_one_line_of_json_for_each_round_and_ctrl_c_ends_it_well(tmp_path: Path, root: Path) -> None:
    write(root, {"a.md": "alpha", "b.md": "beta"})
    with watching(tmp_path / "db", str(root), "--json") as program:
        assert program.report()["files"]["added"] == 2
        save(root / "c.md", "the ferry leaves at noon")
        assert program.report()["files"]["added"] == 1
        with sennit.open(tmp_path / "db") as db:
            assert [hit.text for hit in db.search("ferry", limit=1)] == ["the ferry leaves at noon"]
        (root / "b.md").unlink()
        assert program.report()["files"]["removed"] == 1
        status, out, err = program.interrupt()
    assert (status, out) == (0, ""), err
    assert err == "Watching; Ctrl-C ends it.\n"


def test_in_words_there_is_a_line_for_each_round_and_a_sum(tmp_path: Path, root: Path) -> None:
    write(root, {"a.md": "alpha"})
    with watching(tmp_path / "db", str(root)) as program:
        first = [program.stdout.readline() for _ in range(9)]
        assert "added      1\n" in first
        save(root / "b.md", "beta")
        while "1 added" not in program.stdout.readline():
            continue
        status, rest, err = program.interrupt()
    assert status == 0, err
    assert rest.endswith("2 added, 0 updated, 0 renamed, 0 removed.\n")
    assert "Watched for " in rest


def test_what_is_not_there_is_an_error_at_once(tmp_path: Path) -> None:
    with watching(tmp_path / "db", str(tmp_path / "nowhere")) as program:
        assert program.stdout.read() == ""
        status, _, err = program.interrupt()
    assert status == 3
    assert "There is no file or folder" in err
