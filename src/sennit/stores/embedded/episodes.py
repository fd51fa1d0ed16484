"""Episodes: the plans that were made in each, turn by turn, and what each took in."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sennit.stores.embedded.sqlite import SqlitePool


class KeptPlan(NamedTuple):
    """A plan as it is kept: JSON, and for which audience it was made."""

    turn: int
    plan: str
    audience: str


class Episodes:
    """The episodes of one database. Those of another tenant do not exist."""

    def __init__(self, database: SqlitePool) -> None:
        self._database = database

    def turns(self, tenant: str, episode: str) -> list[int]:
        """The turns of an episode, in order; none when there is no such episode."""
        with self._database.read() as connection:
            found = connection.execute(
                "SELECT turn FROM plans WHERE tenant = ? AND episode = ? ORDER BY turn", (tenant, episode)
            )
            return [turn for (turn,) in found]

    def plan(self, tenant: str, episode: str, turn: int) -> KeptPlan | None:
        """What was planned in a turn."""
        with self._database.read() as connection:
            found = connection.execute(
                "SELECT turn, plan, audience FROM plans WHERE tenant = ? AND episode = ? AND turn = ?",
                (tenant, episode, turn),
            ).fetchone()
        return KeptPlan(*found) if found else None

    def hydrated(self, tenant: str, episode: str, before: int) -> list[str]:
        """The keys that the turns before this one took in, each once, the latest turn first."""
        with self._database.read() as connection:
            found = connection.execute(
                "SELECT key FROM hydrated WHERE tenant = ? AND episode = ? AND turn < ? "
                "ORDER BY turn DESC, position",
                (tenant, episode, before),
            )
            return list(dict.fromkeys(key for (key,) in found))

    def keep(
        self, tenant: str, episode: str, plan: Callable[[int], str], keys: Sequence[str], audience: str
    ) -> int:
        """Keep a plan as the next turn of an episode; `plan` is told which turn that is."""
        with self._database.write() as connection:
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
