"""A database that moves from a folder to Postgres and back, killed on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

import sennit

from ..migration_samples import contents, fill, kill_and_go_on

pytestmark = pytest.mark.servers


def test_there_and_back_again(dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with sennit.open(tmp_path / "first") as db:
        fill(db)
        expected = contents(db)
    there = kill_and_go_on(tmp_path / "first", dsn, monkeypatch)
    with sennit.open(dsn) as db:
        assert contents(db) == expected
    back = kill_and_go_on(dsn, tmp_path / "second", monkeypatch)
    assert [(one.name, one.rows, one.checksum) for one in back] == [
        (one.name, one.rows, one.checksum) for one in there
    ]
    with sennit.open(dsn) as there_db, sennit.open(tmp_path / "second") as db:
        assert contents(db) == expected
        # The counters go on where they were.
        for one in (there_db, db):
            one.add([sennit.Record(id="later", text="a new river with a new vector")])
            assert one.get("later") is not None
            assert one.admin.pending_vectors() == 0
