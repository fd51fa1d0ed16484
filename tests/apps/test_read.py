"""`sennit read` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .conftest import Cli


@pytest.fixture
def notes(home: Path) -> Path:
    """A folder of notes, and a secret file next to it."""
    folder = home / "notes"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_bytes("one\r\nzwei ünd\nthree".encode())
    (folder / "sub" / "b.md").write_text("below\n")
    (folder / "binary").write_bytes(b"\0")
    (folder / "out").symlink_to("../secret.txt")
    (home / "secret.txt").write_text("secret")
    return folder


def test_prints_exactly_the_text(cli: Cli, notes: Path) -> None:
    done = cli("read", "notes/a.md", "--folder", "notes")
    assert (done.exit_code, done.stdout_bytes, done.stderr) == (0, (notes / "a.md").read_bytes(), "")


@pytest.mark.parametrize(
    ("lines", "text"),
    [("2-3", "zwei ünd\nthree"), ("2-", "zwei ünd\nthree"), ("1", "one\r\n"), ("3-9", "three")],
)
def test_lines_option_selects_lines(cli: Cli, notes: Path, lines: str, text: str) -> None:
    assert cli("read", "a.md", "--folder", "notes", "--lines", lines).stdout_bytes.decode() == text


def test_json_has_path_and_lines(cli: Cli, notes: Path) -> None:
    done = cli("read", "sub/../a.md", "--folder", "notes", "--lines", "2", "--json")
    assert json.loads(done.stdout) == {
        "path": "notes/a.md", "text": "zwei ünd\n", "first": 2, "last": 2, "lines": 3, "unit": "line",
    }  # fmt: skip


def test_path_is_relative_to_the_current_or_an_allowed_folder(
    cli: Cli, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (notes / "sub" / "a.md").write_text("nearer")
    for path in ("notes/a.md", "a.md", str(notes / "a.md")):
        assert cli("read", path, "--folder", "notes").stdout_bytes.startswith(b"one"), path
    monkeypatch.chdir(notes / "sub")
    assert cli("read", "a.md", "--folder", "..").stdout == "nearer"
    assert cli("read", "../a.md", "--folder", "..").stdout_bytes.startswith(b"one")


@pytest.mark.parametrize("options", [(), ("--folder", "../notes")], ids=["database", "folder"])
def test_a_citation_is_read_from_a_folder_beside_the_indexed_one(
    cli: Cli, home: Path, notes: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    cli("index", str(notes))
    (home / "beside").mkdir()
    monkeypatch.chdir(home / "beside")
    citation = json.loads(cli("search", "below", "--json").stdout)["hits"][0]["citation"]
    assert citation == "../notes/sub/b.md:1"
    done = cli("read", citation, *options)
    assert (done.exit_code, done.stdout) == (0, "below\n")


@pytest.mark.parametrize(
    ("path", "code", "status"),
    [
        ("missing.md", "NOT_FOUND", 3),
        ("../secret.txt", "ACCESS_DENIED", 7),
        ("notes/out", "ACCESS_DENIED", 7),
        ("/etc/passwd", "ACCESS_DENIED", 7),
        ("notes/sub", "IS_DIRECTORY", 7),
        ("notes/binary", "NOT_TEXT", 7),
        ("", "BAD_PATH", 2),
        ("a\udcff", "BAD_PATH", 2),
    ],
)
def test_refusal_prints_its_code_on_stderr(cli: Cli, notes: Path, path: str, code: str, status: int) -> None:
    done = cli("read", path, "--folder", "notes")
    assert (done.exit_code, done.stdout) == (status, "")
    assert done.stderr.startswith(f"[ERROR: {code}] ")
    in_json = cli("read", path, "--folder", "notes", "--json")
    assert in_json.exit_code == status
    error = json.loads(in_json.stderr)["error"]
    assert error["type"] == "ReadError"
    assert error["message"].startswith(f"[ERROR: {code}] ")


def test_invalid_line_ranges(cli: Cli, notes: Path) -> None:
    assert cli("read", "a.md", "--folder", "notes", "--lines", "9").stderr.startswith("[ERROR: BAD_RANGE]")
    assert cli("read", "a.md", "--folder", "notes", "--lines", "3-2").exit_code == 2
    done = cli("read", "a.md", "--folder", "notes", "--lines", "some")
    assert done.exit_code == 2
    assert "is not a range of lines such as 10-20" in done.stderr


def test_indexed_folders_are_allowed(cli: Cli, notes: Path) -> None:
    done = cli("read", "a.md")
    assert done.exit_code == 3
    assert "--folder" in done.stderr
    assert cli("index", "notes").exit_code == 0
    assert cli("read", "a.md").stdout_bytes.startswith(b"one")
    assert cli("read", "secret.txt").stderr.startswith("[ERROR: ACCESS_DENIED]")
