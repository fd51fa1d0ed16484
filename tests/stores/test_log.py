"""The log is made long before it is full; what was confirmed is there whatever becomes of the process."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sennit
from sennit.stores.embedded.sqlite import LENGTHEN_AT, LOG_BYTES

from .helpers import assert_holds, numbered

LIMITED = """
import resource, sys
import sennit
from stores.helpers import numbered

with sennit.open(sys.argv[1]) as db:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    for number in range(int(sys.argv[3])):
        db.add([numbered(f"r{number}", number)])
        print(number, flush=True)
"""


def log_of(folder: Path) -> Path:
    return folder / "sennit.db-wal"


@pytest.mark.parametrize("count", [LENGTHEN_AT - 1, LENGTHEN_AT, LENGTHEN_AT + 1, 5 * LENGTHEN_AT])
def test_what_was_confirmed_is_in_a_copy_made_before_anything_was_closed(tmp_path: Path, count: int) -> None:
    records = {f"r{number}": numbered(f"r{number}", number) for number in range(count)}
    with sennit.open(tmp_path / "db") as db:
        for record in records.values():
            db.add([record])
        # As a power cut leaves it: the file and its log, and nothing that is only in memory.
        (tmp_path / "copy").mkdir()
        for name in ("sennit.db", "sennit.db-wal"):
            shutil.copy(tmp_path / "db" / name, tmp_path / "copy" / name)
    with sennit.open(tmp_path / "copy") as db:
        assert_holds(db, records, ())
        db.add([numbered("more", count)])
    with sennit.open(tmp_path / "copy") as db:
        assert_holds(db, records | {"more": numbered("more", count)}, ())


def test_two_that_write_in_turn_keep_each_others_records(tmp_path: Path) -> None:
    records = {f"r{number}": numbered(f"r{number}", number) for number in range(4 * LENGTHEN_AT)}
    with sennit.open(tmp_path / "db") as one, sennit.open(tmp_path / "db") as other:
        for number, record in enumerate(records.values()):
            # One of them comes to the write that lengthens when the log holds much of the other's.
            (one if number % 3 else other).add([record])
        assert_holds(one, records, ())
        assert log_of(tmp_path / "db").stat().st_size == LOG_BYTES
    with sennit.open(tmp_path / "db") as db:
        assert_holds(db, records, ())


def test_who_writes_a_few_times_does_not_fill_the_disk(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([numbered("a", 1)])
        assert log_of(tmp_path / "db").stat().st_size < LOG_BYTES / 4
    assert not log_of(tmp_path / "db").exists()


def test_where_there_is_no_room_for_a_long_log_records_are_written_all_the_same(tmp_path: Path) -> None:
    count = 2 * LENGTHEN_AT
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "db"), str(LOG_BYTES // 2), str(count)],
        cwd=Path(__file__).resolve().parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(number) for number in range(count)]
    with sennit.open(tmp_path / "db") as db:
        assert_holds(db, {f"r{number}": numbered(f"r{number}", number) for number in range(count)}, ())
