"""Connections to a Postgres database, for several threads, several processes and several machines."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final, NoReturn

import psycopg
from psycopg import RawCursor, pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from sennit.errors import (
    InvalidInput,
    StoreClosed,
    StoreError,
    StoreUnavailable,
    StoreVersion,
)
from sennit.stores.sql.connection import Connection
from sennit.stores.sql.dialect import POSTGRES
from sennit.stores.sql.postgres_connection import (
    BEGIN_READ,
    LOCK_SECONDS,
    SCHEMA,
    PostgresConnection,
    Raw,
    Version,
    first_line,
    is_lost,
    is_ready,
    make_adapters,
    simple_query,
    translate_error,
)
from sennit.stores.sql.schema import VERSION, create_statements, migrate_statements
from sennit.stores.target import describe_target

MIGRATION_LOCK: Final = 0x736E6974
"""The advisory lock under which the tables are created: 'snit'."""

MAX_IDLE_CONNECTIONS: Final = 16
"""Connections kept for later. More threads at once open more, which are closed when they are done."""

DEFAULTS: Final = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    # In milliseconds: a server whose machine is gone is noticed.
    "tcp_user_timeout": "60000",
    "application_name": "sennit",
}
"""Connection parameters, unless the connection string has others."""

_SESSION: Final = f"""
    SET search_path TO {SCHEMA};
    SET lock_timeout = '{LOCK_SECONDS}s';
    SET tcp_keepalives_idle = 30;
    SET tcp_keepalives_interval = 10;
    SET tcp_keepalives_count = 3;
    SET jit = off;
    SELECT CASE current_setting('synchronous_commit')
        WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END
