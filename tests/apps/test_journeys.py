"""Journeys: commands typed in a row in a real terminal, from an empty folder. What one prints, the next one takes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import signal
import struct
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

FILES = {
    "README.md": "# Shelf\n\nShelf stores copies of files. See docs/backup.md for backups.\n",
    "docs/backup.md": (
        "# Backups\n\nShelf copies every file at night.\n\n"
        "## Restore a backup\n\nStop the server. Then run `shelf restore latest`, which copies the files back.\n\n"
        "## Schedule\n\nBackups run each night at two. Change the hour in shelf.toml.\n"
    ),
    "docs/install.md": "# Installation\n\nDownload the installer and run it. It needs 40 MB of disk.\n",
    "src/client.py": (
        "import time\n\n\n"
        "def retry(operation, max_attempts=3, delay=1.0):\n"
        '    """Call an operation again when it fails, with a growing delay."""\n'
        "    for attempt in range(max_attempts):\n"
        "        try:\n"
        "            return operation()\n"
        "        except OSError:\n"
        "            time.sleep(delay * 2**attempt)\n"
        '    raise RuntimeError("gave up")\n'
    ),
    "src/storage.py": (
        "class Storage:\n"
        '    """Keeps copies of files by the hash of their content."""\n\n'
        "    def put(self, path):\n"
        "        return hash(path.read_bytes())\n"
    ),
    "tests/test_client.py": "from client import retry\n\n\ndef test_retry():\n    assert retry(lambda: 1) == 1\n",
    "notes/call.md": "# Call with Ana\n\nAna prefers weekly backups and pays by invoice.\n",
}
"""A small mixed repository: documentation, code, tests and notes."""

PROMPT = "journey> "
TIMEOUT_SECONDS = 60.0
"""How long a command may take on a busy machine before the test fails."""

_ESCAPES = re.compile(r"\x1b\][^\x1b\x07]*(?:\x1b\\|\x07)|\x1b[\[(][0-9;?]*[A-Za-z]|\x1b[=>]|\r")
_LOCATION = re.compile(r"[\w./-]+\.\w+:\d+(?:-\d+)?")


class Shell:
    """A shell in a pseudo-terminal."""

    def __init__(self, folder: Path, columns: int) -> None:
        self._pid, self._terminal = pty.fork()
        if self._pid == 0:
            os.chdir(folder)
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            kept = {name: value for name, value in os.environ.items() if not name.startswith("SENNIT_")}
            env = {**kept, "PATH": path, "TERM": "xterm-256color", "PS1": PROMPT, "PS2": ""}
            env.pop("NO_COLOR", None)
            os.execvpe("bash", ["bash", "--norc", "--noprofile"], env)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        self.raw = ""
        self._read_until(PROMPT)
        self.run("bind 'set enable-bracketed-paste off'")

    def run(self, command: str) -> str:
        """Type a command and return what it prints, without escape sequences."""
        os.write(self._terminal, f"{command}; echo code=$?=\n".encode())
        shown = self._read_until("\ncode=", PROMPT)
        assert "code=0=" in shown, shown
        return shown.partition("\n")[2].rpartition("code=")[0]

    def fail(self, command: str, code: int) -> str:
        """Type a command that fails with this exit code, and return what it prints."""
        os.write(self._terminal, f"{command}; echo code=$?=\n".encode())
        shown = self._read_until("\ncode=", PROMPT)
        assert f"code={code}=" in shown, shown
        return shown.partition("\n")[2].rpartition("code=")[0]

    def answer(self, command: str, question: str, reply: str) -> str:
        """Type a command, and a reply when it asks."""
        os.write(self._terminal, f"{command}\n".encode())
        self._read_until(question)
        os.write(self._terminal, f"{reply}\n".encode())
        return self._read_until(PROMPT)

    def _read_until(self, *marks: str) -> str:
        """Read until these texts have appeared one after another; return everything that was read."""
        raw = ""
        end = time.monotonic() + TIMEOUT_SECONDS
        while True:
            shown = _ESCAPES.sub("", raw)
            position = 0
            for mark in marks:
                found = shown.find(mark, position)
                position = -1 if found < 0 else found + len(mark)
                if found < 0:
                    break
            if position >= 0:
                self.raw = raw
                return shown
            ready, _, _ = select.select([self._terminal], [], [], end - time.monotonic())
            assert ready, f"timed out; the terminal shows\n{shown}"
            raw += os.read(self._terminal, 1 << 16).decode(errors="replace")

    def close(self) -> None:
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._terminal)


@pytest.fixture
def shell(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shell]:
    """A shell in an empty folder, 80 columns wide unless a test wants another width."""
    opened = Shell(tmp_path, getattr(request, "param", 80))
    try:
        yield opened
    finally:
        opened.close()


def write_repository(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def first_location(shown: str) -> str:
    """The first location that a command has printed."""
    found = _LOCATION.search(shown)
    assert found is not None, shown
    return found[0]


@pytest.mark.parametrize("shell", [80, 160], indirect=True)
def test_a_mixed_repository_from_the_first_index_to_the_last_removal(shell: Shell, tmp_path: Path) -> None:
    assert "sennit index" in shell.fail("sennit search anything", 3)
    write_repository(tmp_path)
    shell.run("sennit index .")

    shown = shell.run("sennit search how do I restore a backup")
    place = first_location(shown)
    assert place.startswith("docs/backup.md:")
    assert "shelf restore latest" in shown
    assert f"\x1b]8;;file://{tmp_path}/docs/backup.md#L" in shell.raw, "the location is a link"
    assert "rank 1 of" in shell.run(f"sennit why how do I restore a backup {place}")
    assert "title: Backups" in shell.run(f"sennit get {place}")
    assert "Stop the server." in shell.run(f"sennit read {place}")

    shown = shell.run("sennit search retry an operation that fails -n 1")
    assert re.search(r"^ +4  def retry\(operation, max_attempts=3, delay=1.0\):$", shown, re.M), shown
    assert first_location(shown).startswith("src/client.py:")
    assert "src/client.py" in shell.run("sennit grep max_attempts")
    assert shell.run("sennit search weekly invoice --files -n 1") == "notes/call.md\n"
    found = shell.run("echo docs/install.md | sennit search installer --files --paths-from -")
    assert found == "docs/install.md\n"

    listed = shell.run("sennit list --files")
    assert all(name in listed for name in FILES)
    shown = shell.run("sennit status")
    assert "no change" in shown
    assert "Everything is up to date." in shown
    (tmp_path / "docs" / "install.md").write_text("# Installation\n\nUse the package manager.\n")
    shown = shell.run("sennit status")
    assert "1 changed" in shown
    assert "sennit index ." in shown
    shell.run("sennit index .")
    assert "package manager" in shell.run("sennit search how do I install -n 1")

    place = first_location(shell.run("sennit search what does Ana prefer -n 1"))
    assert place.startswith("notes/call.md:")
    assert "Removed 1 record." in shell.run(f"sennit remove {place}")
    assert "notes/call.md" not in shell.run("sennit search what does Ana prefer")
    assert "notes/call.md" in shell.fail("sennit get notes/call.md", 3)


def test_memories_are_remembered_recalled_and_forgotten(shell: Shell) -> None:
    shown = shell.run("sennit remember 'Priya prefers the aisle seat' --session call-1 --speaker Rajesh")
    assert "Remembered as memory-" in shown
    shown = shell.run("sennit search where does Priya sit")
    short = re.search(r"memory-[0-9a-f]{8}\b", shown)
    assert short is not None, shown
    assert "aisle seat" in shell.run(f"sennit get {short[0]}")
    assert "is in the answer" in shell.run(f"sennit why where does Priya sit {short[0]}")
    assert "Priya prefers the aisle seat" in shell.run("sennit context where does Priya sit")
    assert "call-1" in shell.run("sennit list --sessions")
    assert "There is no session" in shell.fail("sennit forget call-2 --yes", 3)
    assert "Removed 1 record" in shell.answer("sennit forget call-1", "[y/N]", "y")
    assert "Nothing found." in shell.run("sennit search where does Priya sit")


def test_an_empty_answer_leads_to_one_that_is_not(shell: Shell, tmp_path: Path) -> None:
    write_repository(tmp_path)
    shell.run("sennit index docs")
    shown = shell.run("sennit search restore a backup --filter 'kind = \"letter\"'")
    assert "No record passes the filter" in shown
    suggested = next(line.strip() for line in shown.splitlines() if line.startswith("  sennit search"))
    assert shlex.split(suggested)[:2] == ["sennit", "search"]
    assert "docs/backup.md" in shell.run(suggested)
    assert "Did you mean 'default'?" in shell.fail("sennit search backup -r defualt", 3)
    assert "Did you mean 'status'?" in shell.fail("sennit statsu", 2)
    removed = shell.answer("sennit remove --where 'collection = \"docs\"'", "[y/N]", "n")
    assert "Removed" not in removed
    assert "docs/backup.md" in shell.run("sennit list --files")
