"""Connections to the Postgres server of the indexes. Several searches go to the server in one round trip."""

from __future__ import annotations

import contextlib
import selectors
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import RawCursor, pq
from psycopg.errors import error_from_result

from sennit.errors import SourceError
from sennit.stores.servers.postgres.statements import Statement
from sennit.stores.sql.postgres import parse_conninfo
from sennit.stores.sql.postgres_connection import first_line, is_lost, is_ready
from sennit.stores.target import describe_target

Raw = psycopg.Connection[tuple[Any, ...]]
Result: TypeAlias = pq.abc.PGresult

MAX_IDLE_CONNECTIONS: Final = 16
"""Connections kept for later, as for the records."""

ANSWER_MARGIN_SECONDS: Final = 5.0
"""How long after its own time limit the server may take to say so."""

_SESSION: Final = """
    SET client_encoding = 'UTF8';
    SET jit = off;
    SET plan_cache_mode = force_custom_plan;
    SET statement_timeout = {milliseconds};
    SELECT CASE current_setting('synchronous_commit')
        WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END;
    SET default_transaction_read_only = {read_only};
    SELECT set_config('search_path', {search_path} || coalesce((
        SELECT string_agg(DISTINCT ', ' || quote_ident(n.nspname), '')
        FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
        WHERE e.extname IN ('vector', 'pg_search', 'pg_textsearch')), '') || ', public', false);
    SET hnsw.iterative_scan = relaxed_order;
    SET hnsw.max_scan_tuples = 2147483647;
    SET ivfflat.iterative_scan = relaxed_order;
    SET ivfflat.max_probes = 32768;
    SET hnsw.ef_search = {ef_search}
"""
"""Run on every new connection. The plan of a search depends on its values, so it is made for them. The operators of
pgvector are found in the schema of the extension. A filtered search goes on in the HNSW index until it is full."""


