"""One transaction on a connection to Postgres: statements, values and errors."""

from __future__ import annotations

import re
import selectors
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache
from itertools import count, islice
from typing import Any, Final, NoReturn, Protocol

import psycopg
from psycopg import RawCursor, pq
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.errors import error_from_result
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrDumperUnknown

from sennit.errors import StoreError, StoreFull, StoreUnavailable
from sennit.stores.sql.connection import Cursor, VersionChanged
from sennit.stores.sql.dialect import POSTGRES

Raw = psycopg.Connection[tuple[Any, ...]]

SCHEMA: Final = "sennit"
"""The Postgres schema that holds the tables. Other programs may use the same database."""

LOCK_SECONDS: Final = 120
"""How long a writer waits for another one, as on SQLite."""

ANSWER_SECONDS: Final = 10.0
"""How long a connection may take to answer the end of its last transaction."""

STREAM_ROWS: Final = 2000
"""Rows fetched at once when a result is streamed."""

READ_VERSION: Final = "SELECT key, value FROM state"
"""The whole table: half a dozen rows, and nothing to plan."""

BEGIN_READ: Final = f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; {READ_VERSION}".encode()
"""One round trip: the snapshot is taken by the SELECT, which returns its version."""

STALLED_SECONDS: Final = 300
"""After this long without a statement the server ends a write, so that a stopped process does not block the others."""

BEGIN_WRITE: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
    f"SET LOCAL idle_in_transaction_session_timeout = '{STALLED_SECONDS}s'",
)
LOCK_COUNTER: Final = "SELECT value FROM state WHERE key = 'seq' FOR UPDATE"
"""Writers queue for the counter of changes. So what a transaction reads cannot change before it commits, and numbers
become visible in their order. Each statement sees what was committed when it begins, and the server begins the one after
this only with the lock, so both are sent together."""


Version = tuple[int, int, int]
"""The values 'seq', 'purged' and 'model' of the table `state`."""


class ConnectionSource(Protocol):
    """Where a transaction gets its connection from."""

    def take(self) -> Raw:
        """A sound connection, idle or new."""
        ...

    def connect(self) -> Raw:
        """A new connection."""
        ...

    def give_back(self, raw: Raw) -> None:
        """Keep a connection for later, if it is sound."""
        ...

    def drop_idle(self) -> None:
        """Close all idle connections, because their server has gone."""
        ...

    def note_version(self, version: Version) -> None:
        """Remember the version that a read transaction has found."""
        ...

    def fail(self, error: psycopg.Error) -> NoReturn:
        """Raise the sennit error for an error of Postgres."""
        ...


Statement = tuple[str, Sequence[Any]]
"""SQL with numbered parameters, and their values."""


