"""The write-ahead log is preallocated, and committed writes survive whatever happens to the process."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sennit
from sennit.stores.sql.sqlite import PREALLOCATE_WAL_AT_WRITE, WAL_BYTES

from .helpers import assert_contains_exactly, versioned_record

WRITE_WITH_FILE_SIZE_LIMIT = """
import resource, sys
import sennit
from stores.helpers import versioned_record

with sennit.open(sys.argv[1]) as db:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    for number in range(int(sys.argv[3])):
        db.add([versioned_record(f"r{number}", number)])
        print(number, flush=True)
"""


def wal_of(folder: Path) -> Path:
    return folder / "sennit.db-wal"


@pytest.mark.parametrize(
    "count",
    [
        PREALLOCATE_WAL_AT_WRITE - 1,
        PREALLOCATE_WAL_AT_WRITE,
        PREALLOCATE_WAL_AT_WRITE + 1,
        5 * PREALLOCATE_WAL_AT_WRITE,
    ],
)
def test_a_copy_of_the_open_files_holds_every_committed_write(tmp_path: Path, count: int) -> None:
    records = {f"r{number}": versioned_record(f"r{number}", number) for number in range(count)}
    with sennit.open(tmp_path / "db") as db:
        for record in records.values():
            db.add([record])
        # What a power cut leaves behind: the file and its log, and nothing that is only in memory.
        (tmp_path / "copy").mkdir()
        for name in ("sennit.db", "sennit.db-wal"):
            shutil.copy(tmp_path / "db" / name, tmp_path / "copy" / name)
    with sennit.open(tmp_path / "copy") as db:
        assert_contains_exactly(db, records, ())
        db.add([versioned_record("more", count)])
    with sennit.open(tmp_path / "copy") as db:
        assert_contains_exactly(db, records | {"more": versioned_record("more", count)}, ())


def test_two_alternating_writers_keep_each_others_records(tmp_path: Path) -> None:
    records = {
        f"r{number}": versioned_record(f"r{number}", number) for number in range(4 * PREALLOCATE_WAL_AT_WRITE)
    }
    with sennit.open(tmp_path / "db") as one, sennit.open(tmp_path / "db") as other:
        for number, record in enumerate(records.values()):
            # One of them preallocates the log while it holds many frames of the other.
            (one if number % 3 else other).add([record])
        assert_contains_exactly(one, records, ())
        assert wal_of(tmp_path / "db").stat().st_size == WAL_BYTES
    with sennit.open(tmp_path / "db") as db:
        assert_contains_exactly(db, records, ())


def test_a_few_writes_do_not_preallocate_the_log(tmp_path: Path) -> None:
    with sennit.open(tmp_path / "db") as db:
        db.add([versioned_record("a", 1)])
        assert wal_of(tmp_path / "db").stat().st_size < WAL_BYTES / 4
    assert not wal_of(tmp_path / "db").exists()


def test_writes_succeed_without_room_to_preallocate_the_log(tmp_path: Path) -> None:
    count = 2 * PREALLOCATE_WAL_AT_WRITE
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            WRITE_WITH_FILE_SIZE_LIMIT,
            str(tmp_path / "db"),
            str(WAL_BYTES // 2),
            str(count),
        ],
        cwd=Path(__file__).resolve().parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(number) for number in range(count)]
    with sennit.open(tmp_path / "db") as db:
        assert_contains_exactly(
            db, {f"r{number}": versioned_record(f"r{number}", number) for number in range(count)}, ()
        )
