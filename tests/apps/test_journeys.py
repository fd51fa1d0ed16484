"""Journeys: commands typed in a row in a real terminal, from an empty folder. What one prints, the next one takes."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

SENNIT = str(Path(sys.executable).with_name("sennit"))

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

    def visit(self, command: str, *, expect: str, leave: str) -> str:
        """Type a command that fills the screen, wait for a text on it, and leave by a key."""
        os.write(self._terminal, f"{command}; echo code=$?=\n".encode())
        shown = self._read_until(expect)
        os.write(self._terminal, leave.encode())
        assert "code=0=" in self._read_until("code=", PROMPT)
        return shown

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


def test_tables_and_checks_fit_a_narrow_terminal(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"id": "note", "text": "The ferry leaves at noon."}\n')
    shell.run("sennit import notes.jsonl")
    settings = shell.run("sennit config")
    assert re.search(r"^hydration\.semantic_budget_tokens +4000 ", settings, re.MULTILINE), "names are whole"
    lines = shell.run("sennit doctor 2> progress").splitlines()
    assert max(map(len, lines)) <= 80
    assert all(line.startswith(("ok ", " " * 20)) for line in lines), "what follows is indented"


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


QUESTIONS = {
    "how do I restore a backup": "docs/backup.md",
    "at what hour do backups run": "docs/backup.md",
    "how much disk does the installer need": "docs/install.md",
    "call an operation again when it fails": "src/client.py",
    "where are copies kept by hash": "src/storage.py",
    "how does Ana pay": "notes/call.md",
}
"""Written down before the journey was first run: each question, and the file of a right first result."""

CODE_TASKS = {"fix the delay in retry": "src/client.py", "change Storage.put in storage.py": "src/storage.py"}
CTRL_Q = "\x11"


def use_every_interface(shell: Shell, folder: Path, shown_prefix: str) -> None:
    """Ask the questions on the command line, in the terminal interface, over HTTP and over MCP."""
    for question, file in QUESTIONS.items():
        place = first_location(shell.run(f"sennit search {question} -n 1"))
        assert place.startswith(f"{shown_prefix}{file}:"), (question, place)
        assert "rank 1 of" in shell.run(f"sennit why {question} {place}")
        assert shell.run(f"sennit get {place}")
        assert shell.run(f"sennit read {place}")
    answer = shell.run("sennit ask how do I restore a backup")
    assert "shelf restore latest" in answer
    assert f"{shown_prefix}docs/backup.md:" in answer
    for task, file in CODE_TASKS.items():
        assert first_location(shell.run(f"sennit plan {task}")).startswith(f"{shown_prefix}{file}:")
    assert f"{shown_prefix}src/client.py" in shell.run("sennit grep max_attempts")
    shell.visit("sennit tui how do I restore a backup", expect="docs/backup.md", leave=CTRL_Q)
    use_http(folder, f"reader of {shown_prefix}")
    anyio.run(use_mcp, folder)


def use_http(folder: Path, token_name: str) -> None:
    added = subprocess.run(
        [SENNIT, "tokens", "add", token_name, "--json"],
        cwd=folder,
        capture_output=True,
        check=True,
    )
    token = json.loads(added.stdout)["token"]
    with subprocess.Popen(
        [SENNIT, "serve", "--port", "0", "--json"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as server:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"]
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60) as client:
            for question, file in QUESTIONS.items():
                hits = client.post("/v1/search", json={"query": question, "limit": 1}).json()["hits"]
                assert hits[0]["path"].endswith(file), (question, hits)
            for task, file in CODE_TASKS.items():
                plan = client.post("/v1/plan", json={"query": task}).json()
                assert plan["entries"][0]["path"].endswith(file), (task, plan)
            assert (
                "shelf restore latest"
                in client.post("/v1/ask", json={"query": "how do I restore a backup"}).json()["text"]
            )
        server.terminate()


async def use_mcp(folder: Path) -> None:
    server = StdioServerParameters(command=SENNIT, args=["mcp"], cwd=folder, env=dict(os.environ))
    async with Client(stdio_client(server)) as client:

        async def call(tool: str, **arguments: object) -> str:
            result = await client.call_tool(tool, arguments)
            assert not result.is_error, result
            return "".join(getattr(block, "text", "") for block in result.content)

        for question, file in QUESTIONS.items():
            assert file in await call("hybrid_search", query=question, limit=1), question
        for task, file in CODE_TASKS.items():
            assert file in (await call("plan_context", query=task)).partition("```")[0]
        assert "max_attempts" in await call("grep_search", query="max_attempts")
        assert "installer" in await call("read_file", path="docs/install.md")


def record_ids(folder: Path) -> list[str]:
    exported = subprocess.run([SENNIT, "export"], cwd=folder, capture_output=True, text=True, check=True)
    _header, *lines = exported.stdout.splitlines()
    return [json.loads(line)["id"] for line in lines]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_interface_before_and_after_a_move_beside_a_second_writer(shell: Shell, tmp_path: Path) -> None:
    write_repository(tmp_path / "shelf")
    shell.run("sennit index shelf")
    use_every_interface(shell, tmp_path, "shelf/")
    before = len(record_ids(tmp_path))

    # A second process writes and indexes while the folder moves and is searched again.
    writer = subprocess.Popen(
        [SENNIT, "import", "-", "--quiet"], cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert writer.stdin is not None
    for number in range(200):
        writer.stdin.write(json.dumps({"id": f"log-{number}", "text": f"entry {number}"}).encode() + b"\n")
    writer.stdin.close()
    shell.run("mv shelf attic && sennit index attic")
    assert writer.wait(60) == 0
    shell.run("sennit index attic && sennit index attic")
    ids = record_ids(tmp_path)
    assert len(ids) == len(set(ids)) == before + 200, "nothing is twice, and nothing is lost"
    use_every_interface(shell, tmp_path, "attic/")

    (tmp_path / "attic" / "notes" / "call.md").unlink()
    shell.run("sennit index attic")
    assert "notes/call.md" not in shell.run("sennit search how does Ana pay")
    assert "removed" in shell.run("rm -r attic && sennit index .").lower()
    assert record_ids(tmp_path) == sorted(f"log-{number}" for number in range(200))
