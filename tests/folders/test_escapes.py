"""Attempts to read files outside the allowed folders: known payloads, generated paths, and races."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from folders.conftest import SECRET, code, fill
from sennit.folders import Folders, ReadError, safe_open

SWAP = """
import os, sys
os.chdir(sys.argv[1])
print("ready", flush=True)
while True:
    for kind in ("folder", "file"):
        os.symlink({"folder": "../outside", "file": "../outside/x.md"}[kind], "new")
        os.rename(kind, "kept-" + kind)
        os.rename("new", kind)
        os.unlink(kind)
        os.rename("kept-" + kind, kind)
"""
"""A script that keeps replacing a folder and a file by links to the outside, and back."""


def payloads(shared: Path, secret: Path) -> Iterator[str]:
    """Every known payload: as written, decoded once and twice, with other slashes, for three target files."""
    folder = shared / "security" / "patt_directory_traversal" / "Intruder"
    lines = [line for file in sorted(folder.glob("*.txt")) for line in file.read_bytes().splitlines()]
    for line in lines:
        for decoded in (line, unquote_to_bytes(line), unquote_to_bytes(unquote_to_bytes(line))):
            for target in ("secret.txt", str(secret).lstrip("/"), "etc/passwd"):
                text = decoded.decode("utf-8", "surrogateescape").replace("{FILE}", target)
                yield from (text, text.replace("\\", "/"), f"sub/{text}")


@pytest.mark.usefixtures("way")
def test_no_known_payload_reads_the_secret(root: Path, shared_data: Path) -> None:
    folders = Folders([root])
    tried = dict.fromkeys(payloads(shared_data, root.parent / "secret.txt"))
    assert len(tried) > 5000
    dangerous = 0
    for payload in tried:
        with pytest.raises(ReadError) as caught:
            folders.read(payload)
        assert caught.value.code in ("NOT_FOUND", "ACCESS_DENIED", "BAD_PATH", "IS_DIRECTORY"), payload
        try:
            dangerous += (root / payload).read_text() == SECRET
        except (OSError, ValueError):
            continue
    assert dangerous > 10, "these payloads would not even harm a careless reader"


PIECES = st.one_of(
    st.sampled_from(
        "a.md sub deep b.md .. ../.. . ~ $HOME %2e%2e ．． ..\\ secret.txt out out-folder out-absolute within loop up "
        "nowhere root root-too top / // \\ d.md ..; c:".split()
    ),
    st.text(max_size=8),
)
PATHS = st.builds(
    lambda start, pieces: start + "/".join(pieces),
    st.sampled_from(["", "/", "./", "ROOT/", "TOP/"]),
    st.lists(PIECES, max_size=8),
)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(os.path.realpath(tmp_path_factory.mktemp("made-up"))) / "top" / "root"
    fill(folder)
    return folder


@given(path=PATHS)
@example(path="ROOT/sub/up/../root/a.md")
@example(path="../root/a.md")
@example(path="out-folder/root/a.md")
def test_any_path_reads_only_files_inside(tree: Path, path: str) -> None:
    path = path.replace("ROOT", str(tree)).replace("TOP", str(tree.parent))
    try:
        found = Folders([tree]).read(path)
    except ReadError as error:
        if error.code == "NOT_FOUND":
            assert not (tree / path).is_file()
        return
    assert Path(found.path).is_relative_to(tree)
    assert found.path == os.path.realpath(tree / path)
    assert found.text == Path(found.path).read_text()
    assert SECRET not in found.text


@pytest.mark.usefixtures("way")
def test_link_swapped_in_during_a_read_gives_no_access(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    for folder, text in ((root / "folder", "mine"), (outside, SECRET)):
        folder.mkdir(parents=True)
        (folder / "x.md").write_text(text)
    (root / "file").write_text("mine")
    folders = Folders([root])
    seen: dict[str, int] = {}
    with subprocess.Popen(
        [sys.executable, "-c", SWAP, str(root)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as swapping:
        assert swapping.stdout is not None
        swapping.stdout.readline()
        try:
            reads = 0
            while reads < 2000 or not {"mine", "ACCESS_DENIED"} <= seen.keys():
                for path in ("folder/x.md", "file"):
                    try:
                        result = folders.read(path).text
                    except ReadError as error:
                        result = error.code
                    seen[result] = seen.get(result, 0) + 1
                    reads += 1
                assert swapping.poll() is None
        finally:
            swapping.kill()
    assert seen.keys() <= {"mine", "ACCESS_DENIED", "NOT_FOUND", "UNREADABLE"}, seen


def test_folder_replaced_by_a_link_is_no_longer_allowed(root: Path, tmp_path: Path) -> None:
    folders = Folders([root])
    assert folders.read("a.md").lines == 3
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "a.md").write_text(SECRET)
    root.rename(tmp_path / "moved")
    root.symlink_to(elsewhere)
    assert code(folders, "a.md") == "ACCESS_DENIED"
    root.unlink()
    (tmp_path / "top").rename(tmp_path / "old-top")
    (elsewhere / "root").mkdir()
    (elsewhere / "root" / "a.md").write_text(SECRET)
    (tmp_path / "top").symlink_to(elsewhere)
    assert code(folders, "a.md") == "NOT_FOUND"


def test_deep_folders_are_read_up_to_the_limit(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=tmp_path) as name:
        folder = Path(name)
        for _ in range(100):
            folder /= "d"
            folder.mkdir()
        (folder / "x.md").write_text("at the bottom")
        folders = Folders([name])
        assert folders.read("d/" * 100 + "x.md").text == "at the bottom"
        assert folders.read("d/" * 100 + "../" * 99 + "d/" * 99 + "x.md").text == "at the bottom"
        (folder / "around").symlink_to(name)
        assert code(folders, "d/" * 100 + "d/" * 400 + "x.md") == "NOT_FOUND"
        assert folders.read("d/" * 100 + "around/" + "d/" * 100 + "x.md").text == "at the bottom"


def test_path_deeper_than_the_limit_is_rejected(tmp_path: Path) -> None:
    top = os.open(tmp_path, os.O_RDONLY)
    here = os.dup(top)
    for _ in range(300):
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    os.close(top)
    assert code(Folders([tmp_path]), "d/" * 299 + "x.md") == "BAD_PATH"
    assert code(Folders([tmp_path]), "d/" * 200) == "IS_DIRECTORY"


def test_the_longest_names_are_read(root: Path) -> None:
    name = "n" * 252 + ".md"
    (root / name).write_text("long")
    assert Folders([root]).read(name).text == "long"
    assert code(Folders([root]), f"{name}x") == "BAD_PATH"


def test_name_is_spelled_as_stored_in_the_folder(root: Path) -> None:
    # Simulates a file system that finds a file by another spelling of its name.
    folder = os.open(root, os.O_RDONLY)
    try:
        assert safe_open._actual_name(folder, "\u00c1.md", (root / "a.md").lstat()) == "a.md"
    finally:
        os.close(folder)


def test_a_hard_link_in_another_case_is_a_name_of_its_own(root: Path) -> None:
    (root / "A.MD").hardlink_to(root / "a.md")
    folders = Folders([root], is_hidden=lambda path: path.name == "a.md")
    assert folders.read("A.MD").path == f"{os.path.realpath(root)}/A.MD"
    assert code(folders, "a.md") == "NOT_FOUND"