class PostgresConnection:
    """One transaction on a connection of `psycopg`. It begins with its first statement.

    A write is sent in a pipeline: its beginning goes with its first statement, and statements whose results nobody reads
    go with the next one, or with the commit.
    """

    dialect = POSTGRES

    __slots__ = (
        "_begin",
        "_is_first",
        "_is_stale",
        "_names",
        "_pipeline",
        "_pool",
        "_seq",
        "_stack",
        "_supposed",
        "_version",
        "_writes",
        "raw",
    )

    def __init__(
        self,
        pool: ConnectionSource,
        begin: bytes | None,
        supposed: Version | None = None,
        *,
        writes: bool = False,
    ) -> None:
        """`begin` is the statement that begins a read transaction; None for a write, and for single statements.

        A read that is `supposed` to be of a version asks for it together with its first statement.
        """
        self._pool = pool
        self._begin = begin
        self._writes = writes
        self._is_first = begin is None and not writes
        """Whether the next statement may be repeated on another connection, because nothing has been done yet."""
        self._names = count()
        self._version: Version | None = supposed
        self._supposed = supposed
        self._is_stale = False
        self._pipeline: psycopg.Pipeline | None = None
        self._stack = ExitStack()
        """Ends the pipeline."""
        self._seq = 0
        """The last number that a write has taken; it holds the lock of the counter."""
        self.raw: Raw | None = None

    @property
    def is_begun(self) -> bool:
        """Whether a transaction is open."""
        return self.raw is not None and self._supposed is None

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Cursor:
        """Run a statement. Its rows are in memory when it returns."""
        return self._run(_number_parameters(sql), parameters)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> None:
        """Run a statement for each of the values; in a write, with the next statement that is read."""
        raw = self.raw or self.start()
        try:
            raw.cursor().executemany(_number_parameters(sql), parameters)
        except psycopg.Error as error:
            self._pool.fail(error)

    def run(self, sql: str, parameters: Sequence[Any] = (), /) -> None:
        """Run a statement whose result nobody reads; in a write, with the next one that is read."""
        self._send(sql, parameters)

    def read_later(self, sql: str, parameters: Sequence[Any] = (), /) -> Callable[[], Any]:
        """Run a statement in a write; the first row that it returns can be had after the commit."""
        return self._send(sql, parameters).fetchone

    def read_together(self, *statements: tuple[str, Sequence[Any]]) -> list[list[Any]]:
        """The rows of several statements, in one round trip."""
        if not self._writes:
            return [self.execute(*statement).fetchall() for statement in statements]
        if self.raw is None:
            cursors = self._start_write([(_number_parameters(sql), values) for sql, values in statements])
        else:
            cursors = [self._send(*statement) for statement in statements]
            self._sync()
        return [cursor.fetchall() for cursor in cursors]

    def allocate(self, count: int) -> int:
        """Take numbers from the counter of changes, whose lock this write holds, without a round trip."""
        if self.raw is None:
            self.start()
        before = self._seq
        self._seq += count
        self.run("UPDATE state SET value = ? WHERE key = 'seq'", (self._seq,))
        return before

    def _send(self, sql: str, parameters: Sequence[Any]) -> RawCursor[tuple[Any, ...]]:
        """Run a statement; in a pipeline, its result arrives with the next `_sync`."""
        raw = self.raw or self.start()
        cursor: RawCursor[tuple[Any, ...]] = raw.cursor(binary=True)  # type: ignore[assignment]
        try:
            cursor.execute(_number_parameters(sql), parameters or None)
        except psycopg.Error as error:
            self._pool.fail(error)
        return cursor

    def _sync(self) -> None:
        assert self._pipeline is not None
        try:
            self._pipeline.sync()
        except psycopg.Error as error:
            self._pool.fail(error)

    def stream(self, sql: str, parameters: Sequence[Any] = (), /) -> Iterator[Any]:
        """Rows in batches, from a cursor of the server that ends with the transaction."""
        name = f"stream_{next(self._names)}"
        self._run(f"DECLARE {name} NO SCROLL CURSOR FOR {_number_parameters(sql)}", parameters)
        fetch = f"FETCH FORWARD {STREAM_ROWS} FROM {name}"
        while rows := self._run(fetch, ()).fetchall():
            yield from rows
            if len(rows) < STREAM_ROWS:
                break
        self._run(f"CLOSE {name}", ())

    def version(self) -> Version:
        """The values 'seq', 'purged' and 'model' of the table `state`."""
        if self.raw is None and self._supposed is None:
            self.start()
        if self._version is not None:
            return self._version
        state: dict[str, int] = dict(self.execute(READ_VERSION).fetchall())
        return state["seq"], state["purged"], state["model"]

    def confirm(self) -> None:
        """Raise VersionChanged unless what this connection has read is of the current version."""
        if self._supposed is not None and self.raw is None and not self._is_stale:
            self._run("SELECT 1", ())
        if self._is_stale:
            raise VersionChanged

    def _run_alone(self, sql: str, parameters: Sequence[Any]) -> RowsInMemory:
        """Run a statement and read its version, in one round trip and without a transaction.

        Statements of the same version see the same records, so a search needs no transaction as long as none differs.
        """
        if self._is_stale:
            raise VersionChanged
        raw = self.raw or self._pool.take()
        try:
            cursor = raw.cursor(binary=True)
            rows = cursor.execute(_with_version(sql), parameters or None).fetchall()
        except psycopg.Error as error:
            self.raw = None
            lost = is_lost(raw, error)
            raw.close()
            if not lost:
                self._pool.fail(error)
            # The server may be back: the search is repeated on a new connection.
            self._pool.drop_idle()
            self._is_stale = True
            raise VersionChanged from error
        self.raw = raw
        found: Version = rows[0][:3]
        self._pool.note_version(found)
        if found != self._supposed:
            self._is_stale = True
            raise VersionChanged
        return RowsInMemory([row[4:] for row in rows] if rows[0][3] else [])

    def _start_as_supposed(self) -> None:
        """Begin a transaction after all, for a statement that cannot run alone."""
        if self._is_stale:
            raise VersionChanged
        supposed, self._supposed = self._supposed, None
        if self.raw is not None:
            self._pool.give_back(self.raw)
            self.raw = None
        self.start()
        if self._version != supposed:
            self._is_stale = True
            raise VersionChanged

    def start(self) -> Raw:
        """Take a connection and begin the transaction."""
        if self._writes:
            self._start_write(())
            assert self.raw is not None
            return self.raw
        raw = self._pool.take()
        if self._begin is None:
            self.raw = raw
            return raw
        try:
            result = simple_query(raw, self._begin)
        except psycopg.Error as error:
            if not is_lost(raw, error):
                raw.close()
                self._pool.fail(error)
            raw = self._reconnect(raw)
            result = self._begin_on(raw)
        rows = range(result.ntuples)
        state = {result.get_value(row, 0): int(result.get_value(row, 1) or 0) for row in rows}
        self._version = (state[b"seq"], state[b"purged"], state[b"model"])
        self._pool.note_version(self._version)
        self.raw = raw
        return raw

    def _start_write(self, first: Sequence[Statement]) -> list[Cursor]:
        """Begin a write, wait for the lock of the counter and run the first statements, all in one round trip."""
        raw = self._pool.take()
        try:
            return self._begin_write(raw, first)
        except psycopg.Error as error:
            if not is_lost(raw, error):
                self._pool.fail(error)
            with suppress(psycopg.Error):
                self.leave_pipeline()
            raw = self._reconnect(raw)
        try:
            return self._begin_write(raw, first)
        except psycopg.Error as error:
            self._pool.fail(error)

    def _begin_write(self, raw: Raw, first: Sequence[Statement]) -> list[Cursor]:
        self.raw = raw
        self._pipeline = self._stack.enter_context(raw.pipeline())
        for sql in BEGIN_WRITE:
            raw.execute(sql)
        lock, *cursors = [
            raw.cursor(binary=True).execute(sql, values or None)
            for sql, values in [(LOCK_COUNTER, ()), *first]
        ]
        self._pipeline.sync()
        (self._seq,) = lock.fetchone() or (0,)
        return [*cursors]

    def commit(self) -> str | None:
        """Send what waits, and commit; returns what the server says of it."""
        cursor = self._send("COMMIT", ())
        self.leave_pipeline()
        return cursor.statusmessage

    def leave_pipeline(self) -> None:
        """Send what waits, and end the pipeline."""
        self._pipeline = None
        self._stack.close()

    def _begin_on(self, raw: Raw) -> pq.abc.PGresult:
        assert self._begin is not None
        try:
            return simple_query(raw, self._begin)
        except psycopg.Error as error:
            self.raw = None
            raw.close()
            self._pool.fail(error)

    def _run(self, sql: str, parameters: Sequence[Any]) -> Cursor:
        if self._supposed is not None or self._is_stale:
            if sql.startswith("SELECT") and "ORDER BY" not in sql:
                return self._run_alone(sql, parameters)
            self._start_as_supposed()
        if self._writes and self.raw is None:
            (first,) = self._start_write([(sql, parameters)])
            return first
        raw = self.raw or self.start()
        try:
            cursor = raw.cursor(binary=True)
            cursor.execute(sql, parameters or None)
            if self._pipeline is not None:
                self._pipeline.sync()
        except psycopg.Error as error:
            if not self._is_first or not is_lost(raw, error):
                self._pool.fail(error)
            self._is_first = False
            self._reconnect(raw)
            return self._run(sql, parameters)
        self._is_first = False
        return cursor

    def _reconnect(self, lost: Raw) -> Raw:
        """Take a new connection, because an idle one ended with its server, which may be back."""
        self.raw = None
        lost.close()
        self._pool.drop_idle()
        self.raw = self._pool.connect()
        return self.raw

    def __del__(self) -> None:
        # Only a connection that was abandoned to its thread is still here.
        if self.raw is not None:
            self.raw.close()


