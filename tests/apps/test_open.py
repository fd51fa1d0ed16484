"""`sennit open` where something is missing or taken: it says the address, or what to do."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

import sennit
from apps.http.conftest import PROGRAM, wait_until

SCREENS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION")
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is always a screen")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    with sennit.open(tmp_path / ".sennit") as db:
        db.add([{"id": "a", "text": "The plumber comes on Tuesday."}])
    return tmp_path


@contextlib.contextmanager
def run_open(folder: Path, *options: str, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Run `sennit open` with no screen but that of the variables."""
    kept = {name: value for name, value in os.environ.items() if name not in SCREENS}
    with subprocess.Popen(
        [PROGRAM, "open", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        env={**kept, **variables},
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def read_line(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    return process.stderr.readline()


def read_address(process: subprocess.Popen[str]) -> str:
    words = read_line(process).split()
    assert (words[0], words[2:]) == ("Open", ["(Ctrl-C", "stops)"])
    return words[1]


def test_browser_of_the_environment_gets_the_address(database: Path) -> None:
    seen = database / "seen"
    browser = database / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > "{seen}.new" && mv "{seen}.new" "{seen}"\n')
    browser.chmod(0o755)
    with run_open(database, "--port", "0", BROWSER=f"{browser} %s") as process:
        address = read_address(process)
        wait_until(seen.exists, "the browser")
        assert seen.read_text() == address


def test_a_quiet_start_prints_the_address_alone(database: Path) -> None:
    with run_open(database, "--port", "0", "--quiet", "--no-browser") as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("http://127.0.0.1:")


def test_a_browser_that_does_not_start_is_said(database: Path) -> None:
    with run_open(database, "--port", "0", BROWSER=str(database / "missing")) as process:
        read_address(process)
        assert "open the address yourself" in read_line(process)


@on_linux
def test_without_a_screen_the_address_is_for_the_person_to_open(database: Path) -> None:
    with run_open(database, "--port", "0") as process:
        address = read_address(process)
        assert "open the address yourself" in read_line(process)
        with urllib.request.urlopen(address.partition("#")[0]) as response:
            assert response.status == 200


@on_linux
def test_over_ssh_the_port_to_forward_is_named(database: Path) -> None:
    with run_open(database, "--port", "0", SSH_CONNECTION="10.0.0.2 5 10.0.0.3 22") as process:
        port = read_address(process).split("/#")[0].rpartition(":")[2]
        assert f"'ssh -L {port}:127.0.0.1:{port} HOST'" in read_line(process)


def test_a_taken_port_is_said_with_what_to_do(database: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with run_open(database, "--no-browser", "--port", str(port)) as process:
            error = read_line(process)
            assert process.wait() == 2
    assert (
        f"port {port}: Address already in use. Choose another port with --port; 0 picks a free one." in error
    )


def test_without_a_database_the_command_that_creates_one_is_named(tmp_path: Path) -> None:
    with run_open(tmp_path, "--no-browser", "--port", "0", "--db", "nothing") as process:
        error = read_line(process)
        assert process.wait() == 3
    assert "There is no sennit database in" in error
    assert "'sennit index'" in error
