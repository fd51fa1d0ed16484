"""BackgroundWatch: the database follows every change on disk."""

from __future__ import annotations

import os
import random
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

import pytest

import sennit
from ingest.conftest import contents_of, locked, paths_of, write
from ingest.git_repository import commit_all, git, new_repository
from sennit.errors import MissingExtra, NotFound, SourceError, StoreError
from sennit.ingest import IndexReport, Scope, index, watch
from sennit.ingest.watch import WatchedPaths

TIMEOUT_SECONDS = 60
"""Seconds wait_until a test fails; it continues as soon as the expected state is reached."""


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the expected state was not reached"
        time.sleep(0.005)


class BackgroundWatch:
    """A watch in its own thread; records the visited paths and the reports."""

    def __init__(self, db: sennit.Database, *paths: Path, scope: Scope | None = None) -> None:
        self.visited: list[frozenset[str] | None] = []
        self.reports: list[IndexReport] = []
        self.failures: list[Exception] = []
        self.errors: list[Exception] = []
        """Errors to raise in the next rounds, one in each."""
        self._db = db
        self._scope = scope or Scope()
        self._watched = WatchedPaths.resolve(
            paths, hidden=self._scope.hidden, skip_folders=[db.path] if db.path is not None else []
        )
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _round(self, roots: Sequence[str], only: frozenset[str] | None) -> IndexReport:
        self.visited.append(only)
        if self.errors:
            raise self.errors.pop()
        return index(self._db, roots, scope=self._scope, only=only)

    def _run(self) -> None:
        for report in watch.watch(self._round, self._watched, self._stop, on_error=self.failures.append):
            self.reports.append(report)

    def __enter__(self) -> BackgroundWatch:
        self._thread.start()
        wait_until(lambda: bool(self.reports))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(TIMEOUT_SECONDS)
        assert not self._thread.is_alive()

    def wait_until_files_are(self, root: Path, *names: str) -> None:
        wait_until(lambda: paths_of(self._db, root) == set(names))


@pytest.fixture
def watching(db: sennit.Database, root: Path) -> Iterator[BackgroundWatch]:
    write(root, {"a.md": "alpha", "sub/b.md": "beta", "sub/c.md": "gamma"})
    with BackgroundWatch(db, root) as started:
        yield started


def test_first_round_indexes_everything(watching: BackgroundWatch, db: sennit.Database, root: Path) -> None:
    assert paths_of(db, root) == {"a.md", "sub/b.md", "sub/c.md"}
    assert watching.visited == [None]
    assert watching.reports[0].added == 3


def test_saved_file_is_indexed_and_no_other_is_visited(
    watching: BackgroundWatch, db: sennit.Database, root: Path
) -> None:
    (root / "a.md").write_text("the ferry leaves at noon")
    wait_until(lambda: [hit.text for hit in db.search("ferry", limit=1)] == ["the ferry leaves at noon"])
    wait_until(lambda: len(watching.reports) > 1)
    assert (watching.reports[1].seen, watching.reports[1].updated) == (1, 1)
    assert {place for visited in watching.visited[1:] for place in visited or ()} == {
        os.path.realpath(root / "a.md")
    }


def test_an_atomic_save_a_rename_and_a_removal(
    watching: BackgroundWatch, db: sennit.Database, root: Path
) -> None:
    (root / ".a.md.swap").write_text("alpha, saved as editors do")
    (root / ".a.md.swap").replace(root / "a.md")
    wait_until(lambda: any("as editors do" in record.text for record in db))
    (root / "sub" / "b.md").rename(root / "sub" / "d.md")
    watching.wait_until_files_are(root, "a.md", "sub/d.md", "sub/c.md")
    (root / "sub" / "c.md").unlink()
    watching.wait_until_files_are(root, "a.md", "sub/d.md")


def test_folders_are_moved_deleted_and_created(watching: BackgroundWatch, root: Path) -> None:
    (root / "sub").rename(root / "moved")
    watching.wait_until_files_are(root, "a.md", "moved/b.md", "moved/c.md")
    (root / "moved" / "more.md").write_text("more")
    watching.wait_until_files_are(root, "a.md", "moved/b.md", "moved/c.md", "moved/more.md")
    shutil.rmtree(root / "moved")
    watching.wait_until_files_are(root, "a.md")
    (root / "new" / "deep").mkdir(parents=True)
    (root / "new" / "deep" / "e.md").write_text("epsilon")
    watching.wait_until_files_are(root, "a.md", "new/deep/e.md")


