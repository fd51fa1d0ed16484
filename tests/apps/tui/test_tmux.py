"""The program in a real terminal (tmux), used by keys and checked by what is on the screen."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

import sennit

from .harness import TIMEOUT_SECONDS

pytestmark = pytest.mark.slow

SENNIT = Path(sys.executable).with_name("sennit")


class Terminal:
    """A separate tmux server with one window."""

    def __init__(self, folder: Path, size: tuple[int, int] = (80, 24)) -> None:
        self._socket = str(folder / "tmux.socket")
        width, height = (str(number) for number in size)
        environment = {"HOME": str(folder), "HISTFILE": "", "LC_ALL": "C.UTF-8"}
        variables = [word for name, value in environment.items() for word in ("-e", f"{name}={value}")]
        shell = "bash --norc --noprofile"
        self._tmux(
            "-f", "/dev/null", "new-session", "-d", "-x", width, "-y", height, *variables, shell, cwd=folder
        )
        # The keys of an escape sequence arrive together, so tmux need not wait after an Escape.
        self._tmux("set-option", "-s", "escape-time", "0")

    def _tmux(self, *arguments: str, cwd: Path | None = None) -> str:
        command = ["tmux", "-S", self._socket, *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True, cwd=cwd).stdout

    def keys(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def write(self, text: str) -> None:
        self._tmux("send-keys", "-l", text)

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-x", str(width), "-y", str(height))

    def screen(self, *, colours: bool = False) -> str:
        return self._tmux("capture-pane", "-p", *(["-e"] if colours else []))

    def until(self, holds: Callable[[str], bool]) -> str:
        end = time.monotonic() + 2 * TIMEOUT_SECONDS
        while not holds(screen := self.screen()):
            assert time.monotonic() < end, f"timed out; the screen is\n{screen}"
            time.sleep(0.02)
        return screen

    def close(self) -> None:
        self._tmux("kill-server")


@pytest.fixture
def terminal(
    database: sennit.Database, folder: Path, leave_out: Callable[[str], NoReturn]
) -> Iterator[Terminal]:
    """A terminal in the folder of the sample files."""
    if shutil.which("tmux") is None:
        leave_out("tmux is not installed; scripts/tools.sh installs it")
    opened = Terminal(folder)
    try:
        opened.until(lambda screen: bool(screen.strip()))
        yield opened
    finally:
        opened.close()


def start(terminal: Terminal, *options: str, before: str = "") -> None:
    terminal.write(f"{before}{shlex.join([str(SENNIT), 'tui', *options])}; echo code=$?")
    terminal.keys("Enter")


def test_search_read_explain_and_quit(terminal: Terminal) -> None:
    start(terminal)
    terminal.until(lambda screen: "Type a question" in screen)
    terminal.write("restore a file")
    screen = terminal.until(lambda screen: "19 ▌ ## Restore a file" in screen)
    assert "docs/backup.md:19-24" in screen
    assert "characters, 8 chunks found" in screen
    terminal.keys("Enter")
    terminal.write("j")
    terminal.until(lambda screen: "2 of 8" in screen)
    terminal.write("e")
    screen = terminal.until(lambda screen: "why rank 2" in screen and "fused" in screen)
    assert "keyword" in screen
    terminal.write("er")
    terminal.until(lambda screen: "Exact words only." in screen)
    terminal.keys("Up", "Enter")
    terminal.until(lambda screen: screen.startswith(" grep ❯ restore a file"))
    terminal.write("/")
    terminal.keys("C-u")
    terminal.write("shutil.copy2")
    terminal.until(
        lambda screen: "2×" in screen and "1 file matched" in screen and "src/copy.py:1-14" in screen
    )
    terminal.keys("Enter")
    terminal.until(lambda screen: "/ search" in screen)
    terminal.write("?")
    terminal.until(lambda screen: "open the file in $EDITOR" in screen)
    terminal.keys("Escape")
    terminal.until(lambda screen: "open the file in $EDITOR" not in screen)
    terminal.write("q")
    screen = terminal.until(lambda screen: "code=0" in screen)
    assert "❯" not in screen, "the terminal is restored"


def test_editor_opens_the_file_at_the_line(terminal: Terminal, folder: Path) -> None:
    editor = folder / "editor.sh"
    editor.write_text('#!/bin/bash\necho "opened $*"; read -r\n')
    editor.chmod(0o755)
    start(terminal, "calendar", "--recipe", "keyword", before=f"EDITOR={editor} ")
    terminal.until(lambda screen: "19 ▌ ## Restore a file" in screen)
    terminal.write("o")
    terminal.until(lambda screen: f"opened +19 {folder / 'docs' / 'backup.md'}"[:79] in screen)
    terminal.keys("Enter")
    terminal.until(lambda screen: "19 ▌ ## Restore a file" in screen)
    terminal.keys("C-c")
    terminal.until(lambda screen: "code=0" in screen)


def test_window_can_be_resized(terminal: Terminal) -> None:
    start(terminal, "calendar", "--recipe", "keyword")
    terminal.until(lambda screen: "19 ▌ ## Restore a file" in screen)
    terminal.resize(140, 50)
    screen = terminal.until(lambda screen: "││" in screen)
    assert max(len(line) for line in screen.splitlines()) == 140
    terminal.resize(60, 15)
    terminal.until(lambda screen: "││" not in screen and "21 ▌ Open the calendar" in screen)


@pytest.mark.parametrize("kind", ["xterm", "xterm-256color", "screen", "linux"])
def test_only_the_sixteen_terminal_colours_are_used(terminal: Terminal, kind: str) -> None:
    start(terminal, "calendar", "--recipe", "keyword", before=f"TERM={kind} ")
    terminal.until(lambda screen: "19 ▌ ## Restore a file" in screen)
    drawn = terminal.screen(colours=True)
    assert "\x1b[1m\x1b[31m" in drawn, "matches are bold and red"
    assert "38;2;" not in drawn
    assert "38;5;" not in drawn
    assert "\x1b[4" not in drawn.replace("\x1b[49m", "").replace("\x1b[4m", ""), "no background colour"


def test_no_color_disables_colours(terminal: Terminal) -> None:
    start(terminal, "calendar", "--recipe", "keyword", before="NO_COLOR=1 ")
    terminal.until(lambda screen: "19 ▌ ## Restore a file" in screen)
    drawn = terminal.screen(colours=True)
    assert not [code for code in range(30, 38) if f"\x1b[{code}m" in drawn or f";{code}m" in drawn]
    assert "\x1b[1m" in drawn


def test_control_characters_of_a_record_are_not_sent_to_the_terminal(
    terminal: Terminal, database: sennit.Database
) -> None:
    database.add(
        [sennit.Record(id="x", text="xylophone \x1b]0;owned\x07\x1b[2J\x1b[31m [bold]x[/bold] \u202egnp")]
    )
    start(terminal, "xylophone", "--recipe", "keyword")
    screen = terminal.until(lambda screen: "1 chunk found" in screen)
    assert "xylophone \ufffd]0;owned\ufffd\ufffd[2J\ufffd[31m [bold]x[/bold] \ufffdgnp" in screen
    assert "keyword ❯ xylophone" in screen
