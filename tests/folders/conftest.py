"""Fixtures: an allowed folder, and a secret file next to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sennit.folders import Folders, ReadError, access

SECRET = "the secret beside the folder"


@pytest.fixture(params=[True, False], ids=["by steps", "by path"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Test both ways to open a file; a platform has one of them."""
    monkeypatch.setattr(access, "HAS_DIR_FD", request.param)
    return bool(request.param)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """top/root, which may be read. top/secret.txt next to it may not."""
    folder = tmp_path / "top" / "root"
    fill(folder)
    return folder


def fill(folder: Path) -> None:
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "a.md").write_text("one\ntwo\nthree\n")
    (folder / "sub" / "b.md").write_text("below")
    (folder / "sub" / "deep" / "c.md").write_text("far below")
    (folder.parent / "secret.txt").write_text(SECRET)
    (folder.parent / "root-too").mkdir()
    (folder.parent / "root-too" / "d.md").write_text(SECRET)
    (folder / "out").symlink_to("../secret.txt")
    (folder / "out-folder").symlink_to("..")
    (folder / "out-absolute").symlink_to(folder.parent / "secret.txt")
    (folder / "within").symlink_to("sub/deep/../b.md")
    (folder / "within-absolute").symlink_to(folder / "sub" / "b.md")
    (folder / "sub" / "up").symlink_to("..")
    (folder / "nowhere").symlink_to("not-there")
    (folder / "loop").symlink_to("loop")


def code_of(read: Callable[[], object]) -> str:
    """The code of the ReadError that a read raises; the message must begin with it."""
    with pytest.raises(ReadError) as caught:
        read()
    assert str(caught.value).startswith(f"[ERROR: {caught.value.code}] ")
    return caught.value.code


def code(folders: Folders, path: str, lines: tuple[int, int] | None = None) -> str:
    return code_of(lambda: folders.read(path, lines))
