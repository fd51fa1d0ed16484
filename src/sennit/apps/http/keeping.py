"""Writing for a caller: into the caller's own tenant, nothing it could not read, and over nothing it may not see."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sennit.apps.http.errors import Refused
from sennit.apps.http.forms import NewFact, NewRecord, NewSegment
from sennit.errors import NotFound
from sennit.facts import Fact, with_ends
from sennit.filters import matches
from sennit.records import Record
from sennit.segments import Segment, placed
from sennit.stores.embedded.graph import older
from sennit.stores.embedded.sessions import places_of

if TYPE_CHECKING:
    from sennit.engine import Database
    from sennit.privacy import Caller
    from sennit.stores.embedded.writing import Written


def records_of(given: Iterable[NewRecord], caller: Caller) -> list[Record]:
    """Records as they are kept."""
    return [
        Record.from_dict({**one.model_dump(exclude_unset=True), "tenant": caller.tenant}) for one in given
    ]


def segments_of(given: Iterable[NewSegment], db: Database, caller: Caller) -> list[Record]:
    """Turns of conversations as records, each in its place."""
    now = datetime.now(UTC)
    segments = [
        Segment(
            **{"timestamp": now, **one.model_dump(exclude_unset=True, exclude_none=True)},
            tenant=caller.tenant,
        )
        for one in given
    ]
    with db.store.database.read() as connection:
        return placed(segments, *places_of(connection, segments))


def facts_of(given: Iterable[NewFact], db: Database, caller: Caller) -> list[Record]:
    """Facts as records, after those that they end."""
    facts = [Fact(**one.model_dump(exclude_unset=True), tenant=caller.tenant) for one in given]
    for name in dict.fromkeys(name for fact in facts for name in fact.supersedes):
        if db.get(name, caller=caller) is None:
            raise NotFound(f"There is no fact {name!r} that could be superseded")
    with db.store.database.read() as connection:
        before = older(connection, facts, same_relation=False)
    return with_ends(facts, before, datetime.now(UTC))


def keep(db: Database, caller: Caller, records: Sequence[Record]) -> Written:
    """Add or replace records, all or none."""
    audience = db.audience(caller)
    for record in records:
        if not matches(audience, record):
            raise Refused(
                403,
                f"You could not read what you write: sensitivity {record.sensitivity!r} and scope "
                f"{record.scope!r} of {record.id!r} are not both yours.",
            )

    def nothing_hidden(_: sqlite3.Connection) -> tuple[str, ...]:
        # Inside the transaction: nobody can put a record there between the look and the write.
        for there in db.store.get(record.full_id for record in records).values():
            if not matches(audience, there):
                raise Refused(409, f"The id {there.id!r} is taken. Choose another.")
        return ()

    return db.apply(records, nothing_hidden)