class Client:
    """The connections. A lost one fails its operation; the next operation reconnects."""

    def __init__(self, url: str, *, schema: str | None, timeout_seconds: float, ef_search: int) -> None:
        """`schema` is that of the indexes; without one, the connections can only read, where the user reads."""
        self.location = describe_target(url)
        self._conninfo = parse_conninfo(url, self.location)
        self._timeout_seconds = timeout_seconds
        self._session = _SESSION.format(
            milliseconds=round(timeout_seconds * 1000),
            search_path="current_setting('search_path')" if schema is None else f"quote_ident('{schema}')",
            read_only="on" if schema is None else "off",
            ef_search=ef_search,
        ).encode()
        self._lock = threading.Lock()
        self._idle: list[Raw] = []
        self._is_closed = False

    def run_many(self, groups: Sequence[Sequence[Statement]]) -> list[Result | psycopg.Error]:
        """The last result of each group of statements, all in one round trip. A group is one transaction."""
        with self._connection() as raw:
            try:
                results = self._send(raw, groups)
            except psycopg.Error:
                # Answers that come too late must not reach the next search.
                raw.close()
                raise
            for result in results:
                if isinstance(result, psycopg.Error) and is_lost(raw, result):
                    raise result
        return results

    def run(self, statement: Statement) -> Result:
        """The result of one statement."""
        (result,) = self.run_many([[statement]])
        if isinstance(result, psycopg.Error):
            raise self.error(result) from result
        return result

    def fetch(self, statement: str, values: Sequence[Any], *, exact: bool = False) -> list[tuple[Any, ...]]:
        """The rows of a statement as Python values; `exact` uses no index for the order."""
        with self._connection() as raw, raw.transaction():
            if exact:
                raw.execute("SET LOCAL enable_indexscan = off")
            return raw.execute(statement.encode(), values).fetchall()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Raw]:
        """A write transaction: durable when the block ends, without effect when it raises."""
        with self._connection() as raw, raw.transaction():
            # A batch or an index that is being built may take long; its connection is watched by keep-alives.
            raw.execute("SET LOCAL statement_timeout = 0")
            yield raw

    def close(self) -> None:
        """Close the idle connections now, and those in use when they are released."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for raw in idle:
            raw.close()

    def error(self, error: psycopg.Error) -> SourceError:
        """The error of a source for an error of Postgres, with advice."""
        reason = error.diag.message_primary or first_line(error)
        if isinstance(error, psycopg.errors.UndefinedTable | psycopg.errors.InvalidSchemaName):
            return SourceError(
                f"the index on {self.location} is missing ({reason}). It is built again with the next flush; "
                "`sennit migrate` does it now."
            )
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return SourceError(f"{self.location}: {reason}. Grant the user of [postgres] url this right.")
        if isinstance(error, psycopg.errors.QueryCanceled):
            return SourceError(
                f"{self.location} took longer than {self._timeout_seconds:g} s (postgres.timeout)"
            )
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            return self._unavailable(error)
        return SourceError(f"{self.location}: {reason}")

    def _unavailable(self, error: psycopg.Error) -> SourceError:
        return SourceError(
            f"{self.location} does not answer ({first_line(error)}). Check that the server runs, and [postgres] url; "
            "sennit reconnects by itself."
        )

    # Connections.

    @contextlib.contextmanager
    def _connection(self) -> Iterator[Raw]:
        """A connection for one block. It is kept for later, unless the block lost or interrupted it.

        An error of Postgres becomes that of a source.
        """
        raw = self._take()
        try:
            yield raw
        except psycopg.Error as error:
            if is_lost(raw, error):
                raw.close()
            else:
                self._give_back(raw)
            raise self.error(error) from error
        except BaseException:
            raw.close()
            raise
        self._give_back(raw)

    def _take(self) -> Raw:
        if self._is_closed:
            raise SourceError(f"the connection to {self.location} has been closed")
        while True:
            with self._lock:
                raw = self._idle.pop() if self._idle else None
            if raw is None:
                return self._connect()
            # Also discards one whose server has gone: it has closed the connection.
            if is_ready(raw):
                return raw
            raw.close()

    def _give_back(self, raw: Raw) -> None:
        with self._lock:
            is_sound = raw.pgconn.status == pq.ConnStatus.OK and not self._is_closed
            if is_sound and len(self._idle) < MAX_IDLE_CONNECTIONS:
                self._idle.append(raw)
                return
        raw.close()

    def _connect(self) -> Raw:
        try:
            raw = psycopg.connect(self._conninfo, autocommit=True, cursor_factory=RawCursor)
        except psycopg.Error as error:
            raise self._unavailable(error) from error
        try:
            with raw.lock:
                result = raw.pgconn.exec_(self._session)
            if result.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
                raise self.error(error_from_result(result, encoding="utf-8"))
        except psycopg.Error as error:
            raw.close()
            raise self._unavailable(error) from error
        except BaseException:
            raw.close()
            raise
        return raw

    # One round trip.

    def _send(self, raw: Raw, groups: Sequence[Sequence[Statement]]) -> list[Result | psycopg.Error]:
        connection = raw.pgconn
        end = time.monotonic() + self._timeout_seconds + ANSWER_MARGIN_SECONDS
        with raw.lock:
            connection.enter_pipeline_mode()
            try:
                for group in groups:
                    for one in group:
                        connection.send_query_params(
                            one.sql.encode(),
                            one.values,
                            param_formats=one.formats,
                            result_format=pq.Format.BINARY,
                        )
                    connection.pipeline_sync()
                _flush(connection, end)
                return [_receive(connection, end) for _ in groups]
            finally:
                if connection.status == pq.ConnStatus.OK and connection.transaction_status != (
                    pq.TransactionStatus.ACTIVE
                ):
                    connection.exit_pipeline_mode()


def _flush(connection: pq.abc.PGconn, end: float) -> None:
    """Send what is left in the buffer. The server may answer meanwhile, and waits until that is read."""
    while connection.flush():
        _wait(connection, selectors.EVENT_READ | selectors.EVENT_WRITE, end)
        connection.consume_input()


def _receive(connection: pq.abc.PGconn, end: float) -> Result | psycopg.Error:
    """The last result of a group, or its error."""
    last: Result | None = None
    error: psycopg.Error | None = None
    while True:
        while connection.is_busy():
            _wait(connection, selectors.EVENT_READ, end)
            connection.consume_input()
        result = connection.get_result()
        if result is None:
            if connection.status != pq.ConnStatus.OK:
                raise psycopg.OperationalError("the connection was lost")
            continue
        if result.status == pq.ExecStatus.PIPELINE_SYNC:
            assert last is not None or error is not None
            return error or last  # type: ignore[return-value]
        if result.status in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            last = result
        elif result.status != pq.ExecStatus.PIPELINE_ABORTED and error is None:
            error = error_from_result(result, encoding="utf-8")
            if connection.status != pq.ConnStatus.OK:
                return error


def _wait(connection: pq.abc.PGconn, events: int, end: float) -> None:
    with selectors.DefaultSelector() as selector:
        selector.register(connection.socket, events)
        if not selector.select(max(0.0, end - time.monotonic())):
            raise psycopg.OperationalError("no answer within the time limit")
