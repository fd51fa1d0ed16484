"""The hydration plans of episodes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from sennit.repositories.keys import encode_key, key_range, last_number
from sennit.stores.contract import RecordsRole, State

_PLAN: Final = "plan"
_HYDRATED: Final = "hydrated"
"""The keys that a plan put into the prompt. Neither holds text of a record, so a removed record leaves nothing behind."""


class StoredPlan(NamedTuple):
    """A hydration plan as JSON, and the audience it was made for."""

    turn: int
    plan: str
    audience: str


class EpisodeStore:
    """The episodes of one database. A tenant sees only its own."""

    def __init__(self, records: RecordsRole) -> None:
        self._records = records

    def turns(self, tenant: str, episode: str) -> list[int]:
        """The turns of an episode, in order; empty when the episode does not exist."""
        with self._records.state() as state:
            return _turns(state, tenant, episode)

    def plan(self, tenant: str, episode: str, turn: int) -> StoredPlan | None:
        """The plan of a turn."""
        if turn < 0:
            return None
        with self._records.state() as state:
            found = state.get(encode_key(_PLAN, tenant, episode, turn))
        if found is None:
            return None
        stored = json.loads(found)
        return StoredPlan(turn, stored["plan"], stored["audience"])

    def hydrated_keys(self, tenant: str, episode: str, before: int) -> list[str]:
        """The keys that the turns before this one put into the prompt, without duplicates, latest turn first."""
        low, _ = key_range(_HYDRATED, tenant, episode)
        high = encode_key(_HYDRATED, tenant, episode, before)
        with self._records.state() as state:
            found = state.scan(low, high, reverse=True)
        return list(dict.fromkeys(key for _, keys in found for key in json.loads(keys)))

    def add_plan(
        self, tenant: str, episode: str, plan: Callable[[int], str], keys: Sequence[str], audience: str
    ) -> int:
        """Store a plan as the next turn of an episode. `plan` receives the number of that turn."""
        with self._records.transaction() as transaction:
            state = transaction.state
            turn = max(_turns(state, tenant, episode), default=0) + 1
            stored = {"plan": plan(turn), "audience": audience, "created": time.time()}
            state.put(
                [
                    (encode_key(_PLAN, tenant, episode, turn), json.dumps(stored).encode()),
                    (encode_key(_HYDRATED, tenant, episode, turn), json.dumps(list(keys)).encode()),
                ]
            )
        return turn


def _turns(state: State, tenant: str, episode: str) -> list[int]:
    # Those of the keys are read, because they are short.
    return [last_number(key) for key, _ in state.scan(*key_range(_HYDRATED, tenant, episode))]