def test_watched_folder_may_be_deleted_and_created_again(watching: BackgroundWatch, root: Path) -> None:
    root.rename(root.with_name("elsewhere"))
    watching.wait_until_files_are(root)
    write(root, {"new.md": "new"})
    watching.wait_until_files_are(root, "new.md")
    (root / "later.md").write_text("later")
    watching.wait_until_files_are(root, "new.md", "later.md")


def test_single_file_is_watched_across_atomic_saves(db: sennit.Database, root: Path) -> None:
    write(root, {"one.md": "first", "other.md": "other"})
    with BackgroundWatch(db, root / "one.md") as watching:
        for text in ("second", "third"):
            (root / "new").write_text(text)
            (root / "new").replace(root / "one.md")
            wait_until(lambda text=text: [record.text for record in db] == [text])  # type: ignore[misc]
        (root / "one.md").unlink()
        watching.wait_until_files_are(root)


def test_a_burst_of_a_thousand_files(watching: BackgroundWatch, db: sennit.Database, root: Path) -> None:
    for number in range(1000):
        (root / f"burst-{number}.md").write_text(f"file {number}")
    wait_until(lambda: len(db) == 1003)
    assert len(paths_of(db, root)) == 1003


def test_file_that_cannot_be_indexed_does_not_stop_the_watch(
    watching: BackgroundWatch, db: sennit.Database, root: Path
) -> None:
    (root / "broken.md").write_bytes(b"\0\1\2")
    wait_until(lambda: any(report.skipped for report in watching.reports))
    (root / "fine.md").write_text("fine")
    watching.wait_until_files_are(root, "a.md", "sub/b.md", "sub/c.md", "fine.md")


def test_changed_ignore_file_takes_effect(watching: BackgroundWatch, db: sennit.Database, root: Path) -> None:
    (root / ".gitignore").write_text("*.log\nsub/\n")
    watching.wait_until_files_are(root, "a.md")
    (root / "x.log").write_text("ignored")
    (root / "sub" / "e.md").write_text("ignored")
    (root / "wanted.md").write_text("wanted")
    watching.wait_until_files_are(root, "a.md", "wanted.md")
    (root / ".gitignore").write_text("*.log\n")
    watching.wait_until_files_are(root, "a.md", "wanted.md", "sub/b.md", "sub/c.md", "sub/e.md")
    assert not any("x.log" in path for report in watching.reports for path, _ in report.skipped)


def test_names_that_are_not_utf_8_are_watched(
    watching: BackgroundWatch, db: sennit.Database, root: Path
) -> None:
    Path(os.fsdecode(os.fsencode(root) + b"/caf\xe9.md")).write_text("noir")
    wait_until(lambda: any(record.text == "noir" for record in db))


def test_writes_of_the_database_itself_are_ignored(root: Path) -> None:
    write(root, {"a.md": "alpha"})
    with (
        sennit.open(root / "own.sennit") as db,
        BackgroundWatch(db, root, scope=Scope(hidden=True)) as watching,
    ):
        for number in range(5):
            db.add([sennit.Record(id=f"r{number}", text="written by hand")])
            (root / "a.md").write_text(f"alpha {number}")
            wait_until(lambda number=number: any(r.text == f"alpha {number}" for r in db))  # type: ignore[misc]
    assert {place for visited in watching.visited[1:] for place in visited or ()} == {
        os.path.realpath(root / "a.md")
    }


def test_failed_round_is_reported_and_repeated(
    watching: BackgroundWatch, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "RETRY_SECONDS", 0.01)
    watching.errors = [StoreError("for the moment"), OSError("no space left")]
    (root / "new.md").write_text("new")
    watching.wait_until_files_are(root, "a.md", "sub/b.md", "sub/c.md", "new.md")
    assert [str(error) for error in watching.failures] == ["no space left", "for the moment"]


def test_first_round_raises_errors(db: sennit.Database, tmp_path: Path) -> None:
    def rounds(roots: Sequence[str], only: frozenset[str] | None) -> IndexReport:
        return index(db, roots, only=only)

    with pytest.raises(NotFound, match="There is no file or folder"):
        next(watch.watch(rounds, WatchedPaths.resolve([tmp_path / "nowhere"]), threading.Event()))


