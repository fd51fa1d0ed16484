"""The name of a database on servers, on Postgres: one for every way to reach it, and another for a copy."""

from __future__ import annotations

import psycopg
from psycopg.conninfo import conninfo_to_dict
from scripts.servers.postgres import PostgresServer

from sennit.stores.open import open_store

from ..test_server_name import applied_of, name_of


def test_a_name_stays_however_the_server_is_reached_and_a_copy_gets_another(
    server: PostgresServer, dsn: str
) -> None:
    assert name_of(dsn) == "0f"
    assert name_of(dsn.replace("127.0.0.1", "localhost"), "1f") == "0f"
    store = open_store(dsn)
    store.set_applied("x", 1)
    store.close()
    source = conninfo_to_dict(dsn)["dbname"]
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {source} RENAME TO {source}_renamed".encode())
        connection.execute(f"CREATE DATABASE {source} TEMPLATE {source}_renamed".encode())
    try:
        assert name_of(server.dsn(f"{source}_renamed"), "1f") == "0f"
        assert name_of(dsn) != "0f"
        assert (applied_of(dsn), applied_of(server.dsn(f"{source}_renamed"))) == (0, 1)
    finally:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {source}_renamed WITH (FORCE)".encode())


def test_an_ordinary_user_can_ask_for_the_place(server: PostgresServer, dsn: str) -> None:
    database = conninfo_to_dict(dsn)["dbname"]
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        connection.execute(b"CREATE ROLE ordinary LOGIN")
        connection.execute(f"ALTER DATABASE {database} OWNER TO ordinary".encode())
    try:
        assert name_of(dsn.replace("postgres@", "ordinary@")) == "0f"
    finally:
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {database} WITH (FORCE)".encode())
            connection.execute(b"DROP ROLE ordinary")
