"""Connections to the SQLite file, for several threads and several processes."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from sennit.errors import StoreClosed, StoreCorrupt, StoreError, StoreFull, StoreVersion
from sennit.stores.sql.connection import Connection
from sennit.stores.sql.dialect import SQLITE
from sennit.stores.sql.schema import (
    APPLICATION_ID,
    VERSION,
    create_statements,
    migrate_statements,
)

BUSY_SECONDS: Final = 120.0
"""How long a writer waits for another one. A write holds the lock for milliseconds, so a writer waits this long
only when another process was stopped in the middle of a write."""

PAGE_BYTES: Final = 8192
"""Passages of some hundred words leave a tenth of such a page empty, and a sixth of a smaller one."""

CACHE_KIB: Final = 16 * 1024
WRITER_CACHE_KIB: Final = 64 * 1024
"""The writer's pages stay in memory until the commit. Some thousand records touch pages all over the indexes on
hashes."""

MMAP_BYTES: Final = 1 << 30
"""SQLite reads up to a gigabyte of the file through the page cache, without a copy."""

WAL_BYTES: Final = 1000 * (PAGE_BYTES + 24)
"""The size of the write-ahead log at which SQLite checkpoints by default: 1000 pages, each with a header."""

PREALLOCATE_WAL_AT_WRITE: Final = 8
"""At this write of a process, the write-ahead log is extended to its full size. While a file grows, every commit
also flushes its new length, which takes half as long again as the commit itself. A process that writes only a few
times does not pay for the full size."""


class SqliteConnection(sqlite3.Connection):
    """A connection of `sqlite3` that knows its dialect; a subclass, because a wrapper would slow every statement."""

    dialect = SQLITE
    run = sqlite3.Connection.execute

    def read_later(self, sql: str, parameters: Sequence[Any] = (), /) -> Callable[[], Any]:
        """Nothing is gained by waiting: the row is read now."""
        found = self.execute(sql, parameters).fetchone()
        return lambda: found

    def read_together(self, *statements: tuple[str, Sequence[Any]]) -> list[list[Any]]:
        """The rows of several statements."""
        return [self.execute(*statement).fetchall() for statement in statements]

    def allocate(self, count: int) -> int:
        """Take numbers from the counter of changes; returns the number before the first of them."""
        (seq,) = self.execute(
            "UPDATE state SET value = value + ? WHERE key = 'seq' RETURNING value", (count,)
        ).fetchone()
        return int(seq) - count

    def confirm(self) -> None:
        """A read of SQLite never supposes a version."""

    def stream(self, sql: str, parameters: Sequence[Any] = (), /) -> Iterable[Any]:
        """A cursor of SQLite reads while it is used."""
        return self.execute(sql, parameters)

    def version(self) -> tuple[int, int, int]:
        """The values 'seq', 'purged' and 'model' of the table `state`."""
        # A join of three rows is faster than `key IN (...)`, for which SQLite builds and sorts temporary tables.
        found: tuple[int, int, int] = self.execute(
            "SELECT s.value, p.value, m.value FROM state s, state p, state m "
            "WHERE s.key = 'seq' AND p.key = 'purged' AND m.key = 'model'"
        ).fetchone()
        return found


class SqlitePool:
    """The connections to one SQLite file, or to one database in memory when `path` is None."""

    is_shared = False

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._closed = False
        self._write_lock = threading.RLock()
        self.thread_reads = threading.local()
        """`connection`: the one that the current thread reads with."""
        self._idle: list[SqliteConnection] = []
        """Connections that no thread reads with."""
        self._abandoned: set[object] = set()
        self._pool_lock = threading.Lock()
        self._writes = 0
        self._writer = self._connect(WRITER_CACHE_KIB)
        with _translate_errors(self.path):
            self._prepare(self._writer)

    @property
    def location(self) -> str:
        """The path of the file."""
        return "the database in memory" if self.path is None else str(self.path)

    @property
    def target(self) -> str | None:
        """The path of the file, for another process."""
        return None if self.path is None else str(self.path.absolute())

    def close(self) -> None:
        """Close the idle connections now, and those in use when they are released. A second call does nothing."""
        with self._write_lock, self._pool_lock:
            self._closed = True
            self._writer.close()
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    def read(self) -> contextlib.AbstractContextManager[SqliteConnection]:
        """A read transaction: a consistent snapshot. A nested block shares the transaction of the outer one."""
        return self._read_memory() if self.path is None else _ReadTransaction(self)

    def read_ahead(self) -> None:
        """Nothing: there are no round trips to save."""

    @contextlib.contextmanager
    def _read_memory(self) -> Iterator[SqliteConnection]:
        with self._write_lock:
            self._check_open()
            yield self._writer

    @contextlib.contextmanager
    def read_separately(self) -> Iterator[SqliteConnection]:
        """A read transaction of its own, never shared with other blocks of the thread.

        A generator may hold it for as long as it wants, and another thread may finish it.
        """
        if self.path is None:
            with self._write_lock:
                self._check_open()
                copy = sqlite3.connect(":memory:", check_same_thread=False, factory=SqliteConnection)
                self._writer.backup(copy)
            with contextlib.closing(copy):
                yield copy
            return
        with _translate_errors(self.path):
            connection = self.begin_read()
            try:
                yield connection
            finally:
                self.end_read(connection)

    def begin_read(self) -> SqliteConnection:
        """Begin a read transaction on an idle or new connection; `end_read` releases it."""
        self._check_open()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        connection.execute("BEGIN")
        return connection

    def end_read(self, connection: SqliteConnection) -> None:
        """End the transaction and release the connection, unless an abandoned thread may still use it."""
        with self._pool_lock:
            if connection in self._abandoned:
                self._abandoned.discard(connection)
                return
        connection.execute("COMMIT")
        with self._pool_lock:
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    @contextlib.contextmanager
    def write(self) -> Iterator[SqliteConnection]:
        """A write transaction: durable when the block ends, rolled back when it raises."""
        with self._write_lock:
            self._check_open()
            with _translate_errors(self.path):
                self._writer.execute("BEGIN IMMEDIATE")
                try:
                    yield self._writer
                    self._writes += 1
                    if self._writes == PREALLOCATE_WAL_AT_WRITE and self.path is not None:
                        _preallocate_wal(self.path.with_name(f"{self.path.name}-wal"))
                    self._writer.execute("COMMIT")
                except BaseException:
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
                    raise

    @contextlib.contextmanager
    def read_with_writer(self) -> Iterator[SqliteConnection]:
        """The writer's connection, for single reads right before a write: its cache holds what it wrote last."""
        with self._write_lock:
            self._check_open()
            with _translate_errors(self.path):
                yield self._writer

    def abandon(self, connection: Connection) -> None:
        """Leave a read connection to a thread that may still use it; it is closed when that thread drops it."""
        with self._pool_lock:
            self._abandoned.add(connection)

    def identity(self) -> str:
        """Distinguishes the file from a copy of it in another place."""
        return self.location

    def place(self) -> str:
        """The path of the file, without symbolic links."""
        return self.location if self.path is None else str(self.path.resolve())

    def has_left(self, place: str) -> bool:
        """Whether there is no file, or another database: one that was not copied to here."""
        path = Path(place)
        if not path.exists() or self.path is None:
            return True
        try:
            # Without creating anything there, and without a lock.
            with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as other:
                found = other.execute("SELECT value FROM state WHERE key = 'origin'").fetchone()
        except sqlite3.Error:
            return False
        with self.read() as connection:
            own = connection.execute("SELECT value FROM state WHERE key = 'origin'").fetchone()
        return bool(found != own)

    def find_damage(self, connection: Connection, *, quick: bool) -> list[str]:
        """Let SQLite verify the file; empty when it is sound."""
        pragma = "quick_check" if quick else "integrity_check"
        try:
            answers = [text for (text,) in connection.execute(f"PRAGMA {pragma}(10)")]
            dangling = connection.execute("PRAGMA foreign_key_check").fetchall()
        except sqlite3.DatabaseError as error:
            return [str(error)]
        if dangling:
            answers.append(f"{len(dangling)} rows refer to rows that do not exist")
        return [answer for answer in answers if answer != "ok"]

    def schema_version(self, connection: Connection) -> int:
        """The version that the file's header states."""
        return int(connection.execute("PRAGMA user_version").fetchone()[0])

    def size_bytes(self) -> int:
        """The size of the file, with its write-ahead log."""
        if self.path is None:
            return 0
        return sum(file.stat().st_size for file in self.path.parent.glob(f"{self.path.name}*"))

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("This database has been closed; open it again with sennit.open()")

    def _connect(self, cache_kib: int = CACHE_KIB) -> SqliteConnection:
        target = ":memory:" if self.path is None else str(self.path)
        with _translate_errors(self.path):
            connection = sqlite3.connect(
                target,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                factory=SqliteConnection,
            )
            connection.execute(f"PRAGMA cache_size = -{cache_kib}")
            connection.execute(f"PRAGMA mmap_size = {MMAP_BYTES}")
            connection.execute("PRAGMA temp_store = MEMORY")
            # FULL: a commit returns only when it would survive a power cut.
            connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _prepare(self, connection: SqliteConnection) -> None:
        # Count the tables first. Another process may be creating them, and sets the id in the same transaction.
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if tables and application != APPLICATION_ID:
            raise StoreVersion(f"{self.path} is a SQLite file of another program; choose another folder")
        if version > VERSION:
            raise StoreVersion(
                f"{self.path} was written by a newer sennit (schema {version}, this one knows {VERSION}). "
                "Upgrade sennit: pip install -U sennit"
            )
        if not tables:
            connection.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
        if self.path is not None and mode != "wal":
            connection.execute("PRAGMA journal_mode = WAL")
        if version < VERSION or application != APPLICATION_ID:
            self._migrate(connection)

    def _migrate(self, connection: SqliteConnection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have migrated while this one waited for the lock.
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            statements = migrate_statements(SQLITE, version) if version else create_statements(SQLITE)
            for statement in statements:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _preallocate_wal(path: Path) -> None:
    """Fill the write-ahead log with zeros up to its full size. The caller holds the write lock, so nobody else
    writes to it.

    SQLite ignores everything after the last commit: these zeros as well as frames of an earlier round.
    """
    with contextlib.suppress(OSError), path.open("r+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        missing = max(0, WAL_BYTES - size)
        written = 0
        try:
            written = file.write(bytes(missing))
        finally:
            if written < missing:
                # The disk has no room for it. Give the space back, so that the commit finds as much as before.
                file.truncate(size)


class _ReadTransaction:
    """The block of `SqlitePool.read`. A class, because every search enters one and a generator takes three times
    as long."""

    __slots__ = ("_connection", "_pool")

    def __init__(self, pool: SqlitePool) -> None:
        self._pool = pool
        self._connection: SqliteConnection | None = None
        """None inside another block, which owns the transaction."""

    def __enter__(self) -> SqliteConnection:
        pool = self._pool
        outer: SqliteConnection | None = getattr(pool.thread_reads, "connection", None)
        if outer is not None:
            return outer
        try:
            self._connection = pool.thread_reads.connection = pool.begin_read()
        except sqlite3.Error as error:
            raise _translate_error(error, pool.path) from error
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is None:
            return
        self._pool.thread_reads.connection = None
        try:
            self._pool.end_read(self._connection)
        except sqlite3.Error as late:
            error = late
        if isinstance(error, sqlite3.Error):
            raise _translate_error(error, self._pool.path) from error


@contextlib.contextmanager
def _translate_errors(path: Path | None) -> Iterator[None]:
    """Raise SQLite's errors as sennit's."""
    try:
        yield
    except sqlite3.Error as error:
        raise _translate_error(error, path) from error


def _translate_error(error: sqlite3.Error, path: Path | None) -> StoreError:
    """The sennit error for an error of SQLite, with advice."""
    where = path or "the database in memory"
    code = getattr(error, "sqlite_errorname", "")
    if code.startswith("SQLITE_FULL"):
        return StoreFull(f"The disk is full: {where} was not changed. Free some space and try again.")
    if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return StoreCorrupt(
            f"{where} is damaged ({error}). Restore it from a backup or from an export made with "
            "'sennit export --everything', and index again what came from files."
        )
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreError(
            f"{where} has been locked by another process for {BUSY_SECONDS:.0f} s. "
            "Look for a stopped process that has it open."
        )
    if code.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_IOERR")):
        return StoreError(f"{where} cannot be read or written ({error}). Check the folder's permissions.")
    return StoreError(f"{where}: {error}")
