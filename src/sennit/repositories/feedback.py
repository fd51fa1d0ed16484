"""The feedback of a database: recorded searches and the events about them, each under the caller who searched."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sennit.feedback import FeedbackEvent, LoggedQuery
from sennit.privacy import Caller
from sennit.repositories.keys import encode_key, key_range, last_number
from sennit.stores.contract import RecordsRole, State, WritableState

_QUERY: Final = "feedback query"
_EVENT: Final = "feedback event"
_TIME: Final = "feedback time"
"""The part of the key before the time at which a query was recorded; the value names the query."""

DELETE_BATCH: Final = 1000
"""Queries that one transaction removes, so that other writers need not wait for long."""


@dataclass(frozen=True, slots=True)
class FeedbackOwner:
    """Whose feedback it is. Two callers share it only if they may see the same and have the same name."""

    tenant: str
    identity: str

    @classmethod
    def of(cls, caller: Caller) -> FeedbackOwner:
        """Return the owner of what a caller does."""
        values = [caller.name, caller.clearance, sorted(caller.scopes), caller.everything]
        return cls(caller.tenant, json.dumps(values))

    @property
    def caller(self) -> Caller:
        """The caller, who may see what was seen then."""
        name, clearance, scopes, everything = json.loads(self.identity)
        return Caller(
            clearance=clearance, scopes=scopes, tenant=self.tenant, name=name, everything=everything
        )

    @property
    def name(self) -> str:
        """The name of the caller; empty for one without."""
        return str(json.loads(self.identity)[0])


class NewFeedback(NamedTuple):
    """A query to record, with its events. A query that is recorded already stays as it is."""

    owner: FeedbackOwner
    query: LoggedQuery
    events: Sequence[FeedbackEvent] = ()


class QueryFeedback(NamedTuple):
    """A recorded query and its events, in the order in which they were recorded."""

    owner: FeedbackOwner
    query: LoggedQuery
    events: tuple[FeedbackEvent, ...]


class FeedbackStore:
    """The feedback of one database."""

    def __init__(self, records: RecordsRole) -> None:
        self._records = records

    def add(self, entries: Iterable[NewFeedback]) -> None:
        """Record queries and events, all or none."""
        now = time.time_ns() // 1000
        with self._records.transaction() as transaction:
            for entry in entries:
                _put(transaction.state, entry, now)

    def query(self, owner: FeedbackOwner, query_id: str) -> LoggedQuery | None:
        """The recorded query of an owner; None for any other."""
        with self._records.state() as state:
            found = state.get(encode_key(_QUERY, owner.tenant, owner.identity, query_id))
        return None if found is None else LoggedQuery.from_ubi(json.loads(found)["query"])

    def read(
        self,
        owner: FeedbackOwner | None = None,
        *,
        tenant: str | None = None,
        recorded_after: float = 0.0,
    ) -> list[QueryFeedback]:
        """The feedback of an owner, of a tenant, or of all, by the time of the query.

        `recorded_after` is in seconds since 1970; what was recorded earlier has expired.
        """
        with self._records.state() as state:
            queries = state.scan(*key_range(*_prefix(_QUERY, owner, tenant)))
            events = state.scan(*key_range(*_prefix(_EVENT, owner, tenant)))
        found: dict[tuple[FeedbackOwner, str], tuple[LoggedQuery, list[FeedbackEvent]]] = {}
        for stored in _decode(queries):
            if stored["recorded"] >= recorded_after * 1e6:
                logged = LoggedQuery.from_ubi(stored["query"])
                found[_owner(stored), logged.query_id] = (logged, [])
        for stored in _decode(events):
            event = FeedbackEvent.from_ubi(stored["event"])
            if (held := found.get((_owner(stored), event.query_id))) is not None:
                held[1].append(event)
        out = [QueryFeedback(of, logged, tuple(done)) for (of, _), (logged, done) in found.items()]
        return sorted(out, key=lambda one: (one.query.timestamp, one.query.query_id))

    def remove(self, queries: Iterable[tuple[FeedbackOwner, str]]) -> int:
        """Remove queries of owners with their events; return how many queries there were."""
        wanted = list(queries)
        removed = 0
        for start in range(0, len(wanted), DELETE_BATCH):
            with self._records.transaction() as transaction:
                batch = wanted[start : start + DELETE_BATCH]
                removed += sum(_delete(transaction.state, owner, query_id) for owner, query_id in batch)
        return removed

    def prune(self, recorded_before: float) -> int:
        """Remove what was recorded before a time, in seconds since 1970; return how many queries there were."""
        high = encode_key(_TIME, int(recorded_before * 1e6))
        with self._records.state() as state:
            expired = state.scan(key_range(_TIME)[0], high)
        return self.remove((_owner(stored), stored["query_id"]) for stored in _decode(expired))


def _prefix(kind: str, owner: FeedbackOwner | None, tenant: str | None) -> tuple[str, ...]:
    if owner is not None:
        return kind, owner.tenant, owner.identity
    return (kind,) if tenant is None else (kind, tenant)


def _decode(pairs: Iterable[tuple[bytes, bytes]]) -> Iterator[Any]:
    return (json.loads(value) for _, value in pairs)


def _owner(stored: Any) -> FeedbackOwner:
    return FeedbackOwner(*stored["owner"])


def _put(state: WritableState, entry: NewFeedback, now: int) -> None:
    owner, query = entry.owner, entry.query
    names = (owner.tenant, owner.identity, query.query_id)
    key = encode_key(_QUERY, *names)
    common = {"owner": [owner.tenant, owner.identity]}
    if state.get(key) is None:
        value = {**common, "recorded": now, "query": query.to_ubi()}
        named = {**common, "query_id": query.query_id}
        state.put(
            [
                (key, json.dumps(value).encode()),
                (encode_key(_TIME, now, *names), json.dumps(named).encode()),
            ]
        )
    first = _next_number(state, names)
    state.put(
        (encode_key(_EVENT, *names, number), json.dumps({**common, "event": event.to_ubi()}).encode())
        for number, event in enumerate(entry.events, first)
    )


def _next_number(state: State, names: tuple[str, str, str]) -> int:
    last = state.scan(*key_range(_EVENT, *names), limit=1, reverse=True)
    return last_number(last[0][0]) + 1 if last else 0


def _delete(state: WritableState, owner: FeedbackOwner, query_id: str) -> bool:
    names = (owner.tenant, owner.identity, query_id)
    key = encode_key(_QUERY, *names)
    found = state.get(key)
    if found is None:
        return False
    events = [event for event, _ in state.scan(*key_range(_EVENT, *names))]
    state.delete([key, encode_key(_TIME, json.loads(found)["recorded"], *names), *events])
    return True
