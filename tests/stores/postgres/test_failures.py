"""A server that is away, dies or returns: nothing confirmed is lost, errors say what to do, and no password is shown."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import pytest
from scripts.servers.common import free_port
from scripts.servers.postgres import PostgresServer

import sennit
from sennit.errors import InvalidInput, MissingExtra, StoreClosed, StoreError, StoreUnavailable, StoreVersion
from sennit.stores.target import describe_target

from ..helpers import assert_contains_exactly, embedded_store, search_keyword, versioned_record, word

PASSWORD = "open-sesame-9"


def test_a_server_that_cannot_be_reached_is_named_with_advice(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()
    dsn = f"postgresql://ana:{PASSWORD}@127.0.0.1:{port}/notes?application_name=x"
    with caplog.at_level(logging.DEBUG), pytest.raises(StoreUnavailable) as caught:
        sennit.open(dsn)
    assert f"postgresql://ana@127.0.0.1:{port}/notes cannot be reached" in str(caught.value)
    assert "Check that the server runs" in str(caught.value)
    shown = "".join(traceback.format_exception(caught.value)) + caplog.text
    assert PASSWORD not in shown


@pytest.mark.parametrize(
    "dsn",
    [
        f"postgresql://ana:{PASSWORD} x@host/db",
        f"postgresql://ana:{PASSWORD}@[::1/db",
        f"postgresql://ana:{PASSWORD}@host/db?nonsense=1",
        f"postgresql://ana:12/{PASSWORD}@host/db?x",
        f"postgresql://ana:1#{PASSWORD}@host/db?x",
        f"postgresql://ana:1@{PASSWORD}@127.0.0.1/db",
        f"postgresql://127.0.0.1:1/{PASSWORD}@host/db",
    ],
)
def test_an_unreadable_connection_string_does_not_show_its_password(dsn: str) -> None:
    with pytest.raises((InvalidInput, StoreError)) as caught:
        sennit.open(dsn)
    assert PASSWORD not in "".join(traceback.format_exception(caught.value))
    assert PASSWORD not in describe_target(dsn)


def test_a_connection_string_is_described_without_password_and_options() -> None:
    assert describe_target(f"postgres://a:{PASSWORD}@h:5/d?sslmode=require") == "postgresql://a@h:5/d"
    assert describe_target("postgresql://h/d") == "postgresql://h/d"
    assert describe_target("postgresql://a@h1:1,h2:2/d") == "postgresql://…"
    assert describe_target("/some/folder") == "/some/folder"


def run_cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    program = "from sennit.apps.cli import main; main()"
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)


def test_the_command_line_takes_a_connection_string(
    dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = dsn.replace("postgres@", f"postgres:{PASSWORD}@")
    (tmp_path / "notes.txt").write_text("the river floods the valley")
    done = run_cli("index", "--db", secret, str(tmp_path / "notes.txt"))
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("SENNIT_DB", secret)
    for command in (["search", "river"], ["doctor", "--json"], ["tokens", "add", "me"], ["export", "-"]):
        done = run_cli(*command)
        assert done.returncode == 0, done.stderr
        assert PASSWORD not in done.stdout + done.stderr
    assert "river" in done.stdout
    done = run_cli("demo", "--db", secret)
    assert done.returncode != 0
    assert PASSWORD not in done.stdout + done.stderr


def test_a_server_that_dies_and_returns_loses_nothing_confirmed(server: PostgresServer, dsn: str) -> None:
    with sennit.open(dsn, store__flush_at=16) as db:
        db.add([versioned_record("first", 1)])
        confirmed = {"first": versioned_record("first", 1)}
        in_doubt: dict[str, sennit.Record] = {}
        stop = threading.Event()
        failures: list[Exception] = []
        unexpected: list[Exception] = []

        def write() -> None:
            number = 10
            while not stop.is_set():
                number += 1
                record = versioned_record(f"r{number}", number)
                try:
                    db.add([record])
                    confirmed[record.id] = record
                except StoreUnavailable as error:
                    in_doubt[record.id] = record
                    failures.append(error)
                    stop.wait(0.01)
                except Exception as error:  # noqa: BLE001 - the test reports it
                    unexpected.append(error)
                    return

        def search() -> None:
            while not stop.is_set():
                try:
                    known = dict(confirmed)
                    result = db.search("river floods", recipe="keyword", limit=1000)
                    assert result.degraded or {hit.id for hit in result} >= {
                        name for name, record in known.items() if "river floods" in record.text
                    }
                except StoreUnavailable as error:
                    failures.append(error)
                    stop.wait(0.01)
                except Exception as error:  # noqa: BLE001 - the test reports it
                    unexpected.append(error)
                    return

        threads = [threading.Thread(target=write), threading.Thread(target=search)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(3):
                before = len(confirmed)
                while len(confirmed) < before + 20 and not unexpected:
                    stop.wait(0.01)
                server.kill()
                seen = len(failures)
                while len(failures) < seen + 2 and not unexpected:
                    stop.wait(0.01)
                server.start()
            before = len(confirmed)
            while len(confirmed) < before + 20 and not unexpected:
                stop.wait(0.01)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert not unexpected
        assert all("Check" in str(error) for error in failures)
        stored = {record.id: record for record in db}
        assert confirmed.items() <= stored.items()
        # A write whose confirmation was lost is stored as a whole or not at all.
        assert stored.items() <= (confirmed | in_doubt).items()
        assert_contains_exactly(db, stored)


def write_around_a_crash(db: sennit.Database, server: PostgresServer) -> None:
    with db.store.transaction() as transaction:
        transaction.write([versioned_record("b", 2)])
        server.kill()
        server.start()
        transaction.write([versioned_record("c", 3)])


def test_a_write_that_loses_its_connection_fails_and_the_next_one_works(
    server: PostgresServer, dsn: str
) -> None:
    with sennit.open(dsn) as db:
        db.add([versioned_record("a", 1)])
        with pytest.raises(StoreUnavailable, match="lost"):
            write_around_a_crash(db, server)
        assert_contains_exactly(db, {"a": versioned_record("a", 1)}, gone=[word(2), word(3)])
        server.stop()
        server.start()
        assert search_keyword(db, word(1)) == ["a"]
        server.stop()
        server.start()
        db.add([versioned_record("d", 4)])


def test_a_write_begins_again_where_its_idle_connection_has_just_ended(
    dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    from sennit.stores.sql.postgres import PostgresPool
    from sennit.stores.sql.postgres_connection import Raw

    with sennit.open(dsn) as db:
        db.add([versioned_record("a", 1)])
        pool = embedded_store(db).pool
        assert isinstance(pool, PostgresPool)
        take = pool.take

        def take_and_end() -> Raw:
            raw = take()
            with psycopg.connect(dsn, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 10000)", (raw.info.backend_pid,))
            return raw

        with monkeypatch.context() as patched:
            patched.setattr(pool, "take", take_and_end)
            with db.store.transaction() as transaction:
                transaction.write([versioned_record("b", 2)])
        assert [db.get(name) for name in ("a", "b")] == [versioned_record("a", 1), versioned_record("b", 2)]


def test_tables_of_others_and_of_newer_versions_are_refused(dsn: str) -> None:
    import psycopg

    sennit.open(dsn).close()
    with psycopg.connect(dsn) as connection:
        connection.execute("UPDATE sennit.state SET value = 999 WHERE key = 'schema'")
    with pytest.raises(StoreVersion, match="newer sennit"):
        sennit.open(dsn)
    with psycopg.connect(dsn) as connection:
        connection.execute("DROP SCHEMA sennit CASCADE")
        connection.execute("CREATE SCHEMA sennit")
        connection.execute("CREATE TABLE sennit.state (x int)")
    with pytest.raises(StoreVersion, match="another program"):
        sennit.open(dsn)


def test_a_closed_database_says_so(dsn: str) -> None:
    db = sennit.open(dsn)
    db.close()
    db.close()
    with pytest.raises(StoreClosed):
        db.search("river")
    with pytest.raises(StoreClosed):
        db.add([versioned_record("a", 1)])


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for module in ("postgres", "postgres_connection"):
        monkeypatch.delitem(sys.modules, f"sennit.stores.sql.{module}", raising=False)
    with pytest.raises(MissingExtra, match=r"sennit\[postgres\]"):
        sennit.open("postgresql://host/db")


def test_a_full_disk_is_reported_as_such() -> None:
    import psycopg

    from sennit.errors import StoreFull
    from sennit.stores.sql.postgres_connection import translate_error

    assert isinstance(translate_error(psycopg.errors.DiskFull("x"), "here"), StoreFull)