""".encode()
"""Run on every new connection. A commit returns only when it would survive a power cut."""

_COMMIT: Final = b"COMMIT"
_ROLLBACK: Final = b"ROLLBACK"


class PostgresPool:
    """The connections to one Postgres database. A lost connection fails its operation; the next one reconnects."""

    is_shared = True

    def __init__(self, dsn: str) -> None:
        """`dsn` is a connection string with the scheme postgresql://."""
        self.location = describe_target(dsn)
        self._dsn = dsn
        self._conninfo = parse_conninfo(dsn, self.location)
        self._closed = False
        self._write_lock = threading.RLock()
        """Threads of this process queue here, and not each with a connection of its own at the server."""
        self._writing: PostgresConnection | None = None
        self.thread_reads = threading.local()
        """`connection`: the one that the current thread reads with."""
        self._idle: list[Raw] = []
        self._abandoned: set[object] = set()
        self._last_version: Version | None = None
        self._is_quiet = False
        """Whether the last two reads found the same version, so that the next one probably does."""
        self._pool_lock = threading.Lock()
        self._adapters = make_adapters()
        self._prepare()

    @property
    def target(self) -> str:
        """The connection string, with its password."""
        return self._dsn

    def close(self) -> None:
        """Close the idle connections now, and those in use when they are released. A second call does nothing."""
        with self._pool_lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for raw in idle:
            raw.close()

    def read(self) -> _ReadTransaction:
        """A read transaction: a consistent snapshot. A nested block shares the transaction of the outer one."""
        return _ReadTransaction(self)

    def read_ahead(self) -> _ReadTransaction | None:
        """A read transaction that supposes the last known version, and asks for it with its first statement."""
        if not self._is_quiet or getattr(self.thread_reads, "connection", None) is not None:
            return None
        return _ReadTransaction(self, self._last_version)

    def note_version(self, version: Version) -> None:
        """Remember the version that a read transaction has found."""
        self._is_quiet = version == self._last_version
        self._last_version = version

    @contextlib.contextmanager
    def read_separately(self) -> Iterator[PostgresConnection]:
        """A read transaction of its own, never shared with other blocks of the thread."""
        self._check_open()
        connection = PostgresConnection(self, BEGIN_READ)
        try:
            yield connection
        finally:
            self.end_read(connection)

    @contextlib.contextmanager
    def write(self) -> Iterator[PostgresConnection]:
        """A write transaction: durable when the block ends, rolled back when it raises. One runs at a time."""
        with self._write_lock:
            self._check_open()
            if self._writing is not None:
                raise StoreError(f"A write to {self.location} began inside another one")
            connection = PostgresConnection(self, None, writes=True)
            self._writing = connection
            self._is_quiet = False
            try:
                yield connection
                if connection.raw is not None:
                    self._commit(connection, connection.raw)
            except BaseException:
                with contextlib.suppress(psycopg.Error):
                    connection.leave_pipeline()
                if connection.raw is not None:
                    with contextlib.suppress(psycopg.Error):
                        simple_query(connection.raw, _ROLLBACK)
                raise
            finally:
                self._writing = None
                raw, connection.raw = connection.raw, None
                if raw is not None:
                    self.give_back(raw)

    def _commit(self, connection: PostgresConnection, raw: Raw) -> None:
        try:
            status = connection.commit()
        except psycopg.Error as error:
            if not is_lost(raw, error):
                self.fail(error)
            raise StoreUnavailable(
                f"The connection to {self.location} was lost while a write was being confirmed. It is stored as a "
                "whole or not at all. Check the server, and repeat the write: an unchanged record is not stored twice."
            ) from error
        if status != "COMMIT":
            # Postgres answers COMMIT with ROLLBACK after a statement that failed.
            raise StoreError(
                f"A write to {self.location} was rolled back, because one of its statements failed"
            )

    @contextlib.contextmanager
    def read_with_writer(self) -> Iterator[PostgresConnection]:
        """A connection for single reads right before a write, outside a transaction; inside a write, its own."""
        self._check_open()
        with self._write_lock if self._writing is not None else contextlib.nullcontext():
            if self._writing is not None:
                yield self._writing
                return
        connection = PostgresConnection(self, None)
        try:
            yield connection
        finally:
            raw, connection.raw = connection.raw, None
            if raw is not None:
                self.give_back(raw)

    def end_read(self, connection: PostgresConnection) -> None:
        """End the transaction and release the connection, unless an abandoned thread may still use it."""
        with self._pool_lock:
            if connection in self._abandoned:
                self._abandoned.discard(connection)
                return
        is_begun = connection.is_begun
        raw, connection.raw = connection.raw, None
        if raw is None:
            return
        if not is_begun:
            self.give_back(raw)
            return
        # Nobody waits for the end of a transaction that only read. The next statement discards the answer.
        with contextlib.suppress(psycopg.Error), raw.lock:
            raw.pgconn.send_query(_COMMIT)
        self.give_back(raw)

    def abandon(self, connection: Connection) -> None:
        """Leave a read connection to a thread that may still use it; it is closed when that thread drops it."""
        with self._pool_lock:
            self._abandoned.add(connection)

    # Connections.

    def take(self) -> Raw:
        """An idle connection, or a new one."""
        self._check_open()
        while True:
            try:
                raw = self._idle.pop()
            except IndexError:
                return self.connect()
            if is_ready(raw):
                return raw
            raw.close()

    def give_back(self, raw: Raw) -> None:
        """Keep a connection for later, if it is sound."""
        with self._pool_lock:
            if (
                not self._closed
                and len(self._idle) < MAX_IDLE_CONNECTIONS
                and raw.pgconn.status == pq.ConnStatus.OK
            ):
                self._idle.append(raw)
                return
        raw.close()

    def drop_idle(self) -> None:
        """Close the idle connections, because another one to the same server was lost."""
        with self._pool_lock:
            idle, self._idle = self._idle, []
        for raw in idle:
            raw.close()

    def connect(self) -> Raw:
        """A new connection."""
        self._check_open()
        try:
            raw = psycopg.connect(
                self._conninfo, autocommit=True, cursor_factory=RawCursor, context=self._adapters
            )
            simple_query(raw, _SESSION)
        except psycopg.Error as error:
            raise StoreUnavailable(
                f"{self.location} cannot be reached ({first_line(error)}). Check that the server runs, and the host, "
                "port, database, user and password of the connection string."
            ) from error
        return raw

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("This database has been closed; open it again with sennit.open()")

    # The database itself.

    def identity(self) -> str:
        """Distinguishes this database from a copy of it, on another server or under another name."""
        with self.read_with_writer() as connection:
            found = connection.execute(
                "SELECT oid::bigint, datname::text FROM pg_database WHERE datname = current_database()"
            ).fetchone()
        values = conninfo_to_dict(self._conninfo)
        return repr((values.get("host"), values.get("hostaddr"), values.get("port"), found))

    def place(self) -> str:
        """The cluster and the number of the database in it, by whatever name the server is reached."""
        with self.read_with_writer() as connection:
            found = connection.execute(
                "SELECT c.system_identifier::text, d.oid::bigint FROM pg_control_system() c, pg_database d "
                "WHERE d.datname = current_database()"
            ).fetchone()
        return ":".join(map(str, found))

    def has_left(self, place: str) -> bool:  # noqa: ARG002
        """Never known: a dump that was restored may be a copy, and its source is not asked."""
        return False

    def find_damage(self, connection: Connection, *, quick: bool) -> list[str]:  # noqa: ARG002
        """Nothing: a Postgres server verifies its own pages."""
        return []

    def schema_version(self, connection: Connection) -> int:
        """The version of the tables."""
        found = connection.execute("SELECT value FROM state WHERE key = 'schema'").fetchone()
        return int(found[0]) if found else 0

    def size_bytes(self) -> int:
        """The size of the tables with their indexes."""
        with self.read_with_writer() as connection:
            (size,) = connection.execute(
                "SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c "
                "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ? AND c.relkind = 'r'",
                (SCHEMA,),
            ).fetchone() or (0,)
        return int(size)

    def _prepare(self) -> None:
        """Create the tables in a new database, and refuse tables of a newer sennit or of another program."""
        with self.read_with_writer() as connection:
            found = connection.execute(
                "SELECT current_setting('server_encoding'), to_regclass(?) IS NOT NULL", (f"{SCHEMA}.state",)
            ).fetchone()
            assert found is not None
            encoding, exists = found
            if encoding != "UTF8":
                raise StoreError(
                    f"{self.location} has the encoding {encoding}, which cannot hold every text. Create the database "
                    "with ENCODING 'UTF8'."
                )
            if not exists:
                self._migrate(connection)
            version = self._read_version(connection)
            if version is not None and version < VERSION:
                self._migrate(connection)
        if version is None:
            raise StoreVersion(
                f"The schema {SCHEMA} of {self.location} holds tables of another program; choose another database"
            )
        if version > VERSION:
            raise StoreVersion(
                f"{self.location} was written by a newer sennit (schema {version}, this one knows {VERSION}). "
                "Upgrade sennit: pip install -U sennit"
            )

    def _read_version(self, connection: PostgresConnection) -> int | None:
        try:
            return self.schema_version(connection) or None
        except StoreUnavailable:
            raise
        except StoreError:
            return None

    def _migrate(self, connection: PostgresConnection) -> None:
        """Create the tables, or bring those of an older sennit up to date."""
        connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
        try:
            connection.execute("SELECT pg_advisory_xact_lock(?)", (MIGRATION_LOCK,))
            # Another process may have done it while this one waited for the lock. The catalogue is read as a table:
            # to_regclass may answer from a cache that is older than the lock.
            (exists,) = connection.execute(
                "SELECT EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
                "WHERE n.nspname = ? AND c.relname = 'state')",
                (SCHEMA,),
            ).fetchone() or (False,)
            if not exists:
                connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
                for statement in create_statements(POSTGRES):
                    connection.execute(statement)
                connection.execute("INSERT INTO state VALUES ('schema', ?)", (VERSION,))
            else:
                for statement in migrate_statements(POSTGRES, self.schema_version(connection)):
                    connection.execute(statement)
                connection.execute("UPDATE state SET value = ? WHERE key = 'schema'", (VERSION,))
            connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(StoreError):
                connection.execute("ROLLBACK")
            raise

    def fail(self, error: psycopg.Error) -> NoReturn:
        """Raise the sennit error for an error of Postgres, with advice."""
        raise translate_error(error, self.location) from error


