"""Conversations: the positions of turns in their sessions, and the hydration plans of episodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from sennit.records import full_id, split_id
from sennit.stores.embedded.transaction import Transaction
from sennit.stores.sql.connection import SqlPool, paged
from sennit.turns import Turn

TURNS_PAGE: Final = 16
"""Turns read at first to find the last one of a tenant. Only tenants that share a session's name need more."""


def read_positions(
    transaction: Transaction, turns: Sequence[Turn]
) -> tuple[dict[str, int | None], dict[tuple[str, str], int]]:
    """The positions of the turns that are stored, by full id, and the next free position by tenant and session."""
    known: dict[str, int | None] = {
        record_id: record.position
        for record_id, record in transaction.get(full_id(turn.tenant, turn.id) for turn in turns).items()
    }
    return known, {
        (tenant, session): _next_position(transaction, tenant, session)
        for tenant, session in {(turn.tenant, turn.session) for turn in turns}
    }


def _next_position(transaction: Transaction, tenant: str, session: str) -> int:
    # Backwards along the index: the first row of the tenant is its last turn.
    dialect = transaction.connection.dialect
    pages = paged(
        transaction.connection,
        f"SELECT id, position FROM records WHERE {dialect.same_text('parent')} AND position IS NOT NULL "
        "ORDER BY position DESC",
        dialect.same_text_values(session),
        TURNS_PAGE,
    )
    found = (turn for page in pages for turn in page)
    last = next((position for record_id, position in found if split_id(record_id)[0] == tenant), -1)
    return int(last) + 1


class StoredPlan(NamedTuple):
    """A hydration plan as JSON, and the audience it was made for."""

    turn: int
    plan: str
    audience: str


class EpisodeStore:
    """The episodes of one database. A tenant sees only its own."""

    def __init__(self, pool: SqlPool) -> None:
        self._pool = pool

    def turns(self, tenant: str, episode: str) -> list[int]:
        """The turns of an episode, in order; empty when the episode does not exist."""
        with self._pool.read() as connection:
            found = connection.execute(
                "SELECT turn FROM plans WHERE tenant = ? AND episode = ? ORDER BY turn", (tenant, episode)
            )
            return [turn for (turn,) in found]

    def plan(self, tenant: str, episode: str, turn: int) -> StoredPlan | None:
        """The plan of a turn."""
        with self._pool.read() as connection:
            found = connection.execute(
                "SELECT turn, plan, audience FROM plans WHERE tenant = ? AND episode = ? AND turn = ?",
                (tenant, episode, turn),
            ).fetchone()
        return StoredPlan(*found) if found else None

    def hydrated_keys(self, tenant: str, episode: str, before: int) -> list[str]:
        """The keys that the turns before this one put into the prompt, without duplicates, latest turn first."""
        with self._pool.read() as connection:
            found = connection.execute(
                "SELECT key FROM hydrated WHERE tenant = ? AND episode = ? AND turn < ? "
                "ORDER BY turn DESC, position",
                (tenant, episode, before),
            )
            return list(dict.fromkeys(key for (key,) in found))

    def add_plan(
        self, tenant: str, episode: str, plan: Callable[[int], str], keys: Sequence[str], audience: str
    ) -> int:
        """Store a plan as the next turn of an episode. `plan` receives the number of that turn."""
        with self._pool.write() as connection:
            (last,) = connection.execute(
                "SELECT coalesce(max(turn), 0) FROM plans WHERE tenant = ? AND episode = ?", (tenant, episode)
            ).fetchone()
            turn: int = last + 1
            connection.execute(
                "INSERT INTO plans VALUES (?, ?, ?, ?, ?, ?)",
                (tenant, episode, turn, plan(turn), audience, time.time()),
            )
            connection.executemany(
                "INSERT INTO hydrated VALUES (?, ?, ?, ?, ?)",
                ((tenant, episode, turn, position, key) for position, key in enumerate(keys, 1)),
            )
        return turn
