"""One transaction on a connection to Postgres: statements, values and errors."""

from __future__ import annotations

import re
import selectors
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import count
from typing import Any, Final, NoReturn, Protocol

import psycopg
from psycopg import RawCursor, pq
from psycopg.abc import Buffer
from psycopg.adapt import AdaptersMap, Loader
from psycopg.errors import error_from_result
from psycopg.types.numeric import Int8BinaryDumper
from psycopg.types.string import StrDumperUnknown

from sennit.errors import StoreError, StoreFull, StoreUnavailable
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


class ConnectionSource(Protocol):
    """Where a transaction gets its connection from."""

    def take(self) -> Raw:
        """A sound connection, idle or new."""
        ...

    def connect(self) -> Raw:
        """A new connection."""
        ...

    def drop_idle(self) -> None:
        """Close all idle connections, because their server has gone."""
        ...

    def fail(self, error: psycopg.Error) -> NoReturn:
        """Raise the sennit error for an error of Postgres."""
        ...


class PostgresConnection:
    """One transaction on a connection of `psycopg`. It begins with its first statement."""

    dialect = POSTGRES

    __slots__ = ("_begin", "_is_first", "_names", "_pool", "_version", "raw")

    def __init__(self, pool: ConnectionSource, begin: bytes | None) -> None:
        """`begin` is the statement that begins the transaction; None for single statements outside one."""
        self._pool = pool
        self._begin = begin
        self._is_first = begin is None
        """Whether the next statement may be repeated on another connection, because nothing has been done yet."""
        self._names = count()
        self._version: tuple[int, int, int] | None = None
        self.raw: Raw | None = None

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> RawCursor[tuple[Any, ...]]:
        """Run a statement. Its rows are in memory when it returns."""
        return self._run(_number_parameters(sql), parameters)

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> None:
        """Run a statement for each of the values, in one round trip."""
        raw = self.raw or self.start()
        try:
            with raw.cursor() as cursor:
                cursor.executemany(_number_parameters(sql), parameters)
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

    def version(self) -> tuple[int, int, int]:
        """The values 'seq', 'purged' and 'model' of the table `state`."""
        if self.raw is None:
            self.start()
        if self._version is not None:
            return self._version
        state = dict(self.execute(READ_VERSION).fetchall())
        return state["seq"], state["purged"], state["model"]

    def start(self) -> Raw:
        """Take a connection and begin the transaction."""
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
        if self._begin is BEGIN_READ:
            rows = range(result.ntuples)
            state = {result.get_value(row, 0): int(result.get_value(row, 1) or 0) for row in rows}
            self._version = (state[b"seq"], state[b"purged"], state[b"model"])
        self.raw = raw
        return raw

    def _begin_on(self, raw: Raw) -> pq.abc.PGresult:
        assert self._begin is not None
        try:
            return simple_query(raw, self._begin)
        except psycopg.Error as error:
            self.raw = None
            raw.close()
            self._pool.fail(error)

    def _run(self, sql: str, parameters: Sequence[Any]) -> RawCursor[tuple[Any, ...]]:
        raw = self.raw or self.start()
        try:
            cursor = raw.cursor(binary=True)
            cursor.execute(sql, parameters or None)
        except psycopg.Error as error:
            if not self._is_first or not is_lost(raw, error):
                self._pool.fail(error)
            self._is_first = False
            self._reconnect(raw)
            return self._run(sql, parameters)
        self._is_first = False
        return cursor  # type: ignore[return-value]

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
