"""Branches: going to another branch embeds what is new there, and going back embeds nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import sennit
from ingest.git_repository import commit_all, git, new_repository
from stores.postgres.conftest import new_database, server

__all__ = ["new_database", "server"]

FILES = 20
CHANGED = 5


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.servers)])
def target(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a new database is: a folder, or a connection string."""
    if request.param == "sqlite":
        return str(tmp_path / "db")
    monkeypatch.setenv("SENNIT_CACHE", str(tmp_path / "cache"))
    create: Callable[[], str] = request.getfixturevalue("new_database")
    return create()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of 20 files; the branch `feature` changes five of them and adds one."""
    folder = new_repository(tmp_path / "service")
    for number in range(FILES):
        write(folder, number, "main")
    commit_all(folder, "Start")
    git(folder, "switch", "--quiet", "--create", "feature")
    for number in range(CHANGED):
        write(folder, number, "feature")
    write(folder, FILES, "feature")
    commit_all(folder, "Change some")
    git(folder, "switch", "--quiet", "main")
    return folder


def write(folder: Path, number: int, branch: str) -> None:
    text = f"def step_{number}():\n    return 'the {branch} step number {number}'\n"
    (folder / f"step_{number}.py").write_text(text)


def test_going_back_to_a_branch_embeds_nothing(target: str, repository: Path) -> None:
    with sennit.open(target) as db:
        first = db.index(repository)
        git(repository, "switch", "--quiet", "feature")
        there = db.index(repository)
        git(repository, "switch", "--quiet", "main")
        back = db.index(repository)
        git(repository, "switch", "--quiet", "feature")
        again = db.index(repository)
        assert first.embedded >= FILES
        assert there.embedded <= 2 * (CHANGED + 1) < first.embedded
        assert (there.updated, there.added) == (CHANGED, 1)
        assert (back.updated, back.removed, back.embedded) == (CHANGED, 1, 0)
        assert (again.updated, again.added, again.embedded) == (CHANGED, 1, 0)
        assert not db.store.has_pending_vectors()
        assert db.search("the feature step number 3", limit=1)[0].path == "step_3.py"
        assert all(finding.level != "problem" for finding in db.admin.check())


def test_a_second_worktree_reuses_the_embeddings(target: str, repository: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(repository, "worktree", "add", "--quiet", str(other), "feature")
    with sennit.open(target) as db:
        first = db.index(repository)
        second = db.index(other)
        assert second.added == FILES + 1
        assert second.embedded < first.embedded / 2


def test_a_removal_on_request_deletes_vectors_at_once_with_those_of_earlier_versions(
    target: str, repository: Path
) -> None:
    with sennit.open(target) as db:
        db.index(repository)
        before = len(list(db.store.models.known_hashes(db.admin.current_models()[0].fingerprint)))
        write(repository, 0, "second")
        db.index(repository)
        assert db.admin.unused_vectors().count
        db.remove([record.id for record in db if record.path == "step_0.py"])
        assert db.admin.unused_vectors().count == 0
        left = len(list(db.store.models.known_hashes(db.admin.current_models()[0].fingerprint)))
        assert left < before


def test_unused_vectors_are_deleted_after_their_time_and_beyond_their_size(
    target: str, repository: Path
) -> None:
    with sennit.open(target, ingest__unused_vector_days=0) as db:
        db.index(repository)
        git(repository, "switch", "--quiet", "feature")
        db.index(repository)
        assert db.admin.unused_vectors().count == 0
    with sennit.open(target, ingest__unused_vector_bytes=1000) as db:
        git(repository, "switch", "--quiet", "main")
        db.index(repository)
        assert 0 < db.admin.unused_vectors().bytes <= 1000
        assert db.admin.optimise() > 0
        assert db.status().unused_vectors.count == 0
        assert all(finding.level != "problem" for finding in db.admin.check())
