"""Conversations: the positions of turns in their sessions, and the hydration plans of episodes."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sennit.records import full_id, split_id
from sennit.stores.embedded.sqlite import SqlitePool
from sennit.turns import Turn


def read_positions(
    connection: sqlite3.Connection, turns: Sequence[Turn]
) -> tuple[dict[str, int | None], dict[tuple[str, str], int]]:
    """The positions of the turns that are stored, by full id, and the next free position by tenant and session."""
    ids = json.dumps([full_id(turn.tenant, turn.id) for turn in turns])
    known: dict[str, int | None] = dict(
        connection.execute(
            "SELECT id, position FROM records WHERE id IN (SELECT value FROM json_each(?))", (ids,)
        )
    )
    free: dict[tuple[str, str], int] = {}
    for session in {turn.session for turn in turns}:
        found = connection.execute("SELECT id, position FROM records WHERE parent = ?", (session,))
        for record_id, position in found:
            tenant = split_id(record_id)[0]
            free[tenant, session] = max(free.get((tenant, session), 0), (position or 0) + 1)
    return known, free


class StoredPlan(NamedTuple):
    """A hydration plan as JSON, and the audience it was made for."""

    turn: int
    plan: str
    audience: str


class EpisodeStore:
    """The episodes of one database. A tenant sees only its own."""

    def __init__(self, sqlite: SqlitePool) -> None:
        self._sqlite = sqlite

    def turns(self, tenant: str, episode: str) -> list[int]:
        """The turns of an episode, in order; empty when the episode does not exist."""
        with self._sqlite.read() as connection:
            found = connection.execute(
                "SELECT turn FROM plans WHERE tenant = ? AND episode = ? ORDER BY turn", (tenant, episode)
            )
            return [turn for (turn,) in found]

    def plan(self, tenant: str, episode: str, turn: int) -> StoredPlan | None:
        """The plan of a turn."""
        with self._sqlite.read() as connection:
            found = connection.execute(
                "SELECT turn, plan, audience FROM plans WHERE tenant = ? AND episode = ? AND turn = ?",
                (tenant, episode, turn),
            ).fetchone()
        return StoredPlan(*found) if found else None

    def hydrated_keys(self, tenant: str, episode: str, before: int) -> list[str]:
        """The keys that the turns before this one put into the prompt, without duplicates, latest turn first."""
        with self._sqlite.read() as connection:
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
        with self._sqlite.write() as connection:
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