# Statements and values.


class RowsInMemory:
    """The rows of a statement that ran alone, as a cursor has them."""

    def __init__(self, rows: list[Any]) -> None:
        self._rows = iter(rows)
        self.rowcount = len(rows)

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchmany(self, size: int = 1, /) -> list[Any]:
        return list(islice(self._rows, size))

    def fetchall(self) -> list[Any]:
        return list(self._rows)

    def __iter__(self) -> Iterator[Any]:
        return self._rows


@lru_cache(maxsize=1024)
def _with_version(sql: str) -> str:
    """A statement that returns version and rows: three numbers, whether there is a row, and the row."""
    return f"""
        SELECT seq, purged, model, q.* FROM (
            SELECT max(value) FILTER (WHERE key = 'seq') AS seq, max(value) FILTER (WHERE key = 'purged') AS purged,
            max(value) FILTER (WHERE key = 'model') AS model FROM state
        ) AS version LEFT JOIN (SELECT true AS found, inner_rows.* FROM ({sql}) AS inner_rows) AS q ON true
    """


@lru_cache(maxsize=1024)
def _number_parameters(sql: str) -> str:
    """The statement with `$1`, `$2` … in place of each `?`."""
    numbers = count(1)
    return re.sub(r"\?", lambda _: f"${next(numbers)}", sql)


