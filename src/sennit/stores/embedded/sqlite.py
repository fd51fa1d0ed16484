"""Connections to the SQLite file: durable, patient, and safe to use from several threads and processes."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, TypeVar

from sennit.errors import StoreClosed, StoreCorrupt, StoreError, StoreFull, StoreVersion
from sennit.stores.embedded.schema import APPLICATION_ID, MIGRATIONS, VERSION

T = TypeVar("T")

BUSY_SECONDS: Final = 120.0
"""How long one writer waits for another. A write holds the lock for milliseconds, so this is never reached
unless a process is stopped in the middle of one."""

PAGE_BYTES: Final = 8192
"""Passages of some hundred words leave a sixth of smaller pages empty, and a tenth of these."""

CACHE_KIB: Final = 16 * 1024
WRITER_CACHE_KIB: Final = 64 * 1024
"""The writer's pages stay in memory until they are committed: those of some thousand records, which stand all over the
indexes of hashes."""

MMAP_BYTES: Final = 1 << 30
"""Reads of up to a gigabyte of the file go through the page cache without a copy."""

LOG_BYTES: Final = 1000 * (PAGE_BYTES + 24)
"""How long the log grows before SQLite begins it anew: its default of pages, each with a header."""

LENGTHEN_AT: Final = 8
"""The write of a process at which the log is made that long, all at once: a file that grows has its length brought to the
disk with each write, which takes half as long again as the write alone. Who writes once or twice is spared it."""


class SqlitePool:
    """One SQLite file, or one database in memory when `path` is None."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._closed = False
        self._write_lock = threading.RLock()
        self.reading = threading.local()
        """The connection that a thread reads with."""
        self._idle: list[sqlite3.Connection] = []
        """Connections that no thread is reading with."""
        self._abandoned: set[sqlite3.Connection] = set()
        self._pool_lock = threading.Lock()
        self._writes = 0
        self._writer = self._connect(WRITER_CACHE_KIB)
        with _translated(self.path):
            self._prepare(self._writer)

    def close(self) -> None:
        """Close the connections, those in use when they are given back; a second call does nothing."""
        with self._write_lock, self._pool_lock:
            self._closed = True
            self._writer.close()
            for connection in self._idle:
                connection.close()
            self._idle.clear()

    def read(self) -> contextlib.AbstractContextManager[sqlite3.Connection]:
        """A connection on which everything read is of one moment; within another such block, of that one's."""
        return self._in_memory() if self.path is None else _Reading(self)

    @contextlib.contextmanager
    def _in_memory(self) -> Iterator[sqlite3.Connection]:
        with self._write_lock:
            self._check_open()
            yield self._writer

    @contextlib.contextmanager
    def apart(self) -> Iterator[sqlite3.Connection]:
        """Like `read`, with a moment of its own, however long the block lasts and whoever ends it."""
        if self.path is None:
            with self._write_lock:
                self._check_open()
                copy = sqlite3.connect(":memory:", check_same_thread=False)
                self._writer.backup(copy)
            with contextlib.closing(copy):
                yield copy
            return
        with _translated(self.path):
            connection = self.begin()
            try:
                yield connection
            finally:
                self.give_back(connection)

    def begin(self) -> sqlite3.Connection:
        """A connection on which a moment begins, to be given back at its end."""
        self._check_open()
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        connection.execute("BEGIN")
        return connection

    def give_back(self, connection: sqlite3.Connection) -> None:
        """End the moment, unless a thread that was not waited for may still be at it."""
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
    def write(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is durable when the block ends, and never happened when it raises."""
        with self._write_lock:
            self._check_open()
            with _translated(self.path):
                self._writer.execute("BEGIN IMMEDIATE")
                try:
                    yield self._writer
                    self._writes += 1
                    if self._writes == LENGTHEN_AT and self.path is not None:
                        _lengthen(self.path.with_name(f"{self.path.name}-wal"))
                    self._writer.execute("COMMIT")
                except BaseException:
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
                    raise

    @contextlib.contextmanager
    def before_writing(self) -> Iterator[sqlite3.Connection]:
        """The connection that writes, for single reads by who is about to: it has at hand what it wrote last."""
        with self._write_lock:
            self._check_open()
            with _translated(self.path):
                yield self._writer

    def abandon(self, connection: sqlite3.Connection) -> None:
        """Leave the connection of a `read` to a thread that may still be at it: it ends with that thread."""
        with self._pool_lock:
            self._abandoned.add(connection)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed("This database has been closed; open it again with sennit.open()")

    def _connect(self, cache_kib: int = CACHE_KIB) -> sqlite3.Connection:
        target = ":memory:" if self.path is None else str(self.path)
        with _translated(self.path):
            connection = sqlite3.connect(
                target, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            connection.execute(f"PRAGMA cache_size = -{cache_kib}")
            connection.execute(f"PRAGMA mmap_size = {MMAP_BYTES}")
            connection.execute("PRAGMA temp_store = MEMORY")
            # FULL: a commit returns only when it would survive a power cut.
            connection.execute("PRAGMA synchronous = FULL")
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # The tables first: another process may be making them, and it makes its mark in the same transaction.
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

    def _migrate(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Another process may have migrated while this one waited for the lock.
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            for step in MIGRATIONS[version:]:
                for statement in _statements(step):
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
        except BaseException:
            connection.execute("ROLLBACK")
            raise


def _lengthen(log: Path) -> None:
    """Fill the log up with zeros, for who has the write lock: nobody else writes to it then.

    What follows the last commit is passed over by SQLite, as is what is left there of an earlier round."""
    with contextlib.suppress(OSError), log.open("r+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        missing = max(0, LOG_BYTES - size)
        written = 0
        try:
            written = file.write(bytes(missing))
        finally:
            if written < missing:
                # There is no room for it: the commit goes on without, and finds as much room as there was.
                file.truncate(size)


def parts(values: Sequence[T], size: int = 500) -> Iterable[Sequence[T]]:
    """Values in pieces that one statement takes."""
    return (values[at : at + size] for at in range(0, len(values), size))


def marks(values: Sequence[object]) -> str:
    """A place in a statement for each value."""
    return ",".join("?" * len(values))


def _statements(script: str) -> Iterator[str]:
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""


class _Reading:
    """The block of `SqlitePool.read`; a class, because every search enters one and a generator takes thrice the time."""

    __slots__ = ("_connection", "_database")

    def __init__(self, database: SqlitePool) -> None:
        self._database = database
        self._connection: sqlite3.Connection | None = None
        """None within another such block."""

    def __enter__(self) -> sqlite3.Connection:
        database = self._database
        outer: sqlite3.Connection | None = getattr(database.reading, "connection", None)
        if outer is not None:
            return outer
        try:
            self._connection = database.reading.connection = database.begin()
        except sqlite3.Error as error:
            raise _explained(error, database.path) from error
        return self._connection

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is None:
            return
        self._database.reading.connection = None
        try:
            self._database.give_back(self._connection)
        except sqlite3.Error as late:
            error = late
        if isinstance(error, sqlite3.Error):
            raise _explained(error, self._database.path) from error


@contextlib.contextmanager
def _translated(path: Path | None) -> Iterator[None]:
    """SQLite's errors as ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise _explained(error, path) from error


def _explained(error: sqlite3.Error, path: Path | None) -> StoreError:
    """An error of SQLite as ours, with what to do."""
    where = path or "the database in memory"
    code = getattr(error, "sqlite_errorname", "")
    if code.startswith("SQLITE_FULL"):
        return StoreFull(f"The disk is full: {where} was not changed. Free some space and try again.")
    if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return StoreCorrupt(
            f"{where} is damaged ({error}). Restore it from a backup or from an export made with "
            "'sennit export', and index again what came from files."
        )
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreError(
            f"{where} has been locked by another process for {BUSY_SECONDS:.0f} s. "
            "Look for a stopped process that has it open."
        )
    if code.startswith(("SQLITE_CANTOPEN", "SQLITE_READONLY", "SQLITE_PERM", "SQLITE_IOERR")):
        return StoreError(f"{where} cannot be read or written ({error}). Check the folder's permissions.")
    return StoreError(f"{where}: {error}")
