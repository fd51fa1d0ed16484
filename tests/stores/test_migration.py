"""`sennit migrate`: everything arrives, a killed run goes on, and nothing else is touched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sennit
from sennit.errors import StoreError
from sennit.settings import load_settings
from sennit.stores import open as opening_module
from sennit.stores.open import copy_store, open_store
from sennit.stores.sql.migration import hash_rows

from .migration_samples import Killed, contents, fill, kill_and_go_on
from .test_roles import FakeQdrant


@pytest.fixture
def source(tmp_path: Path) -> Path:
    with sennit.open(tmp_path / "source") as db:
        fill(db)
    return tmp_path / "source"


def test_a_copy_has_everything_and_the_source_stays(source: Path, tmp_path: Path) -> None:
    before = (source / "sennit.db").read_bytes()
    report = sennit.migrate(source, tmp_path / "target")
    assert (source / "sennit.db").read_bytes() == before
    with sennit.open(source) as old, sennit.open(tmp_path / "target") as new:
        assert contents(new) == contents(old)
        assert new.store.count() == report.records
        new.add([sennit.Record(id="later", text="a river")])
        assert new.get("later") is not None
        assert not [finding for finding in new.admin.check() if finding.level == "problem"]
    assert {table.name: table.rows for table in report.tables}["records"] == report.records


def test_a_killed_run_goes_on_where_it_ended(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = {one.name: one for one in kill_and_go_on(source, tmp_path / "target", monkeypatch)}
    assert 0 < tables["records"].copied < tables["records"].rows
    with sennit.open(source) as old, sennit.open(tmp_path / "target") as new:
        assert contents(new) == contents(old)


def test_an_unfinished_target_is_no_database_and_takes_no_other_source(source: Path, tmp_path: Path) -> None:
    def stop(_table: str, _done: int, _total: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        copy_store(source, tmp_path / "target", stop)
    with pytest.raises(StoreError, match="not complete"):
        sennit.open(tmp_path / "target")
    with sennit.open(tmp_path / "other") as other:
        other.add([sennit.Record(id="x", text="x")])
    with pytest.raises(StoreError, match="from another database"):
        sennit.migrate(tmp_path / "other", tmp_path / "target")


def test_a_source_that_changed_since_the_kill_is_copied_as_it_is_now(source: Path, tmp_path: Path) -> None:
    def stop(table: str, _done: int, _total: int) -> None:
        if table == "vectors":
            raise Killed

    with pytest.raises(Killed):
        copy_store(source, tmp_path / "target", stop)
    with sennit.open(source) as db:
        db.remove(["r7"])
        db.add([sennit.Record(id="r8", text="another text")])
    sennit.migrate(source, tmp_path / "target")
    with sennit.open(source) as old, sennit.open(tmp_path / "target") as new:
        assert contents(new) == contents(old)


def test_a_place_that_is_not_empty_is_refused(source: Path, tmp_path: Path) -> None:
    with sennit.open(tmp_path / "full") as db:
        db.add([sennit.Record(id="x", text="x")])
    with pytest.raises(StoreError, match="not empty"):
        sennit.migrate(source, tmp_path / "full")


@pytest.mark.parametrize("way", ["same path", "relative path", "link to the folder", "link to the file"])
def test_a_database_is_not_copied_to_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    source = tmp_path / "source"
    # Without a row, nothing but its place shows that the target is not new.
    sennit.open(source).close()
    before = _files(source)
    match way:
        case "same path":
            target = source
        case "relative path":
            monkeypatch.chdir(tmp_path)
            target = Path("source")
        case "link to the folder":
            target = tmp_path / "link"
            target.symlink_to(source)
        case _:
            target = tmp_path / "other"
            target.mkdir()
            (target / "sennit.db").symlink_to(source / "sennit.db")
    with pytest.raises(StoreError, match="is the database itself"):
        sennit.migrate(source, target)
    assert _files(source) == before


def test_a_stopped_run_goes_on_by_another_path_to_the_source(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_table: str, _done: int, _total: int) -> None:
        raise Killed

    with pytest.raises(Killed):
        copy_store(source, tmp_path / "target", stop)
    monkeypatch.chdir(tmp_path)
    assert sennit.migrate("source", "target").records


def _files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_run_that_was_stopped_after_the_copy_is_verified_again(source: Path, tmp_path: Path) -> None:
    first = copy_store(source, tmp_path / "target")
    report = sennit.migrate(source, tmp_path / "target")
    assert [(one.name, one.rows, one.checksum) for one in report.tables] == [
        (one.name, one.rows, one.checksum) for one in first
    ]
    assert not any(one.copied for one in report.tables)
    with sennit.open(tmp_path / "target") as db:
        db.add([sennit.Record(id="later", text="a river")])
    with pytest.raises(StoreError, match="changed since"):
        sennit.migrate(source, tmp_path / "target")
    # A copy of the copy has nothing of where the copy came from.
    sennit.migrate(tmp_path / "target", tmp_path / "third")
    sennit.migrate(tmp_path / "target", tmp_path / "third")


def test_servers_are_filled_before_it_ends(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = []

    def make(opening: opening_module.Opening) -> FakeQdrant:
        servers.append(FakeQdrant(opening))
        return servers[-1]

    monkeypatch.setitem(opening_module.SERVERS, "qdrant", make)
    settings = load_settings(overrides={"roles.vector": "qdrant", "roles.keyword": "qdrant"})
    seen: list[tuple[str, int, int]] = []
    report = sennit.migrate(
        source, tmp_path / "target", settings=settings, progress=lambda *values: seen.append(values)
    )
    assert report.roles["vector"] == "qdrant"
    assert seen[-1][0] == "indexes"
    assert seen[-1][1] == seen[-1][2] > 0
    with open_store(tmp_path / "target").snapshot() as snapshot:
        assert snapshot.applied("dict vector") == snapshot.applied("dict keyword") == snapshot.seq


def test_a_checksum_knows_types_and_borders() -> None:
    rows: list[list[Any]] = [
        [("a", "b")],
        [("ab", "")],
        [(1, 1.0)],
        [(1.0, 1)],
        [("1", None)],
        [(b"1", None)],
        [(None, "1")],
    ]
    assert len({hash_rows(one) for one in rows}) == len(rows)