def simple_query(raw: Raw, sql: bytes) -> pq.abc.PGresult:
    """Run statements without parameters in one round trip; returns the last result."""
    with raw.lock:
        result = raw.pgconn.exec_(sql)
    if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
        raise error_from_result(result, encoding="utf-8")
    return result


def is_lost(raw: Raw, error: psycopg.Error) -> bool:
    """Whether the connection has ended; 57P: the server shuts down or starts."""
    return raw.pgconn.status != pq.ConnStatus.OK or (error.sqlstate or "").startswith("57P")


def is_ready(raw: Raw) -> bool:
    """Whether an idle connection is sound. Discards the answer that `end_read` did not wait for; no round trip."""
    connection = raw.pgconn
    try:
        # Reads what has arrived without waiting, and fails when the server has closed the connection.
        connection.consume_input()
        while True:
            while connection.is_busy():
                with selectors.DefaultSelector() as selector:
                    selector.register(connection.socket, selectors.EVENT_READ)
                    if not selector.select(ANSWER_SECONDS):
                        return False
                connection.consume_input()
            if connection.get_result() is None:
                return connection.status == pq.ConnStatus.OK
    except psycopg.Error:
        return False


_ESCAPES: Final = {0: "\x01\x01", 1: "\x01\x02"}
"""Postgres cannot store U+0000. These escapes keep the order of texts."""

_UNESCAPES: Final = {"\x01\x01": "\x00", "\x01\x02": "\x01"}


class _TextDumper(StrDumperUnknown):
    """Writes texts with U+0000 and U+0001 escaped."""

    def dump(self, obj: str) -> Buffer | None:
        if "\x00" in obj or "\x01" in obj:
            obj = obj.translate(_ESCAPES)
        return super().dump(obj)


class _TextLoader(Loader):
    """Reads texts as `_TextDumper` wrote them."""

    format = pq.Format.BINARY

    def load(self, data: Buffer) -> str:
        text = str(data, "utf-8")
        if "\x01" in text:
            # The second half of the last escape may have been cut off by substr().
            return re.sub("\x01[\x01\x02]?", lambda match: _UNESCAPES.get(match[0], ""), text)
        return text


def make_adapters() -> AdaptersMap:
    """How values of Python are sent and received."""
    adapters = AdaptersMap(psycopg.adapters)
    adapters.register_dumper(str, _TextDumper)
    # One size of integers for all values: a prepared statement is then used for all of them.
    adapters.register_dumper(int, Int8BinaryDumper)
    adapters.register_loader("text", _TextLoader)
    return adapters


# Errors.


def translate_error(error: psycopg.Error, location: str) -> StoreError:
    """The sennit error for an error of Postgres, with advice."""
    reason = error.diag.message_primary or first_line(error)
    if isinstance(error, psycopg.errors.DiskFull):
        return StoreFull(
            f"The disk of the server is full: {location} was not changed. Free some space and try again."
        )
    if isinstance(error, psycopg.errors.LockNotAvailable):
        return StoreError(
            f"{location} has been locked by another process for {LOCK_SECONDS} s. "
            "Look for a stopped process that writes to it."
        )
    if isinstance(error, psycopg.errors.InsufficientPrivilege):
        return StoreError(
            f"{location}: {reason}. Grant the user the right to create the schema {SCHEMA}, or to use its tables."
        )
    if isinstance(error, psycopg.errors.ReadOnlySqlTransaction):
        return StoreError(f"{location} is read-only ({reason}). Connect to the primary server.")
    if isinstance(error, psycopg.errors.ProgramLimitExceeded):
        return StoreError(
            f"{location}: a value is too long for an index of Postgres ({reason}). Use shorter ids and paths."
        )
    if isinstance(error, psycopg.errors.DataCorrupted | psycopg.errors.IndexCorrupted):
        return StoreError(f"{location} is damaged ({reason}). Restore it from a backup.")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreUnavailable(
            f"The connection to {location} was lost ({reason}). Nothing that was confirmed is lost. Check that the "
            "server runs, and try again; sennit reconnects by itself."
        )
    return StoreError(f"{location}: {reason}")


def first_line(error: psycopg.Error) -> str:
    """The first line of an error of Postgres."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
