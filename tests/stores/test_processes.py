"""Several processes write and search one database: no error, nothing lost, each sees its own writes at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import sennit
from sennit import Record

from .helpers import assert_holds, numbered

TESTS = Path(__file__).resolve().parent.parent


def share(folder: Path, processes: int, seconds: float) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "stores.sharing_process", str(folder), str(who), str(seconds)],
            cwd=TESTS,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for who in range(processes)
    ]
    answers = [process.communicate() for process in running]
    expected: dict[str, Record] = {}
    for process, (output, errors) in zip(running, answers, strict=True):
        assert process.returncode == 0, errors
        assert "Traceback" not in errors
        said = json.loads(output)
        assert said["rounds"] > 0
        expected.update((name, numbered(name, number)) for name, number in said["own"].items())
    with sennit.open(folder) as db:
        assert_holds(db, expected)
        assert not db.store.notices, db.store.notices


def test_three_processes_share_a_database(tmp_path: Path) -> None:
    share(tmp_path / "db", 3, 3)


@pytest.mark.slow
def test_eight_processes_share_a_database_for_a_minute(tmp_path: Path) -> None:
    share(tmp_path / "db", 8, 60)


def test_processes_that_create_the_same_database_at_once_agree(tmp_path: Path) -> None:
    code = (
        "import sys, sennit; from stores.helpers import numbered;"
        "db = sennit.open(sys.argv[1]); db.add([numbered(sys.argv[2], int(sys.argv[2]))]); db.close()"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, str(tmp_path / "db"), str(who)], cwd=TESTS)
        for who in range(4)
    ]
    assert [process.wait(120) for process in running] == [0] * 4
    with sennit.open(tmp_path / "db") as db:
        assert_holds(db, {str(who): numbered(str(who), who) for who in range(4)})
        assert len(db.store.models.wanted()) == 1
