"""Several processes share one database: no errors, no lost writes, and each sees its own writes at once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import sennit
from sennit import Record

from .helpers import assert_contains_exactly, versioned_record

TESTS = Path(__file__).resolve().parent.parent


def share(target: str, processes: int, seconds: float) -> None:
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "stores.sharing_process", target, str(process), str(seconds)],
            cwd=TESTS,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for process in range(processes)
    ]
    answers = [process.communicate() for process in running]
    expected: dict[str, Record] = {}
    for process, (output, errors) in zip(running, answers, strict=True):
        assert process.returncode == 0, errors
        assert "Traceback" not in errors
        report = json.loads(output)
        assert report["rounds"] > 0
        expected.update((name, versioned_record(name, number)) for name, number in report["own"].items())
    with sennit.open(target) as db:
        assert_contains_exactly(db, expected)
        assert not db.store.notices, db.store.notices


def test_three_processes_share_a_database(tmp_path: Path) -> None:
    share(str(tmp_path / "db"), 3, 3)


@pytest.mark.slow
def test_eight_processes_share_a_database_for_a_minute(tmp_path: Path) -> None:
    share(str(tmp_path / "db"), 8, 60)


def create_at_once(target: str) -> None:
    """Create one database in four processes, each of which adds a record."""
    code = (
        "import sys, sennit; from stores.helpers import versioned_record;"
        "db = sennit.open(sys.argv[1]); db.add([versioned_record(sys.argv[2], int(sys.argv[2]))]); db.close()"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, target, str(who)], cwd=TESTS) for who in range(4)
    ]
    assert [process.wait(120) for process in running] == [0] * 4
    with sennit.open(target) as db:
        assert_contains_exactly(db, {str(who): versioned_record(str(who), who) for who in range(4)})
        assert len(db.store.models.current()) == 1


def test_processes_can_create_the_same_database_at_once(tmp_path: Path) -> None:
    create_at_once(str(tmp_path / "db"))
