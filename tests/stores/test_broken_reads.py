"""A read that breaks off, at whichever statement or row, changes no later answer."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pytest

import sennit
from sennit.errors import SennitError, StoreUnavailable

from .helpers import COMMON_WORD, assert_contains_exactly, embedded_store, versioned_record


@dataclass
class Breakage:
    """Breaks the read connections off after a number of statements and rows."""

    left: int | None = None

    def count(self) -> None:
        if self.left is None:
            return
        if self.left == 0:
            raise StoreUnavailable("the connection was lost")
        self.left -= 1


@dataclass
class BreakingRows:
    """The rows of a statement."""

    rows: Any
    breakage: Breakage

    def __iter__(self) -> Iterator[Any]:
        for row in self.rows:
            self.breakage.count()
            yield row

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rows, name)


@dataclass
class BreakingConnection:
    """A read connection that breaks off when it is told to."""

    connection: Any
    breakage: Breakage = field(default_factory=Breakage)

    def execute(self, *statement: Any) -> BreakingRows:
        self.breakage.count()
        return BreakingRows(self.connection.execute(*statement), self.breakage)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.connection, name)


@pytest.mark.parametrize("recipe", ["keyword", "vector", "default"])
def test_a_search_that_breaks_off_anywhere_changes_no_later_answer(
    recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sennit.open(":memory:") as db:
        breakage = Breakage()
        pool = embedded_store(db).pool
        read = pool.read

        @contextlib.contextmanager
        def breaking_read() -> Iterator[BreakingConnection]:
            with read() as connection:
                yield BreakingConnection(connection, breakage)

        monkeypatch.setattr(pool, "read", breaking_read)
        for number in count():
            stored = {
                f"r{one}": versioned_record(f"r{one}", 10 * number + one, kind="event") for one in range(5)
            }
            db.add(stored.values())
            breakage.left = number
            with contextlib.suppress(SennitError), embedded_store(db).snapshot() as snapshot:
                snapshot.text_counts("kind")
                db.search(COMMON_WORD, recipe=recipe, filters="kind = event")
            is_whole, breakage.left = breakage.left > 0, None
            found = db.search(COMMON_WORD, recipe=recipe, filters="kind = event")
            assert sorted(hit.id for hit in found) == sorted(stored)
            with embedded_store(db).snapshot() as snapshot:
                assert snapshot.text_counts("kind") == {"event": 5}
            if is_whole:
                break
        assert number > 5
        assert_contains_exactly(db, stored)
