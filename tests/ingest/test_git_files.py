"""The revision of a folder, read from the files of git and compared with what git itself says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ingest.git_repository import commit_all, git, new_repository
from sennit.ingest.git_files import read_revision
from sennit.places import Revision


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = new_repository(tmp_path / "service")
    (folder / "src").mkdir()
    (folder / "src" / "app.py").write_text("def main(): pass\n")
    (folder / "read me.md").write_text("# Service\n")
    (folder / "link").symlink_to("read me.md")
    commit_all(folder, "Start")
    return folder


def head(folder: Path) -> str:
    return git(folder, "rev-parse", "HEAD")


def revision(folder: Path) -> Revision:
    found = read_revision(os.path.realpath(folder))
    assert found is not None
    return found


def test_commit_branch_and_a_clean_tree(repository: Path) -> None:
    assert revision(repository) == Revision(head(repository), "main", dirty=False)
    assert str(revision(repository)) == f"main@{head(repository)[:8]}"
    assert revision(repository / "src") == revision(repository)


@pytest.mark.parametrize("version", ["2", "4"])
def test_packed_references_and_other_versions_of_the_index(repository: Path, version: str) -> None:
    git(repository, "switch", "--quiet", "--create", "team/feature")
    git(repository, "pack-refs", "--all", "--prune")
    git(repository, "update-index", "--index-version", version)
    assert revision(repository) == Revision(head(repository), "team/feature", dirty=False)


def test_a_detached_head_has_no_branch(repository: Path) -> None:
    git(repository, "switch", "--quiet", "--detach")
    assert revision(repository) == Revision(head(repository), "", dirty=False)
    assert str(revision(repository)) == head(repository)[:8]


def test_a_worktree_has_its_own_head(repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(repository, "worktree", "add", "--quiet", "-b", "fix", str(other))
    (other / "new.py").write_text("x = 1\n")
    commit_all(other, "Add")
    assert revision(other) == Revision(head(other), "fix", dirty=False)
    assert revision(repository) == Revision(head(repository), "main", dirty=False)


def test_a_changed_a_deleted_and_a_staged_file_are_dirty_and_an_untracked_one_is_not(
    repository: Path,
) -> None:
    (repository / "untracked.txt").write_text("not of this commit\n")
    assert revision(repository).dirty is False
    (repository / "src" / "app.py").write_text("def main(): fail\n")  # of the same length
    assert revision(repository).dirty is True
    assert str(revision(repository)).endswith("-dirty")
    git(repository, "add", "src/app.py")
    assert revision(repository).dirty is True
    commit_all(repository, "Change")
    assert revision(repository).dirty is False
    (repository / "read me.md").unlink()
    assert revision(repository).dirty is True
    # What is outside of the indexed folder does not count.
    assert revision(repository / "src").dirty is False


def test_touching_a_file_does_not_make_it_dirty(repository: Path) -> None:
    os.utime(repository / "src" / "app.py", (1, 1))
    assert revision(repository).dirty is False


def test_no_repository_and_no_commit_have_no_revision(tmp_path: Path) -> None:
    assert read_revision(os.path.realpath(tmp_path)) is None
    assert read_revision(os.path.realpath(new_repository(tmp_path / "empty"))) is None


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("HEAD", b"\x00\xff garbage"),
        ("HEAD", b"ref: ../../../etc/passwd\n"),
        ("HEAD", b"ref: HEAD\n"),
        ("index", b"DIRC\x00\x00\x00\x02\xff\xff\xff\xff"),
        ("index", b""),
        ("index", b"PACK" + bytes(100)),
    ],
)
def test_broken_files_leave_the_revision_unknown(repository: Path, name: str, content: bytes) -> None:
    (repository / ".git" / name).write_bytes(content)
    found = read_revision(os.path.realpath(repository))
    assert found is None if name == "HEAD" else found is not None and found.dirty is None


def test_a_command_in_the_configuration_of_a_repository_is_not_run(repository: Path, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    git(repository, "config", "core.fsmonitor", f"touch {mark}; false")
    assert revision(repository).dirty is False
    assert not mark.exists()
