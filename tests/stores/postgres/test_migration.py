"""A database that moves from a folder to Postgres and back, killed on the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts.servers.postgres import PostgresServer

import sennit
from sennit.errors import StoreError

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


def test_a_database_is_not_copied_to_itself_by_another_connection_string(
    dsn: str, server: PostgresServer
) -> None:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("CREATE ROLE other_role LOGIN SUPERUSER PASSWORD 'pass'")
    try:
        parts = conninfo_to_dict(dsn)
        path = f"{parts['host']}:{parts['port']}/{parts['dbname']}"
        query = f"host={parts['host']}&port={parts['port']}&dbname={parts['dbname']}&user={parts['user']}"
        sennit.open(dsn).close()
        for other in (
            f"postgres://other_role:pass@{path}",
            f"postgresql:///?{query}",
            f"{dsn}?application_name=x",
        ):
            with pytest.raises(StoreError, match="is the database itself"):
                sennit.migrate(dsn, other)
        sennit.open(dsn).close()
    finally:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute("DROP ROLE other_role")