class _ReadTransaction:
    """The block of `PostgresPool.read`."""

    __slots__ = ("_connection", "_pool", "_supposed")

    def __init__(self, pool: PostgresPool, supposed: Version | None = None) -> None:
        self._pool = pool
        self._supposed = supposed
        self._connection: PostgresConnection | None = None
        """None inside another block, which owns the transaction."""

    def __enter__(self) -> PostgresConnection:
        pool = self._pool
        outer: PostgresConnection | None = getattr(pool.thread_reads, "connection", None)
        if outer is not None:
            return outer
        pool._check_open()
        self._connection = pool.thread_reads.connection = PostgresConnection(pool, BEGIN_READ, self._supposed)
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            self._pool.thread_reads.connection = None
            self._pool.end_read(self._connection)


def parse_conninfo(dsn: str, location: str) -> str:
    """The connection string for libpq, with our defaults. An error never shows a password."""
    authority, _, name = dsn.partition("://")[2].partition("?")[0].partition("/")
    try:
        if authority.count("@") > 1 or "@" in name:
            # The rest of a password that has an @ or a / would count as host or name, which errors quote.
            raise psycopg.ProgrammingError
        values = conninfo_to_dict(dsn)
    except psycopg.Error:
        # The error of the parser may quote the password.
        raise InvalidInput(
            f"{location} is not a connection string of Postgres. It looks like postgresql://user@host:5432/database; "
            "special characters in a password are percent-encoded."
        ) from None
    merged: dict[str, Any] = {**DEFAULTS, **values, "client_encoding": "UTF8"}
    return make_conninfo(**merged)
