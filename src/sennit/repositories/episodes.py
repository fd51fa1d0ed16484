"""The hydration plans of episodes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sennit.repositories.keys import encode_key, key_range, last_number, last_text
from sennit.stores.contract import RecordsRole, State

_PLAN: Final = "plan"
_HYDRATED: Final = "hydrated"
"""The keys that a plan put into the prompt. Neither holds text of a record, so a removed record leaves nothing behind."""


class StoredPlan(NamedTuple):
    """A hydration plan as JSON, and the audience it was made for."""

    turn: int
    plan: str
    audience: str
    """Without the project, which narrows what a plan is made of and not who may see it."""
    project: tuple[str, ...] = ()
    """The keys of the folders that the plan was limited to; none for all."""


class ListedPlan(NamedTuple):
    """A stored plan with the name of its episode, and when it was made, in seconds since 1970."""

    episode: str
    created: float
    stored: StoredPlan


class EpisodeStore:
    """The episodes of one database. A tenant sees only its own."""

    def __init__(self, records: RecordsRole) -> None:
        self._records = records

    def turns(self, tenant: str, episode: str) -> list[int]:
        """The turns of an episode, in order; empty when the episode does not exist."""
        with self._records.state() as state:
            return _turns(state, tenant, episode)

    def all(self, tenant: str) -> list[ListedPlan]:
        """Every plan of the tenant, by episode and turn."""
        with self._records.state() as state:
            pairs = state.scan(*key_range(_PLAN, tenant))
        found = []
        for key, value in pairs:
            stored = json.loads(value)
            turn = last_number(key)
            episode = last_text(key.removesuffix(encode_key(turn)), _PLAN, tenant)
            found.append(ListedPlan(episode, stored["created"], _stored_plan(turn, stored)))
        return found

    def plan(self, tenant: str, episode: str, turn: int) -> StoredPlan | None:
        """The plan of a turn."""
        if turn < 0:
            return None
        with self._records.state() as state:
            found = state.get(encode_key(_PLAN, tenant, episode, turn))
        if found is None:
            return None
        return _stored_plan(turn, json.loads(found))

    def hydrated_keys(self, tenant: str, episode: str, before: int) -> list[str]:
        """The keys that the turns before this one put into the prompt, without duplicates, latest turn first."""
        low, _ = key_range(_HYDRATED, tenant, episode)
        high = encode_key(_HYDRATED, tenant, episode, before)
        with self._records.state() as state:
            found = state.scan(low, high, reverse=True)
        return list(dict.fromkeys(key for _, keys in found for key in json.loads(keys)))

    def add_plan(
        self,
        tenant: str,
        episode: str,
        plan: Callable[[int], str],
        keys: Sequence[str],
        audience: str,
        project: Sequence[str] = (),
    ) -> int:
        """Store a plan as the next turn of an episode. `plan` receives the number of that turn."""
        with self._records.transaction() as transaction:
            state = transaction.state
            turn = max(_turns(state, tenant, episode), default=0) + 1
            stored = {
                "plan": plan(turn),
                "audience": audience,
                "project": list(project),
                "created": time.time(),
            }
            state.put(
                [
                    (encode_key(_PLAN, tenant, episode, turn), json.dumps(stored).encode()),
                    (encode_key(_HYDRATED, tenant, episode, turn), json.dumps(list(keys)).encode()),
                ]
            )
        return turn


def _stored_plan(turn: int, stored: Mapping[str, Any]) -> StoredPlan:
    return StoredPlan(turn, stored["plan"], stored["audience"], tuple(stored.get("project", ())))


def _turns(state: State, tenant: str, episode: str) -> list[int]:
    # Those of the keys are read, because they are short.
    return [last_number(key) for key, _ in state.scan(*key_range(_HYDRATED, tenant, episode))]
