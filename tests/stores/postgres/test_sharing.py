"""Several machines on one server: each has its own cache folder, and sees what the others have confirmed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import sennit
from sennit.engine import Database
from sennit.settings import load_settings
from sennit.stores.embedded import store
from sennit.stores.open import open_backend, open_store

from ..helpers import (
    assert_contains_exactly,
    embedded_store,
    search_keyword,
    versioned_record,
    wait_until,
    word,
)
from ..test_processes import create_at_once, share
from ..test_races import check_facts, check_turns, race
from ..unbound_index import check_that_an_unbound_index_is_forgotten


def test_each_machine_sees_the_others_confirmed_write_in_its_next_search(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_CACHE", str(tmp_path / "one"))
    with sennit.open(dsn, store__flush_at=8) as one:
        monkeypatch.setenv("SENNIT_CACHE", str(tmp_path / "two"))
        with sennit.open(dsn, store__flush_at=8) as two:
            expected = {}
            for n in range(40):
                writer, reader = (one, two) if n % 2 else (two, one)
                record = versioned_record(f"r{n % 15}", n)
                writer.add([record])
                expected[record.id] = record
                assert search_keyword(reader, word(n)) == [record.id]
                if n % 10 == 9:
                    writer.admin.optimise()
                if n % 4 == 3:
                    writer.remove([record.id])
                    del expected[record.id]
                    assert search_keyword(reader, word(n)) == []
            for db in (one, two):
                assert_contains_exactly(db, expected)
            folders = {embedded_store(db).index_folder for db in (one, two)}
            assert len(folders) == 2
            assert all(folder is not None and list(folder.rglob("*.seg")) for folder in folders)


def test_the_cache_folder_may_be_deleted_at_any_time(dsn: str, cache: Path) -> None:
    expected = {f"r{n}": versioned_record(f"r{n}", n) for n in range(60)}
    with sennit.open(dsn, store__flush_at=8) as db:
        db.add(expected.values())
        db.admin.optimise()
        assert list(cache.rglob("*.seg"))
        shutil.rmtree(cache)
        assert_contains_exactly(db, expected)
        db.add([versioned_record("later", 99)])
        expected["later"] = versioned_record("later", 99)
        db.admin.optimise()
        assert_contains_exactly(db, expected)
    shutil.rmtree(cache, ignore_errors=True)
    with sennit.open(dsn) as db:
        assert_contains_exactly(db, expected)


def test_a_machine_whose_tombstones_are_purged_reads_the_records_again(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MIN_SHARED_TOMBSTONES_TO_PURGE", 1)
    monkeypatch.setenv("SENNIT_CACHE", str(tmp_path / "one"))
    with sennit.open(dsn) as one:
        one.add(versioned_record(f"r{n}", n) for n in range(40))
        one.admin.optimise()
        monkeypatch.setenv("SENNIT_CACHE", str(tmp_path / "two"))
        with sennit.open(dsn) as two:
            two.admin.optimise()
            one.remove(f"r{n}" for n in range(0, 40, 2))
            one.admin.optimise()
            assert embedded_store(one).purge_tombstones(1)
            expected = {f"r{n}": versioned_record(f"r{n}", n) for n in range(1, 40, 2)}
            assert_contains_exactly(two, expected, gone=[word(0)])


def test_a_copy_of_a_database_has_a_cache_of_its_own(dsn: str) -> None:
    import psycopg

    with sennit.open(dsn) as db:
        db.add([versioned_record("a", 1)])
    address, name = dsn.rsplit("/", 1)
    with psycopg.connect(f"{address}/postgres", autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}_copy TEMPLATE {name}".encode())
    first, second = open_store(dsn), open_store(f"{dsn}_copy")
    assert first.index_folder != second.index_folder
    first.close()
    second.close()


def test_a_large_load_is_flushed_by_a_worker_process(dsn: str, cache: Path) -> None:
    with sennit.open(dsn, embedding__provider="none", store__flush_at=512) as db:
        with db.maintainer.bulk_load():
            for start in range(0, 6000, 1000):
                db.add(versioned_record(f"r{n}", n) for n in range(start, start + 1000))
        assert embedded_store(db)._builder is not None
        wait_until(lambda: bool(list(cache.rglob("keyword/*.seg"))))
        assert search_keyword(db, word(4321)) == ["r4321"]
        assert len(list(db)) == 6000


def test_an_index_that_nobody_has_bound_for_a_week_holds_no_deletes_back(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SENNIT_CACHE", str(tmp_path))
    with Database(open_backend(dsn), load_settings(), background=False) as db:
        check_that_an_unbound_index_is_forgotten(db, monkeypatch)


def test_three_processes_share_a_database(dsn: str) -> None:
    share(dsn, 3, 3)


def test_processes_can_create_the_same_database_at_once(dsn: str) -> None:
    create_at_once(dsn)


@pytest.mark.slow
def test_eight_processes_give_each_turn_of_a_session_its_own_position(dsn: str) -> None:
    sennit.open(dsn, embedding__provider="none").close()
    race(dsn, "turns")
    check_turns(dsn)


@pytest.mark.slow
def test_of_facts_that_supersede_each_other_exactly_one_is_current(dsn: str) -> None:
    sennit.open(dsn, embedding__provider="none").close()
    race(dsn, "facts")
    check_facts(dsn)
