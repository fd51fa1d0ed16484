"""An interrupted run that is started again gives the same database as an undisturbed run."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

import sennit
from ingest.conftest import contents_of, counts, write
from sennit.ingest import IndexInterrupted, IndexProgress, Scope, index, indexer
from sennit.stores.embedded.store import EmbeddedStore
from sennit.stores.embedded.transaction import EmbeddedTransaction

REAL_FILES = 10_000
PROGRAM = Path(__file__).with_name("run_index.py")


def fill(root: Path, seed: int, count: int = 120) -> None:
    chance = random.Random(seed)
    for n in range(count):
        paragraphs = [
            f"File {n}, part {p}: " + f"word{chance.randrange(999)} " * 60 for p in range(chance.randrange(9))
        ]
        write(root, {f"d{n % 7}/f{n}.{chance.choice(['md', 'txt', 'py'])}": "\n\n".join(paragraphs)})


def undisturbed(folder: Path, root: Path) -> dict[str, str]:
    with sennit.open(folder) as db:
        index(db, root)
        return contents_of(db)


def killed(folder: Path, root: Path, after: int) -> None:
    """Start an index run, and kill it after it has reported some files."""
    with subprocess.Popen(
        [sys.executable, str(PROGRAM), str(folder), str(root)], stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        for number, _ in enumerate(child.stdout):
            if number >= after:
                child.send_signal(signal.SIGKILL)
                break


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_random_and_run_again_gives_the_same_database(
    tmp_path: Path, root: Path, seed: int
) -> None:
    chance = random.Random(seed)
    fill(root, seed)
    expected = undisturbed(tmp_path / "calm.sennit", root)
    for _ in range(4):
        killed(tmp_path / "killed.sennit", root, chance.randrange(120))
    assert undisturbed(tmp_path / "killed.sennit", root) == expected

    # Again, after changes in the tree.
    for path in chance.sample(sorted(root.rglob("f*")), 30):
        action = chance.choice(["remove", "rename", "change"])
        if action == "remove":
            path.unlink()
        elif action == "rename":
            path.rename(path.with_name(f"new-{path.name}"))
        else:
            write(root, {str(path.relative_to(root)): f"{path.read_text()}\n\nOne more paragraph."})
    for _ in range(3):
        killed(tmp_path / "killed.sennit", root, chance.randrange(12))
    again = undisturbed(tmp_path / "killed.sennit", root)
    assert again == undisturbed(tmp_path / "fresh.sennit", root)
    with sennit.open(tmp_path / "killed.sennit") as db:
        assert index(db, root).records == 0


def test_ctrl_c_reports_progress_and_the_next_run_continues(
    tmp_path: Path, root: Path, db: sennit.Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexer, "BATCH_RECORDS", 10)
    fill(root, 1, 40)

    def stop(step: IndexProgress) -> None:
        if step.files == 20:
            raise KeyboardInterrupt

    with pytest.raises(IndexInterrupted) as caught:
        index(db, root, progress=stop)
    report = caught.value.report
    assert report.interrupted
    assert 0 < report.added <= 20
    assert report.records == len(db)
    rest = index(db, root)
    assert rest.added == 40 - report.added
    assert rest.unchanged == report.added
    assert contents_of(db) == undisturbed(tmp_path / "calm.sennit", root)


def test_failed_write_leaves_each_file_unchanged(
    db: sennit.Database, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, {"a.txt": "first text"})
    index(db, root)
    before = contents_of(db)
    write(root, {"a.txt": "second text", "b.txt": "another"})

    def fail(*_: object) -> None:
        raise OSError("the disk has gone")

    with monkeypatch.context() as patch:
        patch.setattr(EmbeddedTransaction, "_insert", fail)
        with pytest.raises(OSError, match="the disk has gone"):
            index(db, root)
    assert contents_of(db) == before
    assert counts(index(db, root)) == (1, 1, 0, 0, 0)


def test_two_concurrent_runs_give_the_same_result_as_one(tmp_path: Path, root: Path) -> None:
    fill(root, 3, 40)
    command = [sys.executable, str(PROGRAM), str(tmp_path / "shared.sennit"), str(root)]
    runs = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [run.wait() for run in runs] == [0, 0]
    with sennit.open(tmp_path / "shared.sennit") as db:
        assert contents_of(db) == undisturbed(tmp_path / "calm.sennit", root)


def real_files(root: Path, count: int, leave_out: Callable[[str], NoReturn]) -> None:
    """Copy `count` source files of installed libraries into a new tree."""
    paths = sysconfig.get_paths()
    homes = [Path(paths[name]).resolve() for name in ("stdlib", "purelib", "platlib")]
    found = sorted({path for home in homes for path in home.rglob("*.py") if path.is_file()})
    if len(found) < count:
        leave_out(f"there are {len(found):,} source files here, not {count:,}")
    for number, path in enumerate(found[:count]):
        copy = root / f"d{number % 97}" / f"{number}-{path.name}"
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, copy)


def vectors_of(db: sennit.Database) -> tuple[int, int, float]:
    assert isinstance(db.store, EmbeddedStore)
    with db.store.pool.read() as connection:
        found: tuple[int, int, float] = connection.execute(
            "SELECT count(*), max(number), max(created) FROM vectors"
        ).fetchone()
    return found


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_real_files_killed_at_random(
    tmp_path: Path, root: Path, leave_out: Callable[[str], NoReturn]
) -> None:
    real_files(root, REAL_FILES, leave_out)
    expected = undisturbed(tmp_path / "calm.sennit", root)
    chance = random.Random(0)
    for _ in range(6):
        killed(tmp_path / "killed.sennit", root, chance.randrange(REAL_FILES))
    assert undisturbed(tmp_path / "killed.sennit", root) == expected
    with sennit.open(tmp_path / "killed.sennit") as db:
        before = vectors_of(db)
        assert index(db, root).records == 0
        assert vectors_of(db) == before
        assert not db.store.notices


@pytest.mark.slow
def test_thousands_of_real_files(tmp_path: Path) -> None:
    libraries = Path(sysconfig.get_paths()["stdlib"])
    with sennit.open(tmp_path / "real.sennit", embedding__provider="none") as db:
        scope = Scope(exclude=("site-packages/", "test/", "tests/"), default_ignores=False)
        report = index(db, libraries, scope=scope)
        assert report.seen > 2000
        assert report.added > 500
        by_path: dict[str, list[sennit.Record]] = {}
        for record in db:
            if record.collection != "code_files":
                by_path.setdefault(record.path or "", []).append(record)
        exact = 0
        for path, found in by_path.items():
            if not path.endswith(".py") or any("encoding" in record.metadata for record in found):
                continue
            lines = (
                (libraries / path)
                .read_bytes()
                .removeprefix(b"\xef\xbb\xbf")
                .decode("utf-8", "replace")
                .split("\n")
            )
            seen = set[int]()
            for record in found:
                assert record.lines is not None
                first, last = record.lines
                seen.update(range(first, last + 1))
                source = "\n".join(line.removesuffix("\r") for line in lines[first - 1 : last])
                # A long entity leaves out the bodies of those inside it.
                if record.text.count("\n") == last - first and "…" not in record.text:
                    exact += 1
                    assert record.text == source or (first == last and record.text in source), record.id
            assert all(number in seen for number, line in enumerate(lines, 1) if line.strip()), path
        assert exact > 10_000
        again = index(db, libraries, scope=scope)
        assert (again.records, again.added, again.updated, again.removed) == (0, 0, 0, 0)
        assert not any(Path(path).is_absolute() for path in by_path)
