"""What every SQL statement of the store runs on: a connection, a cursor and a pool, whatever the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from sennit.stores.sql.dialect import Dialect

T = TypeVar("T")


class VersionChanged(Exception):
    """A read that supposed the last version of the database found a newer one. What it has read is discarded."""


class Cursor(Protocol):
    """The rows that a statement returned, as tuples."""

    @property
    def rowcount(self) -> int:
        """How many rows the statement changed."""
        ...

    def fetchone(self) -> Any: ...

    def fetchmany(self, size: int = ..., /) -> list[Any]: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection inside a transaction. Statements mark their parameters with `?`."""

    @property
    def dialect(self) -> Dialect: ...

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Cursor: ...

    def executemany(self, sql: str, parameters: Iterable[Sequence[Any]], /) -> Any:
        """Run a statement for each of the values. In a write it may be sent with the next statement that is read."""
        ...

    def run(self, sql: str, parameters: Sequence[Any] = ..., /) -> Any:
        """Run a statement whose result nobody reads. In a write it may be sent with the next one that is read."""
        ...

    def read_later(self, sql: str, parameters: Sequence[Any] = ..., /) -> Callable[[], Any]:
        """Run a statement in a write; the first row that it returns can be had after the commit."""
        ...

    def read_together(self, *statements: tuple[str, Sequence[Any]]) -> list[list[Any]]:
        """The rows of several statements, in one round trip."""
        ...

    def allocate(self, count: int) -> int:
        """Take numbers from the counter of changes, in a write; returns the number before the first of them."""
        ...

    def stream(self, sql: str, parameters: Sequence[Any] = ..., /) -> Iterable[Any]:
        """Rows that are read while they are used; for results that may not fit into memory."""
        ...

    def version(self) -> tuple[int, int, int]:
        """The values 'seq', 'purged' and 'model' of the table `state`."""
        ...

    def confirm(self) -> None:
        """Raise VersionChanged unless what this connection has read is of the current version; see `read_ahead`."""
        ...


class SqlPool(Protocol):
    """The connections to one database, for several threads."""

    @property
    def location(self) -> str:
        """Where the database is, for messages. Holds no password."""
        ...

    @property
    def target(self) -> str | None:
        """What `open_pool` opens the same database with in another process; None when no other process can.

        May hold a password.
        """
        ...

    @property
    def is_shared(self) -> bool:
        """Whether other machines, each with indexes of its own, may use the database."""
        ...

    def read(self) -> AbstractContextManager[Connection]:
        """A read transaction: a consistent snapshot. A nested block shares the transaction of the outer one."""
        ...

    def read_ahead(self) -> AbstractContextManager[Connection] | None:
        """A read transaction that supposes the last known version, and begins with its first statement.

        That statement, or `confirm` at the end, raises VersionChanged if there is a newer version. None where this
        saves no round trip, or while others write.
        """
        ...

    def read_separately(self) -> AbstractContextManager[Connection]:
        """A read transaction of its own, never shared with other blocks of the thread.

        A generator may hold it for as long as it wants, and another thread may finish it.
        """
        ...

    def write(self) -> AbstractContextManager[Connection]:
        """A write transaction: durable when the block ends, rolled back when it raises. One runs at a time."""
        ...

    def read_with_writer(self) -> AbstractContextManager[Connection]:
        """A connection for single reads right before a write, outside a transaction."""
        ...

    def abandon(self, connection: Connection) -> None:
        """Leave a read connection to a thread that may still use it; it is closed when that thread drops it."""
        ...

    def identity(self) -> str:
        """Distinguishes the database from a copy of it in another place."""
        ...

    def place(self) -> str:
        """Where the database is, however it is reached: another place means that it was moved or copied."""
        ...

    def has_left(self, place: str) -> bool:
        """Whether this database is known to be no longer in a place where it was."""
        ...

    def find_damage(self, connection: Connection, *, quick: bool) -> list[str]:
        """What is wrong with the database itself; empty when it is sound."""
        ...

    def schema_version(self, connection: Connection) -> int:
        """The version of the tables."""
        ...

    def size_bytes(self) -> int:
        """How much room the database takes; 0 when that is unknown."""
        ...

    def close(self) -> None:
        """Close the idle connections now, and those in use when they are released. A second call does nothing."""
        ...


def batches(values: Sequence[T], size: int = 500) -> Iterable[Sequence[T]]:
    """The values in batches that fit into one statement."""
    return (values[start : start + size] for start in range(0, len(values), size))


def placeholders(values: Sequence[object]) -> str:
    """A `?` for each value."""
    return ",".join("?" * len(values))


def paged(connection: Connection, sql: str, parameters: Sequence[Any], size: int) -> Iterator[list[Any]]:
    """Pages of an ordered SELECT, the first of `size` rows and each next one four times as long.

    A page is one statement, so a reader that needs only the first rows transfers only those.
    """
    start = 0
    while page := connection.execute(f"{sql} LIMIT ? OFFSET ?", (*parameters, size, start)).fetchall():
        yield page
        if len(page) < size:
            return
        start += size
        size *= 4
