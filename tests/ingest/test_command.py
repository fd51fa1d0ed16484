"""`sennit index` on the command line."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ingest.conftest import write
from sennit.apps.cli.index_progress import ProgressLog, estimate_seconds, format_bytes
from sennit.apps.cli.program import program
from sennit.ingest import IndexProgress
from stores.embedding_server import EmbeddingServer


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
    assert "binary   1  tree/b.bin\n" in done.stdout
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


def test_report_groups_skipped_files_by_reason(root: Path) -> None:
    write(
        root,
        {f"{n:03}.bin": b"\0" for n in range(30)} | {"big.txt": "x" * 200, "pic.png": b"\x89PNG\r\n\x1a\n"},
    )
    done = call("index", str(root), "--max-bytes", "100")
    assert [" ".join(line.split()) for line in done.stdout.splitlines()[-3:]] == [
        "skipped for example",
        "binary 31 tree/000.bin, tree/001.bin",
        "larger than 100 bytes 1 tree/big.txt",
    ]
    assert "--max-bytes indexes larger files too." in done.stderr
    assert "--max-bytes" not in call("index", str(root)).stderr


def test_verbose_and_json_list_all_skipped_files(root: Path) -> None:
    write(root, {f"{n:03}.bin": b"\0" for n in range(30)})
    assert call("index", str(root), "-v").stdout.count("zero bytes") == 30
    assert len(json.loads(call("index", str(root), "--json").stdout)["skipped"]) == 30


def test_report_says_what_is_ignored_by_default_and_how_to_index_it(root: Path) -> None:
    write(root, {"a.txt": "one", "uv.lock": "two", "env/pyvenv.cfg": "", "env/b.txt": "three"})
    done = call("index", str(root))
    assert "lock file            1  tree/uv.lock\n" in done.stdout
    assert "virtual environment  1  tree/env\n" in done.stdout
    assert "--no-default-ignores indexes them too" in done.stderr
    assert "added      3\n" in call("index", str(root), "--no-default-ignores").stdout
    assert json.loads(call("index", str(root), "--json").stdout)["files"]["removed"] == 3
    assert json.loads(call("index", str(root / "uv.lock"), "--json").stdout)["files"]["added"] == 1


def test_vectors_that_are_still_to_come_are_reported_and_waited_for(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"a.txt": "one", "b.txt": "two"})
    server = EmbeddingServer()
    try:
        for name, value in server.settings.items():
            monkeypatch.setenv(f"SENNIT_{name.replace('__', '_').upper()}", str(value))
        assert call("index", str(root), "--wait").stderr.endswith("Every record has its vector.\n")
        write(root, {"c.txt": "three", "d.txt": "four"})
        server.hold()
        monkeypatch.setenv("SENNIT_EMBEDDING_TIMEOUT", "0.1")
        done = call("index", str(root))
        assert "2 vectors still to come" in done.stderr
        assert "sennit index --wait" in done.stderr
        assert json.loads(call("index", str(root), "--json").stdout)["pending_vectors"] == 2
        server.release()
        monkeypatch.setenv("SENNIT_EMBEDDING_TIMEOUT", "20")
        waited = call("index", "--wait")
        assert waited.exit_code == 0, waited.stderr
        assert "Every record has its vector." in waited.stderr
        assert json.loads(call("index", str(root), "--json").stdout)["pending_vectors"] == 0
    finally:
        server.close()
    write(root, {"e.txt": "five"})
    failed = call("index", str(root), "--wait")
    assert failed.exit_code == 5
    assert "cannot be reached" in failed.stderr


def test_the_bar_on_a_terminal_shows_files_bytes_and_the_file_it_is_at(root: Path) -> None:
    write(root, {f"{n}.txt": "some words " * 200 for n in range(20)})
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 120, 0, 0))
    command = [sys.executable, "-c", "from sennit.apps.cli import main; main()", "index", str(root)]
    environment = {**os.environ, "TERM": "xterm-256color"}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment) as running:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # the end of the other side
            while part := os.read(ours, 65536):
                shown += part
    os.close(ours)
    assert running.returncode == 0, shown
    assert b"0/20 files, 0 bytes of 44 kB" in shown
    assert b"tree/0.txt" in shown
    assert b"Merging" in shown


def test_the_remaining_time_grows_while_a_large_file_is_read() -> None:
    assert estimate_seconds(10, 50, 100) == 10
    assert estimate_seconds(20, 50, 100) == 20
    assert estimate_seconds(1, 1, 100) is None
    assert estimate_seconds(1, 0, None) is None


def test_a_path_is_needed_unless_it_only_waits() -> None:
    done = call("index")
    assert done.exit_code == 2
    assert "sennit index ." in done.stderr
    assert call("index", ".", "--wait", "--watch").exit_code == 2


def test_progress_without_a_terminal_is_lines(capsys: pytest.CaptureFixture[str]) -> None:
    @dataclass(frozen=True)
    class Loud:
        quiet: bool = False
        json: bool = False

    log = ProgressLog(Loud(), seconds=0)
    log(IndexProgress("scan"))
    log(IndexProgress("read", 3, 1200, 4_200_000, 99_000_000, "/x/a.md"))
    log(IndexProgress("merge"))
    assert capsys.readouterr().err.splitlines() == [
        "Looking for files …",
        "Indexing: 3 of 1,200 files, 4.2 MB of 99 MB; at /x/a.md",
        "Merging …",
    ]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (9960, "10 kB"),
        (999_600, "1.0 MB"),
        (2e12, "2000 GB"),
    ],
)
def test_sizes_are_short(number: float, text: str) -> None:
    assert format_bytes(number) == text


def test_file_name_cannot_send_terminal_escapes(root: Path) -> None:
    write(root, {"x\x1b[2J\n.bin": b"\0"})
    assert "\x1b" not in call("index", str(root)).stdout


def test_missing_path_is_an_error() -> None:
    done = call("index", "nowhere")
    assert done.exit_code == 3
    assert "There is no file or folder 'nowhere'" in done.stderr