def test_a_missing_package_is_named(db: sennit.Database, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sennit\[watch\]'"):
        next(watch.watch(lambda *_: IndexReport(), WatchedPaths.resolve([root]), threading.Event()))


def test_which_changes_matter(root: Path) -> None:
    watched = WatchedPaths.resolve([root], skip_folders=[root / "own.sennit"])
    real = os.path.realpath(root)
    for name in ("a.md", "sub/a.md", ".gitignore", "sub/.sennitignore", "sennit.toml"):
        assert watched.is_relevant(f"{real}/{name}")
    for name in (
        "own.sennit/sennit.db",
        ".git/index",
        "sub/.git/HEAD",
        ".hidden",
        ".venv/x",
        ".venv/.gitignore",
    ):
        assert not watched.is_relevant(f"{real}/{name}")
    assert not watched.is_relevant(f"{real}-too/a.md")
    assert WatchedPaths.resolve([root], hidden=True).is_relevant(f"{real}/.hidden")
    assert not WatchedPaths.resolve([root], hidden=True).is_relevant(f"{real}/.git/index")


# Rounds over some paths


@pytest.mark.parametrize("seed", range(8))
def test_indexing_changes_gives_the_same_result_as_a_full_run(
    tmp_path: Path, root: Path, db: sennit.Database, seed: int
) -> None:
    chance = random.Random(seed)
    names = [
        f"{folder}f{number}.{kind}"
        for folder in ("", "d/", "d/e/", "g/")
        for number in range(3)
        for kind in ("md", "log")
    ]
    write(root, {name: f"{name} at first" for name in names} | {"d/.gitignore": "*.log"})
    scope = Scope(exclude=("/g/f1.*",), include=("*.md", "*.log"))
    index(db, root, scope=scope)
    real = Path(os.path.realpath(root))
    for turn in range(6):
        changed = set[str]()
        for name in chance.sample(names, 5):
            path = real / name
            changed.add(str(path))
            if not path.exists() or chance.random() < 0.5:
                write(real, {name: f"{name} in turn {turn}"})
            else:
                path.unlink()
        if chance.random() < 0.4:
            folder = real / chance.choice(["d", "d/e", "g"])
            shutil.rmtree(folder, ignore_errors=True)
            changed.add(str(folder))
        index(db, root, scope=scope, only=changed)
        with sennit.open(tmp_path / f"whole-{turn}") as whole:
            index(whole, root, scope=scope)
            assert contents_of(db).keys() == contents_of(whole).keys()


def test_subtree_outside_the_roots_is_ignored(db: sennit.Database, root: Path) -> None:
    write(root, {"a/x.md": "x", "b/y.md": "y"})
    real = os.path.realpath(root)
    assert index(db, root / "a", only=[f"{real}/b/y.md", f"{real}/b"]).seen == 0
    assert index(db, root / "a", only=[real]).added == 1
    assert index(db, root / "b" / "y.md", only=[f"{real}/b"]).added == 1


def test_records_of_inaccessible_paths_stay(db: sennit.Database, root: Path) -> None:
    write(root, {"sub/b.md": "beta"})
    index(db, root)
    with locked(root / "sub"):
        index(db, root, only=[f"{os.path.realpath(root)}/sub"])
    assert paths_of(db, root) == {"sub/b.md"}


def test_a_system_that_refuses_to_watch_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> Iterator[set[tuple[int, str]]]:
        raise OSError("no more watches")

    monkeypatch.setattr("watchfiles.watch", refuse)
    with pytest.raises(SourceError, match="cannot be watched: no more watches"):
        next(watch.watch(lambda *_: IndexReport(), WatchedPaths.resolve([root]), threading.Event()))


def test_a_branch_switch_and_a_commit_are_followed(db: sennit.Database, tmp_path: Path) -> None:
    folder = new_repository(tmp_path / "service")
    write(folder, {"a.md": "alpha", "b.md": "beta"})
    commit_all(folder, "Start")
    git(folder, "switch", "--quiet", "--create", "feature")
    write(folder, {"b.md": "another beta", "c.md": "gamma"})
    commit_all(folder, "Change")

    def revision() -> str:
        return str(db.indexed_folders.places().folders[0].revision)

    with BackgroundWatch(db, folder) as watching:
        assert revision() == f"feature@{git(folder, 'rev-parse', 'HEAD')[:8]}"
        git(folder, "switch", "--quiet", "main")
        watching.wait_until_files_are(folder, "a.md", "b.md")
        main = git(folder, "rev-parse", "HEAD")
        wait_until(lambda: revision() == f"main@{main[:8]}")
        git(folder, "commit", "--quiet", "--allow-empty", "--message", "Nothing changes")
        empty = git(folder, "rev-parse", "HEAD")
        wait_until(lambda: revision() == f"main@{empty[:8]}")
