"""Writes on behalf of a caller.

Records go to the caller's own tenant. A caller cannot write a record that it could not read, and cannot replace a record
that it may not see.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sennit.apps.http.errors import HttpError
from sennit.apps.http.requests import NewFact, NewRecord, NewTurn
from sennit.errors import NotFound
from sennit.facts import Fact, end_superseded_facts
from sennit.filters import matches
from sennit.records import Record
from sennit.stores.embedded.conversations import read_positions
from sennit.stores.embedded.graph import find_superseded
from sennit.turns import Turn, position_turns

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.privacy import Caller
    from sennit.stores.embedded.writer import WriteResult


def build_records(bodies: Iterable[NewRecord], caller: Caller) -> list[Record]:
    """The records of a request, in the caller's tenant."""
    return [
        Record.from_dict({**body.model_dump(exclude_unset=True), "tenant": caller.tenant}) for body in bodies
    ]


def build_turns(bodies: Iterable[NewTurn], db: Database, caller: Caller) -> list[Record]:
    """The turns of a request as records, each with its position in its session."""
    now = datetime.now(UTC)
    turns = [
        Turn(
            **{"timestamp": now, **body.model_dump(exclude_unset=True, exclude_none=True)},
            tenant=caller.tenant,
        )
        for body in bodies
    ]
    with db.store.sqlite.read() as connection:
        return position_turns(turns, *read_positions(connection, turns))


def build_facts(bodies: Iterable[NewFact], db: Database, caller: Caller) -> list[Record]:
    """The facts of a request as records, with the facts that they supersede."""
    facts = [Fact(**body.model_dump(exclude_unset=True), tenant=caller.tenant) for body in bodies]
    for fact_id in dict.fromkeys(superseded for fact in facts for superseded in fact.supersedes):
        if db.get(fact_id, caller=caller) is None:
            raise NotFound(f"There is no fact {fact_id!r} to supersede")
    with db.store.sqlite.read() as connection:
        superseded_records = find_superseded(connection, facts, same_relation=False)
    return end_superseded_facts(facts, superseded_records, datetime.now(UTC))


def write_records(db: Database, caller: Caller, records: Sequence[Record]) -> WriteResult:
    """Add or replace records, all or none."""
    audience = db.audience(caller)
    for record in records:
        if not matches(audience, record):
            raise HttpError(
                403,
                f"You cannot write a record that you could not read: sensitivity {record.sensitivity!r} and scope "
                f"{record.scope!r} of {record.id!r} are not both yours.",
            )

    def refuse_hidden_ids(_: sqlite3.Connection) -> tuple[str, ...]:
        # Inside the transaction, so that no record can appear between this check and the write.
        for existing in db.store.get(record.full_id for record in records).values():
            if not matches(audience, existing):
                raise HttpError(409, f"The id {existing.id!r} is taken. Choose another.")
        return ()

    return db.apply(records, refuse_hidden_ids)
