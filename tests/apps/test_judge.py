"""`sennit judge`: grades by one key each, in a real terminal, and as JSON lines."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import sennit
from sennit import Record
from sennit.evaluation.datasets import read_collection, read_judgements

from .conftest import Cli

PROGRAM = str(Path(sys.executable).with_name("sennit"))
TIMEOUT_SECONDS = 60.0


class Terminal:
    """A program in a terminal of its own."""

    def __init__(self, descriptor: int, process: subprocess.Popen[bytes]) -> None:
        self._descriptor = descriptor
        self.process = process
        self._seen = ""

    def wait_for(self, text: str) -> str:
        """Read until a text appears; return what was read since the last call."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while text not in self._seen:
            ready, _, _ = select.select([self._descriptor], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"{text!r} did not appear in {self._seen!r}"
            self._seen += os.read(self._descriptor, 65536).decode()
        before, _, self._seen = self._seen.partition(text)
        return before

    def press(self, keys: str) -> None:
        os.write(self._descriptor, keys.encode())


@contextmanager
def terminal(*arguments: str) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    process = subprocess.Popen([PROGRAM, *arguments], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        yield Terminal(ours, process)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    with sennit.open(".sennit") as db:
        db.add(
            [
                Record(id="row one", text="Prune the vines in March\x1b[2J", title="Vines"),
                Record(id="b", text="The vines carry grapes in October"),
                Record(id="c", text="Grapes become wine"),
            ]
        )
    return tmp_path / "mine"


def test_each_key_is_a_grade_that_can_be_taken_back(folder: Path) -> None:
    with terminal("judge", str(folder), "--query", "vines", "-r", "keyword") as screen:
        first = screen.wait_for("q quit")
        assert "(1 of 2)" in first
        assert "\x1b[2J" not in first.split("(1 of 2)")[1], "a text cannot control the terminal"
        screen.press("3")
        assert "(2 of 2)" in screen.wait_for("q quit")
        screen.press("u")
        assert "(1 of 2)" in screen.wait_for("q quit")
        screen.press("2")
        screen.wait_for("q quit")
        screen.press("x")  # no key
        assert "(2 of 2)" in screen.wait_for("q quit")
        screen.press("0")
        screen.wait_for("2 results graded")
        assert screen.process.wait(TIMEOUT_SECONDS) == 0
    grades = read_judgements(folder / "qrels.tsv")["q1"]
    assert sorted(grades.values()) == [0, 2]
    assert set(grades) == {"row one", "b"}
    collection = read_collection(folder)
    assert not collection.warnings
    assert len(collection.documents) == 3


def test_judging_goes_on_where_it_was_left(folder: Path) -> None:
    options = ("--query", "vines", "--query", "grapes", "-r", "keyword")
    with terminal("judge", str(folder), *options) as screen:
        assert "(1 of 4)" in screen.wait_for("q quit")
        screen.press("1")
        assert "(2 of 4)" in screen.wait_for("q quit")
        screen.press("s")
        assert "grapes" in screen.wait_for("q quit")
        screen.press("q")
        screen.wait_for("1 result graded")
        assert screen.process.wait(TIMEOUT_SECONDS) == 0
    with terminal("judge", str(folder), "-r", "keyword") as screen:
        assert "(1 of 3)" in screen.wait_for("q quit")
        screen.press("n")
        assert "grapes" in screen.wait_for("q quit")
        screen.press("\x04")
        screen.wait_for("0 results graded")


def test_json_lines_are_printed_and_read(cli: Cli, folder: Path) -> None:
    printed = cli("judge", str(folder), "--query", "vines", "-r", "keyword", "-r", "vector", "--json")
    assert printed.exit_code == 0, printed.stderr
    tasks = [json.loads(line) for line in printed.stdout.splitlines()]
    assert {"row one", "b"} <= {task["id"] for task in tasks}
    graded = "".join(json.dumps({**task, "grade": 2}) + "\n" for task in tasks)
    done = cli("judge", str(folder), "--from", "-", "--json", input=graded)
    assert json.loads(done.stdout)["graded"] == len(tasks)
    assert cli("judge", str(folder), "-r", "keyword", "--json").stdout == ""
    assert cli("eval", str(folder), "--json").exit_code == 0


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("no json", 2),
        ("[]", 2),
        ('{"query": "q1", "id": "b"}', 2),
        ('{"query": "q1", "id": "b", "grade": 4}', 2),
        ('{"query": "q9", "id": "b", "grade": 1}', 3),
    ],
)
def test_a_wrong_line_is_refused_and_nothing_is_saved(cli: Cli, folder: Path, line: str, code: int) -> None:
    good = '{"query": "q1", "id": "b", "grade": 1}\n'
    done = cli("judge", str(folder), "--query", "vines", "--from", "-", input=good + line)
    assert done.exit_code == code
    assert not (folder / "qrels.tsv").exists()


def test_judging_needs_queries_and_a_terminal(cli: Cli, folder: Path) -> None:
    assert cli("judge", str(folder)).exit_code == 3
    done = cli("judge", str(folder), "--query", "vines")
    assert done.exit_code == 2
    assert "needs a terminal" in done.stderr
